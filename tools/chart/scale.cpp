// SPDX-License-Identifier: Apache-2.0
#include "chart/scale.hpp"

#include "common/text.hpp"

#include <quarry/core/bytes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace quarry::tool {
namespace {

constexpr std::size_t max_measured_ticks = 24;

/// Returns the smallest number of the form {1, 2, 5} * 10^k that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string superscript(unsigned n) {
  constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text;
  for (const char c : std::to_string(n)) text += digits[c - '0'];
  return text;
}

bool is_whole(double v) { return v >= 0 && v < 9e15 && v == std::floor(v); }

}  // namespace

chart_scale::chart_scale(const chart_axis& axis, const std::vector<double>& values, bool margin)
    : axis_(axis) {
  for (const double v : values)
    if (shows(axis.scale, v)) measured_.push_back(v);
  std::sort(measured_.begin(), measured_.end());
  measured_.erase(std::unique(measured_.begin(), measured_.end()), measured_.end());
  if (axis.scale == axis_scale::category) {
    low_ = -0.5;
    high_ = std::max<double>(static_cast<double>(axis.categories.size()), 1) - 0.5;
    return;
  }
  if (measured_.empty()) measured_ = {1};
  low_ = measured_.front();
  high_ = measured_.back();
  if (axis.scale == axis_scale::logarithmic) {
    const double factor = high_ < 1.5 * low_ ? 1.5 : margin ? 1.2 : 1;
    low_ /= factor;
    high_ *= factor;
  } else {
    if (margin) low_ = std::min(low_, 0.0);
    // A narrower axis has no room for numbers between its ends.
    high_ = std::max(high_, low_ + 1e-9 * std::max(std::abs(low_), std::abs(high_)));
    if (high_ <= low_) high_ = low_ + 1;
    if (margin) high_ += 0.03 * (high_ - low_);
  }
}

bool chart_scale::shows(axis_scale kind, double v) {
  // Sums and quotients of shown values are finite.
  constexpr double most = 1e300;
  return std::abs(v) <= most && (kind != axis_scale::logarithmic || v >= 1 / most);
}

double chart_scale::position(double v) const {
  if (axis_.scale == axis_scale::logarithmic) return std::log(v / low_) / std::log(high_ / low_);
  return (v - low_) / (high_ - low_);
}

std::vector<double> chart_scale::round_values(unsigned most) const {
  std::vector<double> values;
  if (axis_.scale == axis_scale::category) {
    for (std::size_t i = 0; i < axis_.categories.size(); ++i)
      values.push_back(static_cast<double>(i));
  } else if (axis_.scale == axis_scale::linear) {
    const double step = round_step((high_ - low_) / most);
    for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ + step * 1e-9; ++k)
      values.push_back(k * step);
  } else {
    const double decades = std::log10(high_ / low_);
    for (double e = std::floor(std::log10(low_)); e <= std::log10(high_) + 1e-9; ++e)
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double v = factor * std::pow(10, e);
        if ((factor == 1 || decades < 2) && v >= low_ * (1 - 1e-9) && v <= high_ * (1 + 1e-9))
          values.push_back(v);
      }
  }
  return values;
}

/// Returns those of `values` that are at least 1 / `most` of the axis apart.
std::vector<chart_tick> chart_scale::with_distance(const std::vector<double>& values,
                                                   unsigned most) const {
  std::vector<chart_tick> kept;
  for (const double v : values) {
    if (!kept.empty() && position(v) - position(kept.back().value) < 0.999 / most) continue;
    kept.push_back({v, axis_.scale == axis_scale::category
                           ? axis_.categories[static_cast<std::size_t>(v)]
                           : tick_text(v, axis_)});
  }
  return kept;
}

std::vector<chart_tick> chart_scale::ticks(unsigned most) const {
  return with_distance(round_values(most), most);
}

std::vector<chart_tick> chart_scale::minor_ticks(unsigned most) const {
  std::vector<double> values;
  if (axis_.scale == axis_scale::linear) {
    values = round_values(5 * most);
  } else if (axis_.scale == axis_scale::logarithmic) {
    for (double e = std::floor(std::log10(low_)); e <= std::log10(high_); ++e)
      for (const double factor : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0})
        if (const double v = factor * std::pow(10, e); v >= low_ && v <= high_) values.push_back(v);
  }
  std::vector<chart_tick> minor;
  const std::vector<chart_tick> major = ticks(most);
  for (const double v : values) {
    const auto same = [&](const chart_tick& t) {
      return std::abs(position(t.value) - position(v)) < 1e-9;
    };
    if (std::none_of(major.begin(), major.end(), same)) minor.push_back({v, tick_text(v, axis_)});
  }
  return minor;
}

std::vector<chart_tick> chart_scale::measured_ticks(unsigned most) const {
  const bool few_integers = axis_.scale != axis_scale::category &&
                            measured_.size() <= max_measured_ticks &&
                            std::all_of(measured_.begin(), measured_.end(), is_whole);
  return few_integers ? with_distance(measured_, most) : ticks(most);
}

std::string short_number(double v) {
  if (!std::isfinite(v)) return "–";
  const double size = std::abs(v);
  if (is_whole(v) && v < 1e9) return grouped(static_cast<std::uint64_t>(v));
  if (size != 0 && (size >= 1e7 || size < 1e-4)) return fmt::format("{:.2e}", v);
  if (size < 999.5) return fmt::format("{:.3g}", v);
  const double digits = std::pow(10, std::max(std::floor(std::log10(size)) - 3, 0.0));
  const double rounded_value = std::round(size / digits) * digits;
  return (v < 0 ? "−" : "") + grouped(static_cast<std::uint64_t>(rounded_value));
}

std::string tick_text(double v, const chart_axis& axis) {
  const auto whole = static_cast<std::uint64_t>(is_whole(v) ? v : 0);
  if (axis.unit == "B" && whole >= 1024 && whole % 1024 == 0) return to_text(bytes(whole));
  if (axis.scale != axis_scale::logarithmic || v <= 0) return short_number(v);
  if (whole >= 1 << 14 && std::has_single_bit(whole))
    return "2" + superscript(static_cast<unsigned>(std::countr_zero(whole)));
  const double power = std::round(std::log10(v));
  const bool is_power = std::abs(v / std::pow(10, power) - 1) < 1e-9;
  if (is_power && v > 9999) return "10" + superscript(static_cast<unsigned>(power));
  if (is_power && v < 0.00099) return "10⁻" + superscript(static_cast<unsigned>(-power));
  return short_number(v);
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#include "common/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <system_error>
#include <vector>

namespace quarry::tool {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return lower(c); });
  return out;
}

/// Returns log2 of a unit of size, or a negative number for an unknown unit.
int unit_shift(std::string_view unit) {
  const std::string u = lower(unit);
  if (u.empty() || u == "b") return 0;
  constexpr std::string_view letters = "kmgtpe";
  const std::size_t at = letters.find(u[0]);
  if (at == std::string_view::npos) return -1;
  const std::string_view rest = std::string_view(u).substr(1);
  if (!rest.empty() && rest != "b" && rest != "ib") return -1;
  return 10 * (static_cast<int>(at) + 1);
}

/// Returns the Damerau-Levenshtein distance (with adjacent transpositions) of two texts.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  std::iota(d[0].begin(), d[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::uint64_t parse_count(std::string_view text, std::uint64_t min, std::uint64_t max) {
  std::uint64_t n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool whole = end == text.data() + text.size();
  if (problem == std::errc::invalid_argument || !whole) {
    if (text.size() > 1 && text[0] == '-' && std::isdigit(static_cast<unsigned char>(text[1])))
      throw input_error(fmt::format("{} is negative; the minimum is {}", text, min));
    throw input_error(fmt::format("'{}' is not a whole number", text));
  }
  if (problem == std::errc::result_out_of_range || n > max)
    throw input_error(fmt::format("{} is too large; the maximum is {}", text, max));
  if (n < min) throw input_error(fmt::format("{} is too small; the minimum is {}", text, min));
  return n;
}

bytes parse_size(std::string_view text) {
  const auto invalid = [&](std::string_view why) {
    return input_error(fmt::format("'{}' {}; examples of sizes: 64, 4K, 1.5MiB, 1G", text, why));
  };
  if (!text.empty() && text[0] == '-') throw invalid("is negative");
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view unit = text.substr(digits);
  while (!unit.empty() && unit[0] == ' ') unit.remove_prefix(1);
  const int shift = unit_shift(unit);
  if (digits == 0 || shift < 0) throw invalid("is not a size");

  const std::string_view number = text.substr(0, digits);
  const std::size_t point = std::min(number.find('.'), number.size());
  const std::string_view whole = number.substr(0, point);
  const std::string_view decimals = point == number.size() ? "" : number.substr(point + 1);
  if (whole.empty() || decimals.find('.') != std::string_view::npos ||
      (point < digits && decimals.empty()))
    throw invalid("is not a size");

  std::uint64_t n = 0;
  const auto problem = std::from_chars(whole.data(), whole.data() + whole.size(), n).ec;
  if (problem != std::errc() || n > (~std::uint64_t{0} >> shift))
    throw invalid("does not fit 64 bits");
  n <<= shift;
  if (decimals.empty()) return n;
  if (decimals.size() > 3 || shift > 50) throw invalid("has too many decimals");
  std::uint64_t part = 0;
  std::uint64_t scale = 1;
  for (const char c : decimals) {
    part = part * 10 + static_cast<std::uint64_t>(c - '0');
    scale *= 10;
  }
  part <<= shift;
  if (part % scale != 0) throw invalid("is not a whole number of bytes");
  return saturating_add(n, part / scale);
}

namespace {

/// Returns the finite number that is the whole of `text`, or nothing.
std::optional<double> finite_number(const std::string& text) {
  double n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(n)) return {};
  return n;
}

}  // namespace

double parse_real(const std::string& text, double min, double max) {
  const std::optional<double> n = finite_number(text);
  if (!n) throw input_error(fmt::format("'{}' is not a number", text));
  if (*n < min || *n > max)
    throw input_error(fmt::format("{} is out of range; the limits are {} and {}", text, min, max));
  return *n;
}

double parse_seconds(const std::string& text) {
  constexpr double day = 86'400;
  const std::optional<double> n = finite_number(text);
  if (!n) throw input_error(fmt::format("'{}' is not a number of seconds", text));
  if (*n <= 0 || *n > day)
    throw input_error(fmt::format("{} s is out of range; the limits are 0 and {} s", text, day));
  return *n;
}

size_range parse_size_range(std::string_view text) {
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string_view::npos) {
    const std::uint64_t n = parse_size(text).value();
    return {n, n};
  }
  if (dash + 1 == text.size())
    throw input_error(fmt::format("'{}' is not a range; an example of a range: 16-1K", text));
  const size_range r{parse_size(text.substr(0, dash)).value(),
                     parse_size(text.substr(dash + 1)).value()};
  if (r.least > r.most) throw input_error(fmt::format("'{}': the smaller size comes first", text));
  return r;
}

std::string_view find_name(std::string_view text, std::span<const std::string_view> names) {
  const auto same = [&](std::string_view name) { return lower(name) == lower(text); };
  const auto at = std::find_if(names.begin(), names.end(), same);
  return at == names.end() ? std::string_view() : *at;
}

std::string_view nearest_name(std::string_view text, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t limit = std::max<std::size_t>(2, text.size() / 2) + 1;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(lower(text), lower(name));
    if (distance >= limit) continue;
    limit = distance;
    best = name;
  }
  return best;
}

}  // namespace quarry::tool

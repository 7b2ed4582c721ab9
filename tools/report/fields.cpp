// SPDX-License-Identifier: Apache-2.0
#include "report/fields.hpp"

#include "chart/scale.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace quarry::tool::report {
namespace {

template <std::size_t N>
bool contains_any(const std::string& text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

/// Whether the field is a percentile of the latency: "p50", "free_p999", "max".
bool is_percentile(std::string_view field) {
  if (field.starts_with("free_")) field.remove_prefix(5);
  return field == "max" || (field.starts_with('p') && field.size() > 1 &&
                            field.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

/// Guesses from unit and name whether less or more is better, for records that do not tell.
direction guess(const std::string& field, const std::string& name, const std::string& unit) {
  constexpr std::array<std::string_view, 7> less = {
      "atomics", "slowdown", "fragmentation", "overhead", "address range", "failed", "registers"};
  constexpr std::array<std::string_view, 9> more = {"utilisation", "utilization", "usable fraction",
                                                    "live",        "throughput",  "bandwidth",
                                                    "per_second",  "recovered",   "speedup"};
  std::string words = field + " " + name;
  std::transform(words.begin(), words.end(), words.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (is_time(field, unit)) return direction::less;
  if (unit.ends_with("/s")) return direction::more;
  if (contains_any(words, less)) return direction::less;
  return contains_any(words, more) ? direction::more : direction::none;
}

}  // namespace

bool is_time(std::string_view field, std::string_view unit) {
  constexpr std::array<std::string_view, 7> units = {"ns", "us",     "µs",    "ms",
                                                     "s",  "cycles", "clocks"};
  return std::find(units.begin(), units.end(), unit) != units.end() || is_percentile(field);
}

std::string text_of(const json& line, const char* key) {
  const auto at = line.find(key);
  if (at == line.end() || at->is_null()) return "";
  return at->is_string() ? at->get<std::string>() : at->dump();
}

double number_of(const json& line, const std::string& key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : missing;
}

chart_axis axis_of(const json& described, axis_scale default_scale) {
  if (!described.is_object()) return {"", "", default_scale, {}};
  const std::string scale = text_of(described, "scale");
  return {text_of(described, "name"),
          text_of(described, "unit"),
          scale == "log"        ? axis_scale::logarithmic
          : scale == "linear"   ? axis_scale::linear
          : scale == "category" ? axis_scale::category
                                : default_scale,
          {}};
}

measure measure_of(const json& y) {
  measure m;
  m.field = text_of(y, "field");
  m.axis = axis_of(y, axis_scale::linear);
  if (m.axis.name.empty()) m.axis.name = m.field;
  const std::string better = text_of(y, "better");
  m.better = better == "less"   ? direction::less
             : better == "more" ? direction::more
             : better == "none" ? direction::none
                                : guess(m.field, m.axis.name, m.axis.unit);
  m.list_axis = axis_of(y.value("x", json()), axis_scale::linear);
  if (m.list_axis.scale == axis_scale::category) m.list_axis.scale = axis_scale::linear;
  if (m.list_axis.name.empty()) m.list_axis.name = "number";
  return m;
}

json default_measures() {
  return json::array(
      {{{"field", "ms"}, {"name", "time"}, {"unit", "ms"}, {"scale", "log"}},
       {{"field", "free_ms"}, {"name", "time to free"}, {"unit", "ms"}, {"scale", "log"}},
       {{"field", "atomics_per_call"}, {"name", "atomics per call"}},
       {{"field", "free_atomics_per_call"}, {"name", "atomics per free"}},
       {{"field", "values"}, {"name", "values"}}});
}

chart_form form_of(const std::string& text) {
  return text == "bars"     ? chart_form::bars
         : text == "layers" ? chart_form::layers
         : text == "table"  ? chart_form::table
                            : chart_form::lines;
}

point_state state_of(const json& point) {
  const std::string outcome = text_of(point, "outcome");
  if (outcome == "skipped") return point_state::skipped;
  if (outcome == "given up") return point_state::given_up;
  if (!outcome.empty() && outcome != "ok") return point_state::lost;
  if (number_of(point, "corrupt") > 0 || number_of(point, "misaligned") > 0)
    return point_state::unsound;
  // A count, or a fraction in the experiments that measure it.
  return number_of(point, "failures") > 0 || number_of(point, "failed_fraction") > 0
             ? point_state::failed
             : point_state::good;
}

std::string claim_text(const json& value) {
  if (value.is_number()) return short_number(value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return "";
  std::string text;
  for (const json& v : value) text += (text.empty() ? "" : " – ") + claim_text(v);
  return text;
}

}  // namespace quarry::tool::report

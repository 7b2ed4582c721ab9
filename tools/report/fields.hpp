// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Interprets single fields of a record (docs/report.md).

#include "report/report.hpp"

#include <string>
#include <string_view>

namespace quarry::tool::report {

/// Returns a string field, "" if it is absent or null.
std::string text_of(const json& line, const char* key);

/// Returns a number field, `missing` if it is absent or null.
double number_of(const json& line, const std::string& key);

/// Whether a measure is a time: by its unit, or because it is a percentile of the latency.
bool is_time(std::string_view field, std::string_view unit);

/// A measure of an experiment: an entry of its "y" list.
struct measure {
  std::string field;
  chart_axis axis;
  direction better = direction::none;
  chart_axis list_axis;  // the x axis if the field is a list
};
measure measure_of(const json& y);

/// Returns the measures of an experiment without a description, as a "y" list.
json default_measures();

chart_axis axis_of(const json& described, axis_scale default_scale);
chart_form form_of(const std::string& text);

point_state state_of(const json& point);

/// Formats the value of a claim: a number, or "1.13 – 4.33" for a list of two.
std::string claim_text(const json& value);

}  // namespace quarry::tool::report

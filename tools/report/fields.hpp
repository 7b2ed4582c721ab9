// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What single fields of a line mean.

#include "report/report.hpp"

#include <string>
#include <string_view>

namespace quarry::tool::report {

/// A text, empty where the field is missing or null.
std::string text_of(const json& line, const char* key);

/// A number, `nothing` where the field is missing or null.
double number_of(const json& line, const std::string& key);

/// A measured figure of the experiment, from the entry of its "y" list.
struct measure {
  std::string field;
  chart_axis axis;
  direction better = direction::none;
  chart_axis list_axis;  // over which a field that is a list is drawn
};
measure measure_of(const json& y);

/// The fields that points of an experiment nobody described may have.
json usual_measures();

chart_axis axis_of(const json& described, axis_scale otherwise);
chart_form form_of(const std::string& text);

dot_state state_of(const json& point);

/// The number, or what stands for it: "1.13 – 4.33" for a list of two.
std::string claim_text(const json& value);

}  // namespace quarry::tool::report

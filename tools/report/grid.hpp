// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Figures as tables of strings.

#include "report/report.hpp"

#include <string>
#include <vector>

namespace quarry::tool::report {

struct grid_cell {
  std::string text;
  point_state state = point_state::good;
};
struct grid {
  std::vector<std::string> head;
  std::vector<std::vector<grid_cell>> rows;
};

/// Returns a table with a row per curve and a column per x value. If there are more than `columns`
/// x values, the table has evenly spaced ones, the first and the last included.
grid grid_of(const view& v, std::size_t columns);

/// Returns a table with a row per x value and curve, and a column per measure.
grid grid_of(const figure& f);

/// Joins the commands that differ only in the value of --allocators.
std::vector<std::string> merged(const std::vector<series_commands>& commands);

}  // namespace quarry::tool::report

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Figures as tables of text.

#include "report/report.hpp"

#include <string>
#include <vector>

namespace quarry::tool::report {

struct grid_cell {
  std::string text;
  dot_state state = dot_state::good;
};
struct grid {
  std::vector<std::string> head;
  std::vector<std::vector<grid_cell>> rows;
};

/// A row a curve, a column for each x; of many x at most `columns`, spread evenly, the last among them.
grid grid_of(const view& v, std::size_t columns);

/// A row for each curve and x, a column a measure.
grid grid_of(const figure& f);

/// Commands that differ in the value of --allocators alone become one with a list.
std::vector<std::string> merged(const std::vector<series_commands>& commands);

}  // namespace quarry::tool::report

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of arrange(): from data points to figures, with the same style for a curve on the
/// whole page.

#include "report/report.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace quarry::tool::report {

/// Returns the name that the legend shows for the curve of this point.
std::string series_of(const json& point);

/// Assigns colour and marker by allocator family (CMalloc and CMalloc-warp are one) and the dash by
/// the series in it. The allocators of this library come first, in the order of the catalogue, so
/// that they have the same style in every report.
class style_table {
 public:
  style_table();
  curve_style of(const std::string& allocator, const std::string& series);
  /// Returns the index of the family, and of the series in the family.
  std::pair<unsigned, unsigned> order(const std::string& allocator, const std::string& series);

 private:
  std::map<std::string, unsigned> families_;
  std::map<std::string, std::map<std::string, unsigned>> variants_;
};

/// Returns a figure with a view for each measure of `experiment` that a point has.
figure figure_of(const json& experiment, const std::vector<const json*>& points,
                 style_table& styles);

}  // namespace quarry::tool::report

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of arrange(): how points become a figure, and how curves keep their look on the whole page.

#include "report/report.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace quarry::tool::report {

/// What a legend shows for this point.
std::string series_of(const json& point);

/// Colour and marker by family (CMalloc and CMalloc-warp are one), dash by the series in it. Quarry's
/// own allocators come first, in the library's order, so that they look the same in every report.
class looks {
 public:
  looks();
  chart_look of(const std::string& allocator, const std::string& series);
  /// The number of the family, and of the series in it.
  std::pair<unsigned, unsigned> order(const std::string& allocator, const std::string& series);

 private:
  std::map<std::string, unsigned> families_;
  std::map<std::string, std::map<std::string, unsigned>> variants_;
};

/// A view for each measure of `experiment` that any of its points has.
figure figure_of(const json& experiment, const std::vector<const json*>& points, looks& all_looks);

}  // namespace quarry::tool::report

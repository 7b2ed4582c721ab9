// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Charts as SVG, for papers and pages: light background, no script, no font but the reader's.
///
///   lines    curves with markers, spreads as whiskers; at their right end a label each, pushed apart
///   bars     beside each other for each x; lying, the shortest first, where there is but one x
///   layers   bars on top of each other
///
/// What went wrong stays in sight: a hollow marker where requests were refused, a red ring where blocks
/// were corrupt or misaligned, a red cross on the x axis for what was lost.

#include "chart/chart.hpp"

#include <string>
#include <vector>

namespace quarry::tool {

std::string chart_svg(const chart& c);

/// Several in one picture, from left to right.
std::string chart_svg(const std::vector<chart>& charts);

}  // namespace quarry::tool

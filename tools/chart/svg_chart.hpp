// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Draws charts as SVG: light background, no script, the reader's sans-serif font.
///
///   lines    curves with markers and error bars; a label at the right end of each curve
///   bars     grouped vertical bars; if there is a single x value, horizontal bars, the shortest
///            first
///   layers   stacked bars
///
/// A point that is not good stays visible: a hollow marker if allocations failed, a red ring if
/// blocks were corrupt or misaligned, a red cross on the x axis if the point was lost.
///
/// The page of `quarry report` shows the same SVG. Its script finds the parts by these attributes:
///
///   g.chart   data-form (lines, vertical, layers, horizontal),
///             data-frame ("left right top bottom"), data-y ("log" or "linear"),
///             data-top (height of the heading)
///   g.curve   data-name; class cN names the colour N, which the attribute `color` holds
///   .point    data-index: the index of the point in its curve; a group at the position of the
///             point in a line chart, the bar itself in a bar chart
///   g.tick    a tick of the y axis of a line chart; g.tick.minor is hidden until the axis is
///             enlarged
///   g.label   the name of the curve beside the frame; path.cross marks a lost point on the x axis

#include "chart/chart.hpp"

#include <string>
#include <vector>

namespace quarry::tool {

std::string chart_svg(const chart& c);

/// Draws several charts side by side.
std::string chart_svg(const std::vector<chart>& charts);

}  // namespace quarry::tool

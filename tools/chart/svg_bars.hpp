// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The bar charts of svg_chart.hpp.

#include "chart/svg_frame.hpp"

namespace quarry::tool {

/// Vertical bars: at each x value the bars of all curves, side by side or, as layers, stacked.
svg_picture vertical_bars(const chart& c);

/// Horizontal bars: one per curve, the shortest first.
svg_picture horizontal_bars(const chart& c);

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The forms of svg_chart.hpp that are bars.

#include "chart/svg_frame.hpp"

namespace quarry::tool {

/// For each x the curves' bars, beside each other or, as layers, on top of each other.
svg_picture standing_bars(const chart& c);

/// One bar a curve, lying, the shortest first.
svg_picture lying_bars(const chart& c);

}  // namespace quarry::tool

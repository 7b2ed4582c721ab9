// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Curves, markers and bars in the coordinates of a picture. They are drawn in `currentColor`, the
/// colour of their curve's group.

#include "chart/chart.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

inline constexpr std::string_view fault_colour = "#d00000";

/// The outline of a marker as an SVG path around (0, 0), in units of its radius. Open outlines are
/// stroked, closed ones filled.
struct marker_outline {
  std::string_view path;
  bool open;
};
inline constexpr marker_outline marker_outlines[chart_markers] = {
    {"M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z", false},            // circle
    {"M0-1.15L1.1.85H-1.1z", false},                          // triangle
    {"M-.9-.9H.9V.9H-.9z", false},                            // square
    {"M0-1.3L1.3 0L0 1.3L-1.3 0z", false},                    // diamond
    {"M-.9-.9L.9.9M-.9.9L.9-.9", true},                       // cross
    {"M-1.1 0H1.1M0-1.1V1.1M-.8-.8L.8.8M-.8.8L.8-.8", true},  // star
    {"M-.45-1.3H.45V1.3H-.45z", false}};                      // bar

/// A point of a curve in picture coordinates. A missing y interrupts the curve.
struct svg_mark {
  double x = 0;
  double y = missing;
  double low = missing, high = missing;  // the ends of the error bar
  point_state state = point_state::good;
  std::size_t index = 0;  // in the curve
};

/// Draws error bars, the line and its markers.
std::string svg_trace(const curve_style& style, const std::vector<svg_mark>& marks);

/// Draws the entry of a legend: a short line with one marker, or a small bar.
std::string svg_sample(const curve_style& style, chart_form form, double x, double y);

struct svg_box {
  double x, y, width, height;
};
std::string svg_bar(const curve_style& style, point_state state, const svg_box& box,
                    std::string_view attributes = "");

/// Draws the error bar of a bar. Returns "" if an end is missing or the ends nearly coincide.
std::string svg_error_bar(double x1, double y1, double x2, double y2);

/// Draws the cross of a lost point on the x axis.
std::string svg_cross(double x, double y);

/// The number of lost points at each x coordinate.
using lost_counts = std::map<double, unsigned>;
/// Draws the number beside each cross that stands for more than one point.
std::string svg_lost_counts(const lost_counts& lost, double y);

/// "0.0324", "5.4 (failed allocations)", "lost".
std::string value_text(const chart_point& point);

/// "", "skipped", "given up", "failed allocations", "unsound", "lost".
std::string_view state_text(point_state state);

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Curves, markers, bars and signs of what went wrong, at places in a picture.

#include "chart/chart.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

inline constexpr std::string_view fault_colour = "#d00000";

/// A marker around 0, 0 in units of its radius, as an SVG path; open ones are strokes.
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

/// A point of a curve; without y a gap.
struct svg_mark {
  double x = 0;
  double y = nothing;
  double low = nothing, high = nothing;  // ends of the whisker
  dot_state state = dot_state::good;
};

/// A curve: whiskers, the line, its markers.
std::string svg_trace(const chart_look& look, const std::vector<svg_mark>& marks);

/// For a legend: a short piece of the curve with one marker, or a small bar.
std::string svg_sample(const chart_look& look, chart_form form, double x, double y);

struct svg_box {
  double x, y, width, height;
};
std::string svg_bar(const chart_look& look, dot_state state, const svg_box& box);

/// The spread of repeats on a bar, from one place to the other; nothing where they are not known or near.
std::string svg_whisker(double x1, double y1, double x2, double y2);

/// A cross for each place where points were lost, with their number where there are several.
std::string svg_crosses(const std::map<double, unsigned>& lost, double y);

/// "0.0324", "5.4 (refused)", "lost".
std::string value_text(const chart_dot& dot);

/// "", "refused", "unsound", "lost", "skipped".
std::string_view state_text(dot_state state);

}  // namespace quarry::tool

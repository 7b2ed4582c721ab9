// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A chart as data: two axes and the curves over them. svg_chart.hpp draws it.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// Marks a value that was not measured.
inline constexpr double missing = std::numeric_limits<double>::quiet_NaN();

enum class axis_scale : std::uint8_t { linear, logarithmic, category };

struct chart_axis {
  std::string name, unit;
  axis_scale scale = axis_scale::linear;
  std::vector<std::string> categories;  // of a category axis; values are indices into this list

  std::string title() const { return unit.empty() ? name : name + " [" + unit + "]"; }
};

/// The quality of a data point, from best to worst.
enum class point_state : std::uint8_t {
  good,
  skipped,   // not measured: the allocator does not support the workload
  given_up,  // not measured: a smaller x value already exceeded the time limit
  failed,    // measured, but some allocations failed
  unsound,   // blocks were corrupt or misaligned
  lost       // no result: the process crashed, timed out, or was not run
};

struct chart_point {
  double x = 0;
  double y = missing;
  double least = missing,
         most = missing;  // minimum and maximum over the repetitions
  point_state state = point_state::good;
};

/// How a curve is drawn: indices into the tables below.
struct curve_style {
  unsigned colour = 0, marker = 0, dash = 0;
  friend bool operator==(const curve_style&, const curve_style&) = default;
};

struct chart_curve {
  std::string name;
  std::string owner;  // the allocator; one allocator may have several curves
  curve_style style;
  std::vector<chart_point> points;
};

/// lines: curves with markers. bars: grouped bars. layers: stacked bars. table: no chart.
enum class chart_form : std::uint8_t { lines, bars, layers, table };

struct chart {
  std::string title, subtitle;
  chart_form form = chart_form::lines;
  chart_axis x, y;
  std::vector<chart_curve> curves;
};

/// Line colours for a white and for a nearly black background. The first eight are distinguishable
/// with colour vision deficiency; markers and dashes distinguish the others.
inline constexpr unsigned chart_colours = 11;
inline constexpr std::string_view light_colours[chart_colours] = {
    "#0067a5", "#d0570a", "#00805a", "#b0357f", "#857000", "#2e8fc4",
    "#3d3d3d", "#b3261e", "#6a3fb5", "#7a4a21", "#0f8b8d"};
inline constexpr std::string_view dark_colours[chart_colours] = {
    "#5aa9e6", "#f28c45", "#33c295", "#e78ac0", "#e3c340", "#9bd8f5",
    "#d6d6d6", "#ff7b72", "#b79cf2", "#c99b6d", "#5ad1cf"};

inline constexpr unsigned chart_markers = 7;  // circle, triangle, square, diamond, cross, star, bar
inline constexpr std::string_view chart_dashes[] = {"", "7 3", "2 3", "9 3 2 3", "4 2"};

/// Returns the style of a variant (0: the plain form) of an allocator family. A family has a colour
/// and a marker, a variant has a dash.
inline curve_style style_of(unsigned family, unsigned variant) {
  constexpr unsigned dashes = std::size(chart_dashes);
  return {family % chart_colours,
          (family + family / chart_colours + variant / dashes) % chart_markers, variant % dashes};
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A chart as data: two axes and curves over them. svg_chart.hpp draws it; the report's page holds it.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

inline constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

enum class axis_scale : std::uint8_t { linear, logarithmic, category };

struct chart_axis {
  std::string name, unit;
  axis_scale scale = axis_scale::linear;
  std::vector<std::string> categories;  // of a category axis; values are their indices

  std::string title() const { return unit.empty() ? name : name + " [" + unit + "]"; }
};

/// What is to be said of a measured point, from the best to the worst.
enum class dot_state : std::uint8_t {
  good,
  skipped,   // not asked for: the allocator can not do it
  given_up,  // not asked for: what was less work took too long
  refused,   // some requests got no memory
  unsound,   // blocks were corrupt or misaligned
  lost       // nothing came back: crashed, timed out, failed, not run
};

struct chart_dot {
  double x = 0;
  double y = nothing;
  double least = nothing, most = nothing;  // the spread of repeats
  dot_state state = dot_state::good;
};

/// How a curve is told from the others: indices into the tables below.
struct chart_look {
  unsigned colour = 0, marker = 0, dash = 0;
  friend bool operator==(const chart_look&, const chart_look&) = default;
};

struct chart_curve {
  std::string name;
  std::string owner;  // the allocator; several curves may have one
  chart_look look;
  std::vector<chart_dot> dots;
};

enum class chart_form : std::uint8_t { lines, bars, layers, table };

struct chart {
  std::string title, subtitle;
  chart_form form = chart_form::lines;
  chart_axis x, y;
  std::vector<chart_curve> curves;
};

/// Colours that are legible as lines on white and, in the second table, on nearly black. The first eight stay
/// apart for colour-blind eyes; of the rest, and in any case, markers and dashes help to tell.
inline constexpr unsigned chart_colours = 11;
inline constexpr std::string_view light_colours[chart_colours] = {
    "#0067a5", "#d0570a", "#00805a", "#b0357f", "#857000", "#2e8fc4",
    "#3d3d3d", "#b3261e", "#6a3fb5", "#7a4a21", "#0f8b8d"};
inline constexpr std::string_view dark_colours[chart_colours] = {
    "#5aa9e6", "#f28c45", "#33c295", "#e78ac0", "#e3c340", "#9bd8f5",
    "#d6d6d6", "#ff7b72", "#b79cf2", "#c99b6d", "#5ad1cf"};

inline constexpr unsigned chart_markers = 7;  // circle, triangle, square, diamond, cross, star, bar
inline constexpr std::string_view chart_dashes[] = {"", "7 3", "2 3", "9 3 2 3", "4 2"};

/// The look of variant `variant` (0 its plain form) of family `family`: a colour and a marker for each
/// family, a dash for each variant.
inline chart_look look_of(unsigned family, unsigned variant) {
  constexpr unsigned dashes = std::size(chart_dashes);
  return {family % chart_colours,
          (family + family / chart_colours + variant / dashes) % chart_markers, variant % dashes};
}

}  // namespace quarry::tool

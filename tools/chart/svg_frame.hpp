// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts that all forms of charts share: frame, axes, heading and labels.

#include "chart/scale.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// The rectangle in which curves are drawn. Positions on its axes are in [0, 1], y upwards.
struct svg_frame {
  double left, right, top, bottom;
  double x(double position) const { return left + (right - left) * position; }
  double y(double position) const { return bottom - (bottom - top) * position; }
};

/// A drawn chart, with what the script of the report's page needs to know of it (svg_chart.hpp).
struct svg_picture {
  double width, height;
  std::string body;
  std::string_view form;
  svg_frame frame;
};

inline constexpr double svg_left = 74, svg_top = 58, svg_row = 15;

/// Returns a height that has room for one label per curve.
double frame_height(const chart& c);

std::string svg_heading(const chart& c);
std::string svg_y_axis(const svg_frame& f, const chart_scale& scale, const chart_axis& axis);

/// Ticks and title below the frame. Tick labels that are too long for their distance are rotated.
struct svg_axis_text {
  std::string body;
  double height;
};
svg_axis_text svg_x_axis(const svg_frame& f, const chart_scale& scale, const chart_axis& axis,
                         const std::vector<chart_tick>& ticks);

/// Returns one label per curve for the right side of the frame, each as near as possible to its
/// preferred y coordinate, without overlaps.
std::vector<std::string> svg_labels(const chart& c, const svg_frame& f,
                                    const std::vector<double>& preferred);
double label_width(const chart& c);

/// Opens the group of a curve; "</g>\n" closes it. `attributes` are added to the element.
std::string svg_curve_start(const chart_curve& curve, std::string_view attributes = "");

/// Returns the width of a picture: at least `least`, and enough for the heading.
double picture_width(const chart& c, double least);

/// Replaces the characters that XML reserves.
std::string xml_escaped(std::string_view text);

}  // namespace quarry::tool

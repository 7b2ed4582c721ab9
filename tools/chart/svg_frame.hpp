// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What charts of every form have in common: the frame, its axes, titles and labels.

#include "chart/scale.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct svg_picture {
  double width, height;
  std::string body;
};

/// The part of a picture that curves are drawn in; shares of it are in [0, 1], y upwards.
struct svg_frame {
  double left, right, top, bottom;
  double x(double share) const { return left + (right - left) * share; }
  double y(double share) const { return bottom - (bottom - top) * share; }
};

inline constexpr double svg_left = 74, svg_top = 58, svg_row = 15;

/// Tall enough for a label a curve.
double frame_height(const chart& c);

std::string svg_heading(const chart& c);
std::string svg_y_axis(const svg_frame& f, const chart_scale& scale, const chart_axis& axis);

/// Ticks and title under the frame; long ticks lean.
struct svg_axis_text {
  std::string body;
  double height;
};
svg_axis_text svg_x_axis(const svg_frame& f, const chart_scale& scale, const chart_axis& axis,
                         const std::vector<chart_tick>& ticks);

/// The curves' names at the right of the frame, each as near as can be to the height it wishes for.
std::string svg_labels(const chart& c, const svg_frame& f, const std::vector<double>& wishes);
double label_width(const chart& c);

/// Wide enough for the frame, what stands beside it, and the titles.
double picture_width(const chart& c, double least);

/// `text` with what XML takes for its own replaced.
std::string xml_escaped(std::string_view text);

}  // namespace quarry::tool

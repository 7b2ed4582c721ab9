// SPDX-License-Identifier: Apache-2.0
#include "chart/svg_marks.hpp"

#include "chart/scale.hpp"

#include <fmt/format.h>

#include <cmath>

namespace quarry::tool {
namespace {

constexpr double radius = 3.6;

/// A group at (x, y) with the marker. Without `visible` the group is empty; it still tells the
/// position of the point.
std::string marker(const curve_style& style, const svg_mark& m, std::string_view attributes,
                   bool visible) {
  const marker_outline& o = marker_outlines[style.marker];
  std::string out =
      fmt::format("<g {}transform=\"translate({:.1f} {:.1f})\">", attributes, m.x, m.y);
  if (visible) {
    const bool hollow = m.state != point_state::good && !o.open;
    out += fmt::format(
        "<path d=\"{}\" transform=\"scale({})\" fill=\"{}\" "
        "{}stroke=\"currentColor\" "
        "stroke-width=\"{}\"/>",
        o.path, radius,
        o.open   ? "none"
        : hollow ? "white"
                 : "currentColor",
        hollow ? "class=\"hollow\" " : "", o.open ? 0.45 : 0.3);
    if (m.state == point_state::unsound || m.state == point_state::lost)
      out += fmt::format(
          "<circle class=\"fault\" r=\"6.5\" fill=\"none\" "
          "stroke=\"{}\" stroke-width=\"1.6\"/>",
          fault_colour);
  }
  return out + "</g>\n";
}

std::string dash_of(const curve_style& style) {
  const std::string_view dash = chart_dashes[style.dash];
  return dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash);
}

}  // namespace

std::string svg_trace(const curve_style& style, const std::vector<svg_mark>& marks) {
  std::string path, line, markers;
  std::size_t length = 0;
  const auto end_line = [&] {
    if (length > 1)
      path += fmt::format(
          "<polyline fill=\"none\" stroke=\"currentColor\" "
          "stroke-width=\"1.7\" "
          "stroke-linejoin=\"round\" vector-effect=\"non-scaling-stroke\"{} "
          "points=\"{}\"/>\n",
          dash_of(style), line);
    line.clear();
    length = 0;
  };
  // With many points, a marker at each of them would hide the curve.
  const std::size_t stride = marks.size() > 40 ? marks.size() / 12 : 1;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const svg_mark& m = marks[i];
    if (!std::isfinite(m.y)) {
      end_line();
      continue;
    }
    line += fmt::format("{}{:.1f},{:.1f}", length++ == 0 ? "" : " ", m.x, m.y);
    markers += marker(style, m, fmt::format("class=\"point\" data-index=\"{}\" ", m.index),
                      i % stride == 0 || m.state != point_state::good);
    if (std::isfinite(m.low) && std::abs(m.high - m.low) > 2)
      path += fmt::format(
          "<path d=\"M{:.1f} {:.1f}V{:.1f}\" "
          "stroke=\"currentColor\" stroke-opacity=\"0.55\" "
          "vector-effect=\"non-scaling-stroke\"/>\n",
          m.x, m.low, m.high);
  }
  end_line();
  return "<g class=\"path\">\n" + path + "</g>\n" + markers;
}

std::string svg_sample(const curve_style& style, chart_form form, double x, double y) {
  if (form != chart_form::lines) return svg_bar(style, point_state::good, {x + 10, y - 5, 12, 10});
  return fmt::format(
             "<path d=\"M{:.1f} {:.1f}h28\" fill=\"none\" "
             "stroke=\"currentColor\" "
             "stroke-width=\"1.7\"{}/>\n",
             x, y, dash_of(style)) +
         marker(style, {x + 14, y}, "", true);
}

std::string svg_bar(const curve_style& style, point_state state, const svg_box& box,
                    std::string_view attributes) {
  const bool fault = state == point_state::unsound || state == point_state::lost;
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "fill=\"currentColor\" fill-opacity=\"{}\" stroke=\"{}\"{}/>\n",
      box.x, box.y, box.width, box.height,
      state != point_state::good ? 0.15
      : style.dash == 0          ? 0.85
                                 : 0.4,
      fault ? fault_colour : "currentColor", attributes);
}

std::string svg_error_bar(double x1, double y1, double x2, double y2) {
  const double length = std::abs(x2 - x1) + std::abs(y2 - y1);
  if (!(length > 2)) return "";
  return fmt::format(
      "<line class=\"ink\" x1=\"{:.1f}\" y1=\"{:.1f}\" "
      "x2=\"{:.1f}\" y2=\"{:.1f}\" "
      "stroke=\"#222\"/>\n",
      x1, y1, x2, y2);
}

std::string svg_cross(double x, double y) {
  return fmt::format(
      "<path class=\"cross fault\" d=\"M{:.1f} {:.1f}l8 8m0 "
      "-8l-8 8\" stroke=\"{}\" "
      "stroke-width=\"2\"/>\n",
      x - 4, y - 4, fault_colour);
}

std::string svg_lost_counts(const lost_counts& lost, double y) {
  std::string out;
  for (const auto& [x, count] : lost)
    if (count > 1)
      out += fmt::format(
          "<text class=\"lost-count fault\" data-x=\"{:.1f}\" "
          "x=\"{:.1f}\" y=\"{:.1f}\" "
          "fill=\"{}\" font-size=\"10\">{}</text>\n",
          x, x + 6, y - 3, fault_colour, count);
  return out;
}

std::string_view state_text(point_state state) {
  constexpr std::string_view texts[] = {"",        "skipped", "given up", "failed allocations",
                                        "unsound", "lost"};
  return texts[static_cast<std::size_t>(state)];
}

std::string value_text(const chart_point& point) {
  const std::string_view state = state_text(point.state);
  if (!std::isfinite(point.y)) return std::string(state.empty() ? "–" : state);
  return state.empty() ? short_number(point.y)
                       : fmt::format("{} ({})", short_number(point.y), state);
}

}  // namespace quarry::tool

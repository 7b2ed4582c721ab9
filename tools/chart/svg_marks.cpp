// SPDX-License-Identifier: Apache-2.0
#include "chart/svg_marks.hpp"

#include "chart/scale.hpp"

#include <fmt/format.h>

#include <cmath>

namespace quarry::tool {
namespace {

constexpr double radius = 3.6;

std::string marker(const chart_look& look, double x, double y, dot_state state) {
  const marker_outline& o = marker_outlines[look.marker];
  const std::string_view colour = light_colours[look.colour];
  std::string out = fmt::format(
      "<path d=\"{}\" transform=\"translate({:.1f} {:.1f}) scale({})\" fill=\"{}\" stroke=\"{}\" "
      "stroke-width=\"{}\"/>\n",
      o.path, x, y, radius,
      o.open                     ? "none"
      : state == dot_state::good ? colour
                                 : "white",
      colour, o.open ? 0.45 : 0.3);
  if (state == dot_state::unsound || state == dot_state::lost)
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6.5\" fill=\"none\" stroke=\"{}\" "
        "stroke-width=\"1.6\"/>\n",
        x, y, fault_colour);
  return out;
}

std::string dash_of(const chart_look& look) {
  const std::string_view dash = chart_dashes[look.dash];
  return dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash);
}

}  // namespace

std::string svg_trace(const chart_look& look, const std::vector<svg_mark>& marks) {
  const std::string_view colour = light_colours[look.colour];
  std::string whiskers, line, markers;
  std::size_t length = 0;
  const auto end_line = [&] {
    if (length > 1)
      whiskers += fmt::format(
          "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.7\" "
          "stroke-linejoin=\"round\"{} points=\"{}\"/>\n",
          colour, dash_of(look), line);
    line.clear();
    length = 0;
  };
  const std::size_t stride =
      marks.size() > 40 ? marks.size() / 12 : 1;  // or markers hide the curve
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const svg_mark& m = marks[i];
    if (!std::isfinite(m.y)) {
      end_line();
      continue;
    }
    line += fmt::format("{}{:.1f},{:.1f}", length++ == 0 ? "" : " ", m.x, m.y);
    if (i % stride == 0 || m.state != dot_state::good) markers += marker(look, m.x, m.y, m.state);
    if (std::isfinite(m.low) && std::abs(m.high - m.low) > 2)
      whiskers += fmt::format(
          "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"{3}\" stroke-opacity=\"0.55\"/>\n", m.x,
          m.low, m.high, colour);
  }
  end_line();
  return whiskers + markers;
}

std::string svg_sample(const chart_look& look, chart_form form, double x, double y) {
  if (form != chart_form::lines) return svg_bar(look, dot_state::good, {x + 10, y - 5, 12, 10});
  return fmt::format(
             "<path d=\"M{:.1f} {:.1f}h28\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.7\"{}/>\n",
             x, y, light_colours[look.colour], dash_of(look)) +
         marker(look, x + 14, y, dot_state::good);
}

std::string svg_bar(const chart_look& look, dot_state state, const svg_box& box) {
  const bool bad = state == dot_state::unsound || state == dot_state::lost;
  const std::string_view colour = light_colours[look.colour];
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "fill-opacity=\"{}\" stroke=\"{}\"/>\n",
      box.x, box.y, box.width, box.height, colour,
      state != dot_state::good ? 0.15
      : look.dash == 0         ? 0.85
                               : 0.4,
      bad ? fault_colour : colour);
}

std::string svg_whisker(double x1, double y1, double x2, double y2) {
  const double length = std::abs(x2 - x1) + std::abs(y2 - y1);
  if (!(length > 2)) return "";
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#222\"/>\n", x1, y1,
      x2, y2);
}

std::string svg_crosses(const std::map<double, unsigned>& lost, double y) {
  std::string out;
  for (const auto& [x, count] : lost) {
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}l8 8m0 -8l-8 8\" stroke=\"{2}\" stroke-width=\"2\"/>\n", x - 4,
        y - 4, fault_colour);
    if (count > 1)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" font-size=\"10\">{}</text>\n",
                         x + 6, y - 3, fault_colour, count);
  }
  return out;
}

std::string_view state_text(dot_state state) {
  constexpr std::string_view texts[] = {"", "skipped", "given up", "refused", "unsound", "lost"};
  return texts[static_cast<std::size_t>(state)];
}

std::string value_text(const chart_dot& dot) {
  const std::string_view state = state_text(dot.state);
  if (!std::isfinite(dot.y)) return std::string(state.empty() ? "–" : state);
  return state.empty() ? short_number(dot.y) : fmt::format("{} ({})", short_number(dot.y), state);
}

}  // namespace quarry::tool

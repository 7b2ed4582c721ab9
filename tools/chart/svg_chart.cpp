// SPDX-License-Identifier: Apache-2.0
#include "chart/svg_chart.hpp"

#include "chart/svg_bars.hpp"
#include "chart/svg_frame.hpp"
#include "chart/svg_marks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quarry::tool {
namespace {

svg_picture lines(const chart& c) {
  std::vector<double> xs, ys;
  for (const chart_curve& curve : c.curves)
    for (const chart_dot& d : curve.dots) {
      xs.push_back(d.x);
      ys.insert(ys.end(), {d.y, d.least, d.most});
    }
  const chart_scale x(c.x, xs, false), y(c.y, ys, true);
  const svg_frame f{svg_left, svg_left + 500, svg_top, svg_top + frame_height(c)};
  const auto place = [&](const chart_dot& d) {
    svg_mark m{f.x(x.place(d.x)), nothing, nothing, nothing, d.state};
    if (chart_scale::shows(c.y.scale, d.y)) m.y = f.y(y.place(d.y));
    if (chart_scale::shows(c.y.scale, d.least)) m.low = f.y(y.place(d.least));
    if (chart_scale::shows(c.y.scale, d.most)) m.high = f.y(y.place(d.most));
    return m;
  };
  std::string body;
  std::vector<double> ends;
  std::map<double, unsigned> lost;
  for (const chart_curve& curve : c.curves) {
    std::vector<svg_mark> marks;
    double end = f.bottom;
    for (const chart_dot& d : curve.dots) {
      if (!chart_scale::shows(c.x.scale, d.x)) continue;
      const svg_mark& m = marks.emplace_back(place(d));
      if (d.state == dot_state::lost) ++lost[m.x];
      if (m.y == m.y) end = m.y;
    }
    body += svg_trace(curve.look, marks);
    ends.push_back(end);
  }
  const svg_axis_text below = svg_x_axis(f, x, c.x, x.measured_ticks(12));
  return {picture_width(c, f.right + label_width(c)), f.bottom + below.height,
          svg_heading(c) + svg_y_axis(f, y, c.y) + below.body + body + svg_labels(c, f, ends) +
              svg_crosses(lost, f.bottom)};
}

bool has_one_x(const chart& c) {
  double first = nothing;
  for (const chart_curve& curve : c.curves)
    for (const chart_dot& d : curve.dots) {
      if (first != first) first = d.x;
      if (d.x != first) return false;
    }
  return true;
}

svg_picture draw(const chart& c) {
  if (c.form == chart_form::layers) return standing_bars(c);
  if (has_one_x(c)) return lying_bars(c);
  return c.form == chart_form::bars ? standing_bars(c) : lines(c);
}

}  // namespace

std::string chart_svg(const std::vector<chart>& charts) {
  std::string body;
  double width = 0, height = 0;
  for (const chart& c : charts) {
    const svg_picture p = draw(c);
    body += fmt::format("<g transform=\"translate({:.0f} 0)\">\n{}</g>\n", width, p.body);
    width += p.width;
    height = std::max(height, p.height);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-size=\"12\" font-family=\"Helvetica, Arial, "
      "sans-serif\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{2}"
      "</svg>\n",
      width, height, body);
}

std::string chart_svg(const chart& c) { return chart_svg(std::vector<chart>{c}); }

}  // namespace quarry::tool

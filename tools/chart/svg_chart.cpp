// SPDX-License-Identifier: Apache-2.0
#include "chart/svg_chart.hpp"

#include "chart/svg_bars.hpp"
#include "chart/svg_frame.hpp"
#include "chart/svg_marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quarry::tool {
namespace {

svg_picture lines(const chart& c) {
  std::vector<double> xs, ys;
  for (const chart_curve& curve : c.curves)
    for (const chart_point& p : curve.points) {
      xs.push_back(p.x);
      ys.insert(ys.end(), {p.y, p.least, p.most});
    }
  const chart_scale x(c.x, xs, false), y(c.y, ys, true);
  const svg_frame f{svg_left, svg_left + 500, svg_top, svg_top + frame_height(c)};
  const auto mark_of = [&](const chart_point& p, std::size_t index) {
    svg_mark m{f.x(x.position(p.x)), missing, missing, missing, p.state, index};
    if (chart_scale::shows(c.y.scale, p.y)) m.y = f.y(y.position(p.y));
    if (chart_scale::shows(c.y.scale, p.least)) m.low = f.y(y.position(p.least));
    if (chart_scale::shows(c.y.scale, p.most)) m.high = f.y(y.position(p.most));
    return m;
  };
  std::vector<std::string> traces;
  std::vector<double> ends;
  lost_counts lost;
  for (const chart_curve& curve : c.curves) {
    std::vector<svg_mark> marks;
    std::string crosses;
    double end = f.bottom;
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      if (!chart_scale::shows(c.x.scale, curve.points[i].x)) continue;
      const svg_mark& m = marks.emplace_back(mark_of(curve.points[i], i));
      if (m.state == point_state::lost) {
        crosses += svg_cross(m.x, f.bottom);
        ++lost[m.x];
      }
      if (std::isfinite(m.y)) end = m.y;
    }
    traces.push_back(svg_trace(curve.style, marks) + crosses);
    ends.push_back(end);
  }
  const std::vector<std::string> labels = svg_labels(c, f, ends);
  std::string body;
  for (std::size_t i = 0; i < c.curves.size(); ++i)
    body += svg_curve_start(c.curves[i]) + traces[i] + labels[i] + "</g>\n";
  const svg_axis_text below = svg_x_axis(f, x, c.x, x.measured_ticks(12));
  return {
      picture_width(c, f.right + label_width(c)), f.bottom + below.height,
      svg_heading(c) + svg_y_axis(f, y, c.y) + below.body + body + svg_lost_counts(lost, f.bottom),
      "lines", f};
}

bool has_one_x(const chart& c) {
  double first = missing;
  for (const chart_curve& curve : c.curves)
    for (const chart_point& p : curve.points) {
      if (std::isnan(first)) first = p.x;
      if (p.x != first) return false;
    }
  return true;
}

svg_picture draw(const chart& c) {
  if (c.form == chart_form::layers) return vertical_bars(c);
  if (has_one_x(c)) return horizontal_bars(c);
  return c.form == chart_form::bars ? vertical_bars(c) : lines(c);
}

}  // namespace

std::string chart_svg(const std::vector<chart>& charts) {
  std::string body;
  double width = 0, height = 0;
  for (const chart& c : charts) {
    const svg_picture p = draw(c);
    body += fmt::format(
        "<g transform=\"translate({:.0f} 0)\" class=\"chart\" data-form=\"{}\" "
        "data-frame=\"{:.1f} {:.1f} {:.1f} {:.1f}\" data-y=\"{}\" "
        "data-top=\"{:.0f}\">\n{}</g>\n",
        width, p.form, p.frame.left, p.frame.right, p.frame.top, p.frame.bottom,
        c.y.scale == axis_scale::logarithmic ? "log" : "linear", svg_top - 12, p.body);
    width += p.width;
    height = std::max(height, p.height);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-size=\"12\" "
      "font-family=\"Helvetica, Arial, "
      "sans-serif\" fill=\"#222\">\n<rect class=\"paper\" "
      "width=\"100%\" height=\"100%\" fill=\"white\"/>\n{2}"
      "</svg>\n",
      width, height, body);
}

std::string chart_svg(const chart& c) { return chart_svg(std::vector<chart>{c}); }

}  // namespace quarry::tool

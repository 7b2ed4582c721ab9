// SPDX-License-Identifier: Apache-2.0
#include "chart/svg_bars.hpp"

#include "chart/svg_marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace quarry::tool {
namespace {

/// The x values as categories, in ascending order, and the index of each.
struct groups {
  chart_axis axis;
  std::map<double, std::size_t> index;
};

groups groups_of(const chart& c) {
  groups g{{c.x.name, c.x.unit, axis_scale::category, {}}, {}};
  for (const chart_curve& curve : c.curves)
    for (const chart_point& d : curve.points) g.index[d.x] = 0;
  for (auto& [x, index] : g.index) {
    index = g.axis.categories.size();
    g.axis.categories.push_back(c.x.scale == axis_scale::category
                                    ? c.x.categories[static_cast<std::size_t>(x)]
                                    : tick_text(x, c.x));
  }
  return g;
}

/// The values at the two ends of a bar. A layer starts where the layer below it ends.
struct value_range {
  double from, to;
};

}  // namespace

svg_picture vertical_bars(const chart& c) {
  const bool stacked = c.form == chart_form::layers;
  const groups g = groups_of(c);
  const auto count = static_cast<double>(std::max<std::size_t>(g.index.size(), 1));
  const double bars_per_group = stacked ? 1 : static_cast<double>(c.curves.size());
  chart_axis heights = c.y;
  if (stacked) heights.scale = axis_scale::linear;

  std::vector<double> tops(g.index.size()), all;
  std::vector<std::vector<value_range>> ranges;
  for (const chart_curve& curve : c.curves) {
    auto& these = ranges.emplace_back();
    for (const chart_point& p : curve.points) {
      double& top = tops[g.index.at(p.x)];
      const double from = stacked ? top : 0;
      these.push_back({from, from + p.y});
      if (std::isfinite(p.y)) top += p.y;
      all.push_back(from + p.y);
      if (!stacked) all.push_back(p.most);
    }
  }
  const chart_scale x(g.axis, {}, false), y(heights, all, true);
  const svg_frame f{svg_left,
                    svg_left + std::clamp(count * (bars_per_group * 9 + 14), 500.0, 1100.0),
                    svg_top, svg_top + frame_height(c)};
  const double step = (f.right - f.left) / count;
  const double width = stacked ? std::min(0.7 * step, 60.0) : 0.8 * step / bars_per_group;

  lost_counts lost;
  std::vector<std::string> bars;
  std::vector<double> preferred;
  for (std::size_t i = 0; i < c.curves.size(); ++i) {
    // The labels of layers are in the order of the layers, from top to bottom.
    preferred.push_back(f.top + svg_row * static_cast<double>(stacked ? c.curves.size() - i : i));
    std::string& body = bars.emplace_back();
    for (std::size_t k = 0; k < c.curves[i].points.size(); ++k) {
      const chart_point& p = c.curves[i].points[k];
      const double middle = f.x(x.position(static_cast<double>(g.index.at(p.x))));
      const double bar =
          stacked ? middle - width / 2 : middle - 0.4 * step + width * static_cast<double>(i);
      if (p.state == point_state::lost) {
        body += svg_cross(bar + width / 2, f.bottom);
        ++lost[bar + width / 2];
      }
      if (!chart_scale::shows(heights.scale, ranges[i][k].to)) continue;
      const double foot = stacked ? f.y(y.position(ranges[i][k].from)) : f.bottom;
      const double head = f.y(y.position(ranges[i][k].to));
      body += svg_bar(c.curves[i].style, p.state, {bar, head, width, foot - head},
                      fmt::format(" class=\"point\" data-index=\"{}\"", k));
      if (!stacked && chart_scale::shows(heights.scale, p.least))
        body += svg_error_bar(bar + width / 2, f.y(y.position(p.least)), bar + width / 2,
                              f.y(y.position(p.most)));
    }
  }
  const std::vector<std::string> labels = svg_labels(c, f, preferred);
  std::string body;
  for (std::size_t i = 0; i < c.curves.size(); ++i)
    body += svg_curve_start(c.curves[i]) + bars[i] + labels[i] + "</g>\n";
  const svg_axis_text below =
      svg_x_axis(f, x, g.axis, x.ticks(static_cast<unsigned>(g.index.size() + 1)));
  return {picture_width(c, f.right + label_width(c)), f.bottom + below.height,
          svg_heading(c) + svg_y_axis(f, y, heights) + below.body + body +
              svg_lost_counts(lost, f.bottom),
          stacked ? "layers" : "vertical", f};
}

svg_picture horizontal_bars(const chart& c) {
  struct entry {
    const chart_curve* curve;
    std::size_t index;
    const chart_point* point;
  };
  const auto is_shown = [&](const entry& e) { return chart_scale::shows(c.y.scale, e.point->y); };
  std::vector<entry> entries;
  std::vector<double> lengths;
  for (const chart_curve& curve : c.curves)
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      entries.push_back({&curve, i, &curve.points[i]});
      lengths.insert(lengths.end(), {curve.points[i].y, curve.points[i].most});
    }
  std::stable_sort(entries.begin(), entries.end(), [&](const entry& a, const entry& b) {
    return is_shown(a) && (!is_shown(b) || a.point->y < b.point->y);
  });

  constexpr double row_height = 20;
  const chart_scale y(c.y, lengths, true);
  const double margin = label_width(c) - 30;
  const svg_frame f{margin, margin + 500, svg_top,
                    svg_top + row_height * static_cast<double>(entries.size()) + 6};
  std::string body;
  for (const chart_tick& t : y.ticks(8))
    body += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" "
        "y1=\"{1:.1f}\" y2=\"{2:.1f}\" "
        "stroke=\"#e2e2e2\"/>\n",
        f.x(y.position(t.value)), f.top, f.bottom);
  double row = f.top + 4;
  for (const entry& e : entries) {
    double end = f.left;
    body += svg_curve_start(*e.curve, fmt::format(" transform=\"translate(0 {:.1f})\"", row));
    if (is_shown(e)) {
      end = std::max(f.x(y.position(e.point->y)), f.left + 1);
      body += svg_bar(e.curve->style, e.point->state, {f.left, 0, end - f.left, 13},
                      fmt::format(" class=\"point\" data-index=\"{}\"", e.index));
      if (chart_scale::shows(c.y.scale, e.point->least) &&
          chart_scale::shows(c.y.scale, e.point->most)) {
        body += svg_error_bar(f.x(y.position(e.point->least)), 6.5, f.x(y.position(e.point->most)),
                              6.5);
        end = std::max(end, f.x(y.position(e.point->most)));
      }
    }
    const bool fault =
        e.point->state == point_state::lost || e.point->state == point_state::unsound;
    body += fmt::format(
        "<text x=\"{:.1f}\" y=\"11\" text-anchor=\"end\">{}</text>\n"
        "<text class=\"{}\" x=\"{:.1f}\" y=\"11\" "
        "fill=\"{}\">{}</text>\n</g>\n",
        f.left - 8, xml_escaped(e.curve->name), fault ? "fault" : "value", end + 6,
        fault ? fault_colour : "#444", value_text(*e.point));
    row += row_height;
  }
  const svg_axis_text below = svg_x_axis(f, y, c.y, y.ticks(8));
  return {picture_width(c, f.right + 120), f.bottom + below.height,
          svg_heading(c) + body + below.body, "horizontal", f};
}

}  // namespace quarry::tool

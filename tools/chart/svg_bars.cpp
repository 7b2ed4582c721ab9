// SPDX-License-Identifier: Apache-2.0
#include "chart/svg_bars.hpp"

#include "chart/svg_marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace quarry::tool {
namespace {

/// The x values as categories, in order, and the index of each.
struct groups {
  chart_axis axis;
  std::map<double, std::size_t> index;
};

groups groups_of(const chart& c) {
  groups g{{c.x.name, c.x.unit, axis_scale::category, {}}, {}};
  for (const chart_curve& curve : c.curves)
    for (const chart_dot& d : curve.dots) g.index[d.x] = 0;
  for (auto& [x, index] : g.index) {
    index = g.axis.categories.size();
    g.axis.categories.push_back(c.x.scale == axis_scale::category
                                    ? c.x.categories[static_cast<std::size_t>(x)]
                                    : tick_text(x, c.x));
  }
  return g;
}

/// From where to where a bar reaches; layers stand on those before them.
struct reach {
  double from, to;
};

}  // namespace

svg_picture standing_bars(const chart& c) {
  const bool layers = c.form == chart_form::layers;
  const groups g = groups_of(c);
  const auto count = static_cast<double>(std::max<std::size_t>(g.index.size(), 1));
  const double side = layers ? 1 : static_cast<double>(c.curves.size());
  chart_axis heights = c.y;
  if (layers) heights.scale = axis_scale::linear;

  std::vector<double> tops(g.index.size()), all;
  std::vector<std::vector<reach>> reaches;
  for (const chart_curve& curve : c.curves) {
    auto& these = reaches.emplace_back();
    for (const chart_dot& d : curve.dots) {
      double& top = tops[g.index.at(d.x)];
      const double from = layers ? top : 0;
      these.push_back({from, from + d.y});
      if (std::isfinite(d.y)) top += d.y;
      all.push_back(from + d.y);
      if (!layers) all.push_back(d.most);
    }
  }
  const chart_scale x(g.axis, {}, false), y(heights, all, true);
  const svg_frame f{svg_left, svg_left + std::clamp(count * (side * 9 + 14), 500.0, 1100.0),
                    svg_top, svg_top + frame_height(c)};
  const double step = (f.right - f.left) / count;
  const double thick = layers ? std::min(0.7 * step, 60.0) : 0.8 * step / side;

  std::string body;
  std::map<double, unsigned> lost;
  std::vector<double> wishes;
  for (std::size_t i = 0; i < c.curves.size(); ++i) {
    const auto number = static_cast<double>(i);
    // Layers are named from the top down, as they lie.
    wishes.push_back(f.top + svg_row * static_cast<double>(layers ? c.curves.size() - i : i));
    for (std::size_t k = 0; k < c.curves[i].dots.size(); ++k) {
      const chart_dot& d = c.curves[i].dots[k];
      const double middle = f.x(x.place(static_cast<double>(g.index.at(d.x))));
      const double left = layers ? middle - thick / 2 : middle - 0.4 * step + thick * number;
      if (d.state == dot_state::lost) ++lost[left + thick / 2];
      if (!chart_scale::shows(heights.scale, reaches[i][k].to)) continue;
      const double foot = layers ? f.y(y.place(reaches[i][k].from)) : f.bottom;
      const double head = f.y(y.place(reaches[i][k].to));
      body += svg_bar(c.curves[i].look, d.state, {left, head, thick, foot - head});
      if (!layers && chart_scale::shows(heights.scale, d.least))
        body += svg_whisker(left + thick / 2, f.y(y.place(d.least)), left + thick / 2,
                            f.y(y.place(d.most)));
    }
  }
  const svg_axis_text below =
      svg_x_axis(f, x, g.axis, x.ticks(static_cast<unsigned>(g.index.size() + 1)));
  return {picture_width(c, f.right + label_width(c)), f.bottom + below.height,
          svg_heading(c) + svg_y_axis(f, y, heights) + below.body + body +
              svg_labels(c, f, wishes) + svg_crosses(lost, f.bottom)};
}

svg_picture lying_bars(const chart& c) {
  struct entry {
    const chart_curve* curve;
    const chart_dot* dot;
  };
  const auto shown = [&](const entry& e) { return chart_scale::shows(c.y.scale, e.dot->y); };
  std::vector<entry> entries;
  std::vector<double> lengths;
  for (const chart_curve& curve : c.curves)
    for (const chart_dot& d : curve.dots) {
      entries.push_back({&curve, &d});
      lengths.insert(lengths.end(), {d.y, d.most});
    }
  std::stable_sort(entries.begin(), entries.end(), [&](const entry& a, const entry& b) {
    return shown(a) && (!shown(b) || a.dot->y < b.dot->y);
  });

  constexpr double line = 20;
  const chart_scale y(c.y, lengths, true);
  const double left = label_width(c) - 30;
  const svg_frame f{left, left + 500, svg_top,
                    svg_top + line * static_cast<double>(entries.size()) + 6};
  std::string body;
  for (const chart_tick& t : y.ticks(8))
    body += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#e2e2e2\"/>\n",
        f.x(y.place(t.value)), f.top, f.bottom);
  double at = f.top + 4;
  for (const entry& e : entries) {
    double end = f.left;
    if (shown(e)) {
      end = std::max(f.x(y.place(e.dot->y)), f.left + 1);
      body += svg_bar(e.curve->look, e.dot->state, {f.left, at, end - f.left, 13});
      if (chart_scale::shows(c.y.scale, e.dot->least) &&
          chart_scale::shows(c.y.scale, e.dot->most)) {
        body +=
            svg_whisker(f.x(y.place(e.dot->least)), at + 6.5, f.x(y.place(e.dot->most)), at + 6.5);
        end = std::max(end, f.x(y.place(e.dot->most)));
      }
    }
    const bool bad = e.dot->state == dot_state::lost || e.dot->state == dot_state::unsound;
    body += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n",
        f.left - 8, at + 11, xml_escaped(e.curve->name), end + 6, at + 11,
        bad ? fault_colour : "#444", value_text(*e.dot));
    at += line;
  }
  const svg_axis_text below = svg_x_axis(f, y, c.y, y.ticks(8));
  return {picture_width(c, f.right + 120), f.bottom + below.height,
          svg_heading(c) + body + below.body};
}

}  // namespace quarry::tool

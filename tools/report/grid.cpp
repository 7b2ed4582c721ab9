// SPDX-License-Identifier: Apache-2.0
#include "report/grid.hpp"

#include "chart/scale.hpp"
#include "chart/svg_marks.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace quarry::tool::report {
namespace {

std::string x_text(const chart_axis& axis, double x) {
  return axis.scale == axis_scale::category ? axis.categories.at(static_cast<std::size_t>(x))
                                            : tick_text(x, axis);
}

std::vector<double> evenly_spaced(const std::set<double>& all, std::size_t most) {
  std::vector<double> xs(all.begin(), all.end());
  if (xs.size() <= most || most < 2) return xs;
  std::vector<double> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(xs[i * (xs.size() - 1) / (most - 1)]);
  return kept;
}

std::string x_heading(const chart_axis& x) { return x.title().empty() ? "" : x.title() + ":"; }

}  // namespace

grid grid_of(const view& v, std::size_t columns) {
  std::set<double> all;
  for (const chart_curve& curve : v.picture.curves)
    for (const chart_point& d : curve.points) all.insert(d.x);
  const std::vector<double> xs = evenly_spaced(all, columns);
  grid g;
  g.head.push_back(x_heading(v.picture.x));
  for (const double x : xs) {
    const std::string text = x_text(v.picture.x, x);
    g.head.push_back(text.empty() ? v.picture.y.title() : text);
  }
  for (const chart_curve& curve : v.picture.curves) {
    auto& row = g.rows.emplace_back();
    row.push_back({curve.name});
    for (const double x : xs) {
      const auto at = std::find_if(curve.points.begin(), curve.points.end(),
                                   [&](const chart_point& d) { return d.x == x; });
      row.push_back(at == curve.points.end() ? grid_cell{"", point_state::good}
                                             : grid_cell{value_text(*at), at->state});
    }
  }
  return g;
}

grid grid_of(const figure& f) {
  grid g;
  if (f.views.empty()) return g;
  // A view may lack points that another view has: the rows are collected from all views.
  struct key {
    std::string x_text, series;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the 0 in the implicit operator<
    auto operator<=>(const key&) const = default;
  };
  std::vector<key> order;
  std::map<key, std::vector<grid_cell>> cells;
  for (std::size_t i = 0; i < f.views.size(); ++i)
    for (const chart_curve& curve : f.views[i].picture.curves)
      for (const chart_point& d : curve.points) {
        const key k{x_text(f.views[i].picture.x, d.x), curve.name};
        const auto [at, is_new] = cells.try_emplace(k, f.views.size());
        if (is_new) order.push_back(k);
        at->second[i] = {value_text(d), d.state};
      }
  std::map<std::string, std::size_t> first;
  for (const key& k : order) first.try_emplace(k.x_text, first.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](const key& a, const key& b) { return first[a.x_text] < first[b.x_text]; });
  g.head = {f.views[0].picture.x.title(), "allocator"};
  for (const view& v : f.views) g.head.push_back(v.picture.y.title());
  std::string last;
  for (const key& k : order) {
    std::vector<grid_cell> row = {{k.x_text == last && !g.rows.empty() ? "" : k.x_text},
                                  {k.series}};
    last = k.x_text;
    const auto& these = cells[k];
    row.insert(row.end(), these.begin(), these.end());
    g.rows.push_back(std::move(row));
  }
  if (first.size() == 1) {  // a single x value needs no column
    g.head.erase(g.head.begin());
    for (auto& row : g.rows) row.erase(row.begin());
  }
  return g;
}

std::vector<std::string> merged(const std::vector<series_commands>& commands) {
  constexpr std::string_view option = "--allocators ";
  struct parts {
    std::string before, names, after;
    bool listed = false;
  };
  std::vector<parts> all;
  for (const series_commands& s : commands)
    for (const std::string& command : s.commands) {
      parts p{command, "", "", false};
      if (const std::size_t at = command.find(option); at != std::string::npos) {
        const std::size_t begin = at + option.size();
        const std::size_t end = std::min(command.find(' ', begin), command.size());
        p = {command.substr(0, begin), command.substr(begin, end - begin), command.substr(end),
             true};
      }
      const auto same = std::find_if(all.begin(), all.end(), [&](const parts& o) {
        return o.before == p.before && o.after == p.after && o.listed == p.listed;
      });
      if (same == all.end())
        all.push_back(p);
      else if (p.listed && ("," + same->names + ",").find("," + p.names + ",") == std::string::npos)
        same->names += "," + p.names;
    }
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const parts& p : all) texts.push_back(p.before + p.names + p.after);
  return texts;
}

}  // namespace quarry::tool::report

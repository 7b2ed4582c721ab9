// SPDX-License-Identifier: Apache-2.0
/// The data points of an experiment on one backend, as charts and remarks.

#include "chart/scale.hpp"
#include "common/catalogue.hpp"
#include "common/text.hpp"
#include "report/arrange.hpp"
#include "report/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace quarry::tool::report {
namespace {

std::string family_of(const std::string& name) { return name.substr(0, name.find('-')); }

/// Returns the x axis of the experiment: a category axis if a point has a string as x.
chart_axis x_axis_of(const json& experiment, const std::vector<const json*>& points) {
  chart_axis axis = axis_of(experiment.value("x", json()), axis_scale::linear);
  const bool has_strings = std::any_of(points.begin(), points.end(), [](const json* p) {
    return !p->contains("x") || !(*p)["x"].is_number();
  });
  if (has_strings) axis.scale = axis_scale::category;
  return axis;
}

std::string x_text(const json& point, const chart_axis& axis) {
  const double number = number_of(point, "x");
  return std::isfinite(number) ? tick_text(number, axis) : text_of(point, "x");
}

/// Formats x with its unit: "64 B", "50 %".
std::string x_with_unit(const json& point, const chart_axis& axis) {
  const std::string text = x_text(point, axis);
  const bool bare = std::isfinite(number_of(point, "x")) && !axis.unit.empty() &&
                    text.find(' ') == std::string::npos;
  return bare ? text + " " + axis.unit : text;
}

double x_value(const json& point, chart_axis& axis) {
  if (axis.scale != axis_scale::category) return number_of(point, "x");
  const std::string text = x_text(point, axis);
  const auto at = std::find(axis.categories.begin(), axis.categories.end(), text);
  const auto index = at - axis.categories.begin();
  if (at == axis.categories.end()) axis.categories.push_back(text);
  return static_cast<double>(index);
}

bool is_long_list(const json& point, const std::string& field) {
  const auto at = point.find(field);
  return at != point.end() && at->is_array() && at->size() > 1;
}

chart_point point_of(const json& point, const std::string& field) {
  chart_point d;
  d.state = state_of(point);
  if (const auto at = point.find(field); at != point.end() && at->is_array())
    d.y = at->size() == 1 && (*at)[0].is_number() ? (*at)[0].get<double>() : missing;
  else
    d.y = number_of(point, field);
  d.least = number_of(point, "min_" + field);
  d.most = number_of(point, "max_" + field);
  return d;
}

chart_curve& curve_named(chart& c, const json& point, const std::string& name,
                         style_table& styles) {
  const auto at = std::find_if(c.curves.begin(), c.curves.end(),
                               [&](const chart_curve& curve) { return curve.name == name; });
  if (at != c.curves.end()) return *at;
  const std::string owner = text_of(point, "allocator");
  c.curves.push_back({name, owner, styles.of(owner, name), {}});
  return c.curves.back();
}

/// Adds a curve whose x values are the indices of the list.
void add_list(chart& c, const json& point, const measure& m, const std::string& name,
              style_table& styles) {
  chart_curve& curve = curve_named(c, point, name, styles);
  const point_state state = state_of(point);
  const auto at = point.find(m.field);
  if (at != point.end() && at->is_array())
    for (std::size_t i = 0; i < at->size(); ++i)
      curve.points.push_back({static_cast<double>(i),
                              (*at)[i].is_number() ? (*at)[i].get<double>() : missing, missing,
                              missing, state});
  else if (state == point_state::lost)
    curve.points.push_back({0, missing, missing, missing, state});
}

/// An allocator has the same style in all figures. Its settings ("XMalloc, 4 FIFOs") get the dashes
/// that its family does not use in this chart. If a family needs more dashes than exist, every
/// curve of the chart gets a colour of its own.
void make_distinct(std::vector<chart_curve>& curves, style_table& styles) {
  const auto is_setting = [](const chart_curve& c) {
    return !c.owner.empty() && c.name != c.owner;
  };
  std::map<unsigned, std::set<unsigned>> taken;  // variants of each family
  for (const chart_curve& c : curves) {
    const auto [family, variant] = styles.order(c.owner, c.name);
    if (!is_setting(c)) taken[family].insert(variant);
  }
  for (chart_curve& c : curves) {
    if (!is_setting(c)) continue;
    const unsigned family = styles.order(c.owner, c.name).first;
    unsigned variant = 0;
    while (!taken[family].insert(variant).second) ++variant;
    c.style = style_of(family, variant);
  }
  const auto too_many = [](const auto& t) { return t.second.size() > std::size(chart_dashes); };
  if (std::any_of(taken.begin(), taken.end(), too_many))
    for (unsigned i = 0; i < curves.size(); ++i) curves[i].style = style_of(i, 0);
}

/// Whether the point is drawn: it has a value, or a fault.
bool is_drawn(const chart_point& d) {
  return std::isfinite(d.y) || d.state == point_state::lost || d.state == point_state::unsound;
}

view view_of(const json& experiment, const measure& m, const std::vector<const json*>& points,
             style_table& styles) {
  view v;
  v.field = m.field;
  v.better = m.better;
  chart& c = v.picture;
  c.form = form_of(text_of(experiment, "form"));
  c.y = m.axis;
  c.x = x_axis_of(experiment, points);
  const bool lists = std::any_of(points.begin(), points.end(),
                                 [&](const json* p) { return is_long_list(*p, m.field); });
  if (lists) {
    const chart_axis rows = c.x;
    c.x = m.list_axis;
    c.form = chart_form::lines;
    const bool one_x = std::all_of(points.begin(), points.end(), [&](const json* p) {
      return p->value("x", json()) == points[0]->value("x", json());
    });
    for (const json* p : points)
      add_list(c, *p, m, one_x ? series_of(*p) : series_of(*p) + ", " + x_text(*p, rows), styles);
  } else {
    for (const json* p : points) {
      chart_point d = point_of(*p, m.field);
      d.x = x_value(*p, c.x);
      if (is_drawn(d)) curve_named(c, *p, series_of(*p), styles).points.push_back(d);
    }
  }
  std::erase_if(c.curves, [](const chart_curve& curve) { return curve.points.empty(); });
  std::stable_sort(c.curves.begin(), c.curves.end(),
                   [&](const chart_curve& a, const chart_curve& b) {
                     return styles.order(a.owner, a.name) < styles.order(b.owner, b.name);
                   });
  make_distinct(c.curves, styles);
  bool positive = false;
  for (chart_curve& curve : c.curves) {
    std::stable_sort(curve.points.begin(), curve.points.end(),
                     [](const chart_point& a, const chart_point& b) { return a.x < b.x; });
    for (const chart_point& d : curve.points) {
      positive = positive || d.y > 0;
      if (std::isfinite(d.y) && d.y <= 0 && c.y.scale == axis_scale::logarithmic) ++v.not_shown;
    }
  }
  if (!positive && v.not_shown > 0) {
    c.y.scale = axis_scale::linear;
    v.not_shown = 0;
  }
  return v;
}

bool has_values(const view& v) {
  for (const chart_curve& curve : v.picture.curves)
    for (const chart_point& d : curve.points)
      if (std::isfinite(d.y)) return true;
  return false;
}

void add_remark(std::vector<remark>& all, point_state state, const std::string& series,
                const std::string& what, const std::string& at) {
  const auto same = [&](const remark& r) {
    return r.state == state && r.series == series && r.what == what;
  };
  auto found = std::find_if(all.begin(), all.end(), same);
  if (found == all.end()) found = all.insert(found, {state, series, what, {}});
  found->at.push_back(at);
}

/// Returns the remarks, the worst state first.
std::vector<remark> remarks_of(const std::vector<const json*>& points, const chart_axis& x) {
  std::vector<remark> all;
  for (const json* p : points) {
    const point_state state = state_of(*p);
    const std::string series = series_of(*p), at = x_with_unit(*p, x), note = text_of(*p, "note");
    const auto counted = [&](const char* key, const char* what, point_state severity) {
      if (const double n = number_of(*p, key); n > 0 && state != point_state::lost)
        add_remark(
            all, severity, series, what,
            fmt::format("{}{}{}", at, at.empty() ? "" : ": ",
                        n < 1e15 ? grouped(static_cast<std::uint64_t>(n)) : short_number(n)));
    };
    if (state == point_state::lost || state == point_state::skipped ||
        state == point_state::given_up) {
      const std::string outcome = text_of(*p, "outcome");
      add_remark(all, state, series,
                 note.empty() || note == outcome ? outcome : fmt::format("{}: {}", outcome, note),
                 at);
    }
    counted("corrupt", "corrupt blocks", point_state::unsound);
    counted("misaligned", "misaligned blocks", point_state::unsound);
    counted("failures", "failed allocations", point_state::failed);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const remark& a, const remark& b) { return a.state > b.state; });
  return all;
}

std::vector<series_commands> commands_of(const std::vector<const json*>& points) {
  std::vector<series_commands> all;
  for (const json* p : points) {
    const std::string series = series_of(*p), command = text_of(*p, "command");
    if (command.empty()) continue;
    auto at = std::find_if(all.begin(), all.end(),
                           [&](const series_commands& s) { return s.series == series; });
    if (at == all.end()) at = all.insert(at, {series, {}});
    if (std::find(at->commands.begin(), at->commands.end(), command) == at->commands.end())
      at->commands.push_back(command);
  }
  return all;
}

}  // namespace

style_table::style_table() {
  for (const std::string_view name : allocator_names()) of(std::string(name), std::string(name));
}

std::pair<unsigned, unsigned> style_table::order(const std::string& allocator,
                                                 const std::string& series) {
  const std::string family = family_of(allocator.empty() ? series : allocator);
  const auto number = families_.try_emplace(family, static_cast<unsigned>(families_.size()));
  auto& variants = variants_[family];
  if (variants.empty()) variants[family] = 0;  // reserves the plain form
  const auto variant = variants.try_emplace(series, static_cast<unsigned>(variants.size()));
  return {number.first->second, variant.first->second};
}

curve_style style_table::of(const std::string& allocator, const std::string& series) {
  const auto [family, variant] = order(allocator, series);
  return style_of(family, variant);
}

figure figure_of(const json& experiment, const std::vector<const json*>& points,
                 style_table& styles) {
  figure f;
  const json measures = experiment.value("y", json::array());
  for (const json& y : measures.empty() ? default_measures() : measures)
    f.views.push_back(view_of(experiment, measure_of(y), points, styles));
  // Measures without a value are left out. If no measure has one, the first view shows the lost
  // points.
  if (std::any_of(f.views.begin(), f.views.end(), has_values))
    std::erase_if(f.views, [](const view& v) { return !has_values(v); });
  else
    f.views.resize(1);
  f.remarks = remarks_of(points, x_axis_of(experiment, points));
  f.commands = commands_of(points);
  return f;
}

}  // namespace quarry::tool::report

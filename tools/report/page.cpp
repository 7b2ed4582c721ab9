// SPDX-License-Identifier: Apache-2.0
#include "report/page.hpp"

#include "chart/svg_chart.hpp"
#include "chart/svg_frame.hpp"
#include "chart/svg_marks.hpp"
#include "common/parse.hpp"
#include "report/assets.hpp"
#include "report/grid.hpp"
#include "report/rank.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>

namespace quarry::tool::report {
namespace {

using out_json = nlohmann::ordered_json;

constexpr std::size_t max_grid_columns = 40;

/// Rounds to six significant digits; null if the value is missing.
out_json shortened(double v) {
  if (!std::isfinite(v)) return nullptr;
  return std::strtod(fmt::format("{:.6g}", v).c_str(), nullptr);  // stod() rejects denormals
}

std::string_view scale_text(axis_scale s) {
  return s == axis_scale::logarithmic ? "log" : s == axis_scale::category ? "category" : "linear";
}

std::string_view form_text(chart_form f) {
  constexpr std::string_view texts[] = {"lines", "bars", "layers", "table"};
  return texts[static_cast<std::size_t>(f)];
}

out_json to_json(const chart_axis& a) {
  out_json j = {{"name", a.name}, {"unit", a.unit}, {"scale", scale_text(a.scale)}};
  if (a.scale == axis_scale::category) j["categories"] = a.categories;
  return j;
}

out_json to_json(const chart_curve& c) {
  out_json j = {{"name", c.name}, {"style", {c.style.colour, c.style.marker, c.style.dash}}};
  j["points"] = out_json::array();
  for (const chart_point& p : c.points) {
    out_json point = {{"x", shortened(p.x)}, {"y", shortened(p.y)}};
    if (std::isfinite(p.least) && std::isfinite(p.most)) {
      point["least"] = shortened(p.least);
      point["most"] = shortened(p.most);
    }
    if (p.state != point_state::good) point["state"] = state_text(p.state);
    j["points"].push_back(std::move(point));
  }
  return j;
}

out_json to_json(const grid& g) {
  out_json rows = out_json::array();
  for (const auto& row : g.rows) {
    out_json cells = out_json::array();
    for (const grid_cell& c : row)
      if (c.state == point_state::good)
        cells.push_back(c.text);
      else
        cells.push_back({c.text, state_text(c.state)});
    rows.push_back(std::move(cells));
  }
  return {{"head", g.head}, {"rows", std::move(rows)}};
}

out_json to_json(const figure& f, chart_form form) {
  out_json j = {{"backend", f.backend}, {"anchor", f.anchor}};
  j["views"] = out_json::array();
  for (const view& v : f.views) {
    out_json curves = out_json::array();
    for (const chart_curve& c : v.picture.curves) curves.push_back(to_json(c));
    out_json one = {{"field", v.field},
                    {"form", form_text(v.picture.form)},
                    {"x", to_json(v.picture.x)},
                    {"y", to_json(v.picture.y)},
                    {"curves", std::move(curves)}};
    if (v.not_shown > 0) one["not_shown"] = v.not_shown;
    if (form != chart_form::table) {
      one["grid"] = to_json(grid_of(v, max_grid_columns));
      one["svg"] = chart_svg(v.picture);
    }
    j["views"].push_back(std::move(one));
  }
  if (form == chart_form::table) j["grid"] = to_json(grid_of(f));
  j["remarks"] = out_json::array();
  for (const remark& r : f.remarks)
    j["remarks"].push_back(
        {{"state", state_text(r.state)}, {"series", r.series}, {"what", r.what}, {"at", r.at}});
  j["command"] = merged(f.commands);
  j["commands"] = out_json::array();
  for (const series_commands& s : f.commands)
    j["commands"].push_back({{"series", s.series}, {"commands", s.commands}});
  return j;
}

out_json to_json(const std::vector<standing>& list) {
  out_json j = out_json::array();
  for (const standing& s : list)
    j.push_back({{"series", s.series}, {"text", slowdown_text(s.slowdown)}, {"at", s.at}});
  return j;
}

out_json to_json(const std::vector<overall>& list) {
  out_json j = out_json::array();
  for (const overall& o : list)
    j.push_back({{"allocator", o.allocator},
                 {"text", mean_text(o)},
                 {"experiments", o.experiments},
                 {"best", o.best},
                 {"unsound", o.unsound}});
  return j;
}

out_json to_json(const document& d, compared_allocators which) {
  const std::vector<ranking> rankings = rank_all(d, which);
  out_json j = {{"workloads", out_json::array()}, {"overall", out_json::array()}};
  for (const ranking& r : rankings) {
    const experiment& e = d.experiments[r.experiment];
    const figure& f = e.figures[r.figure];
    j["workloads"].push_back({{"title", e.title},
                              {"anchor", f.anchor},
                              {"backend", f.backend},
                              {"measure", f.views[r.view].picture.y.title()},
                              {"main", r.main},
                              {"of", r.of},
                              {"complete", to_json(r.complete)},
                              {"partial", to_json(r.partial)},
                              {"unsound", r.unsound}});
  }
  for (const summary& s : summarise(d, rankings))
    j["overall"].push_back({{"backend", s.backend},
                            {"experiments", s.experiments},
                            {"in_most", to_json(s.in_most)},
                            {"in_few", to_json(s.in_few)}});
  return j;
}

/// The style rules that replace the colours of curves in the dark theme.
std::string dark_theme_rules() {
  std::string rules;
  for (unsigned i = 0; i < chart_colours; ++i)
    rules +=
        fmt::format(":root[data-theme=\"dark\"] .curve.c{} {{ color: {}; }}\n", i, dark_colours[i]);
  return rules;
}

/// Prevents the data from ending the script element that holds them.
std::string as_script_content(std::string json_text) {
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string_view>{"</", "<\\/"}, {"<!--", "\\u003c!--"}})
    for (std::size_t at = 0; (at = json_text.find(from, at)) != std::string::npos; at += to.size())
      json_text.replace(at, from.size(), to);
  return json_text;
}

void replace(std::string& text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) throw error(fmt::format("the page template lacks {}", mark));
  text.replace(at, mark.size(), by);
}

}  // namespace

out_json page_data(const document& d, const std::string& title) {
  out_json j = {
      {"title", title},
      {"made", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::chrono::system_clock::now()))},
      {"points", d.points},
      {"replaced", d.replaced}};
  for (const char* key : {"backends", "runs", "experiments", "claims", "maps"})
    j[key] = out_json::array();
  for (const backend& m : d.backends)
    j["backends"].push_back({{"kind", m.kind}, {"label", m.label}, {"slug", m.slug}});
  for (const run& r : d.runs)
    j["runs"].push_back({{"backend", r.backend},
                         {"driver", r.driver},
                         {"cuda", r.cuda},
                         {"compiler", r.compiler},
                         {"commit", r.commit},
                         {"first", r.first_date},
                         {"last", r.last_date},
                         {"points", r.points}});
  for (const experiment& e : d.experiments) {
    out_json figures = out_json::array();
    for (const figure& f : e.figures) figures.push_back(to_json(f, e.form));
    j["experiments"].push_back({{"id", e.id},
                                {"title", e.title},
                                {"source", e.source},
                                {"note", e.note},
                                {"group", e.group},
                                {"form", form_text(e.form)},
                                {"figures", std::move(figures)}});
  }
  j["rankings"] = {{"general", to_json(d, compared_allocators::general)},
                   {"all", to_json(d, compared_allocators::all)}};
  for (const claim& c : d.claims)
    j["claims"].push_back({{"id", c.id},
                           {"source", c.source},
                           {"claim", c.what},
                           {"paper", c.paper},
                           {"ours", c.ours},
                           {"unit", c.unit},
                           {"how", c.how},
                           {"ratio", shortened(c.ratio)},
                           {"backends", c.backends}});
  for (const heap_picture& m : d.maps)
    j["maps"].push_back(
        {{"title", m.title}, {"allocator", m.allocator}, {"svg", m.svg}, {"backends", m.backends}});
  return j;
}

std::string page_of(const document& d, const std::string& title) {
  std::string page(page_template);
  replace(page, "{{title}}", xml_escaped(title));
  replace(page, "{{style}}", std::string(page_style) + dark_theme_rules());
  replace(page, "{{script}}", page_script);
  replace(page, "{{data}}", as_script_content(page_data(d, title).dump()));
  return page;
}

}  // namespace quarry::tool::report

// SPDX-License-Identifier: Apache-2.0
/// Arranges records: backends, runs, and a figure for each experiment and backend.

#include "report/arrange.hpp"

#include "report/fields.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

namespace quarry::tool::report {
namespace {

std::string slug_of(const std::string& text) {
  std::string slug;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      slug += static_cast<char>(std::tolower(byte));
    else if (!slug.empty() && slug.back() != '-')
      slug += '-';
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "x" : slug;
}

/// GPUs come first, then the CPU executor, then all others, each in the order of the files.
std::vector<backend> backends_of(const std::vector<record>& points) {
  std::vector<backend> all;
  for (const record& r : points) {
    backend m{text_of(r.line, "backend"), text_of(r.line, "device"), "", ""};
    const auto same = [&](const backend& o) { return o.kind == m.kind && o.device == m.device; };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(m);
  }
  const auto rank = [](const backend& m) { return m.kind == "cuda" ? 0 : m.kind == "cpu" ? 1 : 2; };
  std::stable_sort(all.begin(), all.end(),
                   [&](const backend& a, const backend& b) { return rank(a) < rank(b); });
  std::map<std::string, int> seen;
  for (backend& m : all) {
    m.label = !m.device.empty() ? m.device : !m.kind.empty() ? m.kind : "unknown backend";
    if (++seen[m.label] > 1) m.label += " (" + m.kind + ")";
    m.slug = slug_of(m.kind + " " + m.device);
    if (const int n = ++seen["slug " + m.slug]; n > 1) m.slug += "-" + std::to_string(n);
  }
  return all;
}

std::size_t backend_of(const document& d, const json& line) {
  const std::string kind = text_of(line, "backend"), device = text_of(line, "device");
  const auto at = std::find_if(d.backends.begin(), d.backends.end(), [&](const backend& m) {
    return m.kind == kind && m.device == device;
  });
  return static_cast<std::size_t>(at - d.backends.begin());
}

/// Claims and maps that name a backend without a device refer to all backends of that kind.
std::vector<std::size_t> backends_named(const document& d, const json& line) {
  const std::string kind = text_of(line, "backend"), device = text_of(line, "device");
  std::vector<std::size_t> named;
  for (std::size_t i = 0; i < d.backends.size(); ++i)
    if ((d.backends[i].kind == kind && (device.empty() || d.backends[i].device == device)) ||
        (!kind.empty() && d.backends[i].device == kind))
      named.push_back(i);
  return named;
}

/// Returns the newest of the points that have experiment, backend, series and x in common; of
/// several with the same date the last.
std::vector<const record*> newest(const std::vector<record>& points) {
  std::map<std::vector<std::string>, const record*> newest_at;
  const auto newest_like = [&](const record& r) -> const record*& {
    return newest_at[{text_of(r.line, "experiment"), text_of(r.line, "backend"),
                      text_of(r.line, "device"), series_of(r.line),
                      r.line.value("x", json()).dump()}];
  };
  for (const record& r : points) {
    const record*& at = newest_like(r);
    if (at == nullptr || text_of(at->line, "date") <= text_of(r.line, "date")) at = &r;
  }
  std::vector<const record*> kept;
  for (const record& r : points)
    if (newest_like(r) == &r) kept.push_back(&r);
  return kept;
}

void count_in_run(document& d, std::size_t where, const json& line) {
  run r{where,
        text_of(line, "driver"),
        text_of(line, "cuda"),
        text_of(line, "compiler"),
        text_of(line, "commit"),
        "",
        "",
        0};
  auto at = std::find_if(d.runs.begin(), d.runs.end(), [&](const run& o) {
    return std::tie(o.backend, o.driver, o.cuda, o.compiler, o.commit) ==
           std::tie(r.backend, r.driver, r.cuda, r.compiler, r.commit);
  });
  if (at == d.runs.end()) at = d.runs.insert(at, r);
  const std::string date = text_of(line, "date");
  if (!date.empty() && (at->first_date.empty() || date < at->first_date)) at->first_date = date;
  at->last_date = std::max(at->last_date, date);
  ++at->points;
}

claim claim_of(const document& d, const json& line) {
  claim c{text_of(line, "id"),
          text_of(line, "source"),
          text_of(line, "claim"),
          claim_text(line.value("paper", json())),
          claim_text(line.value("ours", json())),
          text_of(line, "unit"),
          text_of(line, "how"),
          missing,
          backends_named(d, line)};
  c.ratio = number_of(line, "ours") / number_of(line, "paper");
  return c;
}

/// Replaces a description by a later one and keeps the measures of both: backends may differ in
/// what they measure.
void merge_description(json& before, const json& line) {
  json y = line.value("y", json::array());
  for (const json& old : before.value("y", json::array())) {
    const auto same = [&](const json& one) { return one["field"] == old["field"]; };
    if (std::none_of(y.begin(), y.end(), same)) y.push_back(old);
  }
  before = line;
  before["y"] = std::move(y);
}

/// Returns the description of each experiment that has points. An experiment without a description
/// gets a default one.
std::vector<json> described(const records& all, const std::vector<const record*>& points) {
  std::vector<json> in_order;
  std::map<std::string, std::size_t> index;
  std::map<std::string, bool> has_points;
  for (const record* r : points) has_points[text_of(r->line, "experiment")] = true;
  for (const record& r : all.experiments) {
    const std::string id = text_of(r.line, "id");
    if (!has_points[id]) continue;
    const auto [at, is_new] = index.try_emplace(id, in_order.size());
    if (is_new)
      in_order.push_back(r.line);
    else
      merge_description(in_order[at->second], r.line);
  }
  for (const record* r : points) {
    const std::string id = text_of(r->line, "experiment");
    if (index.try_emplace(id, in_order.size()).second)
      in_order.push_back({{"id", id}, {"title", id}, {"y", default_measures()}});
  }
  return in_order;
}

using by_backend = std::map<std::size_t, std::vector<const json*>>;

experiment experiment_of(const document& d, const json& line, const by_backend& points,
                         style_table& styles) {
  const std::string id = text_of(line, "id"), title = text_of(line, "title");
  experiment e{id,
               title.empty() ? id : title,
               text_of(line, "source"),
               text_of(line, "note"),
               text_of(line, "group"),
               form_of(text_of(line, "form")),
               {}};
  for (const auto& [number, here] : points) {
    figure f = figure_of(line, here, styles);
    f.backend = number;
    f.anchor = slug_of(id) + "--" + d.backends[number].slug;
    for (view& v : f.views) {
      v.picture.title = e.title;
      v.picture.subtitle = (e.source.empty() ? "" : e.source + "; ") + d.backends[number].label;
    }
    e.figures.push_back(std::move(f));
  }
  return e;
}

}  // namespace

std::string series_of(const json& point) {
  const std::string series = text_of(point, "series");
  return series.empty() ? text_of(point, "allocator") : series;
}

document arrange(const records& all) {
  document d;
  d.backends = backends_of(all.points);
  for (const record& r : all.points) count_in_run(d, backend_of(d, r.line), r.line);
  const std::vector<const record*> points = newest(all.points);
  d.points = points.size();
  d.replaced = all.points.size() - points.size();
  style_table styles;
  std::map<std::string, by_backend> by_experiment;
  for (const record* r : points) {
    styles.of(text_of(r->line, "allocator"), series_of(r->line));
    by_experiment[text_of(r->line, "experiment")][backend_of(d, r->line)].push_back(&r->line);
  }
  for (const json& line : described(all, points))
    d.experiments.push_back(experiment_of(d, line, by_experiment[text_of(line, "id")], styles));
  for (const record& r : all.claims) d.claims.push_back(claim_of(d, r.line));
  for (const record& r : all.maps)
    d.maps.push_back({text_of(r.line, "title"), text_of(r.line, "allocator"),
                      text_of(r.line, "svg"), backends_named(d, r.line)});
  return d;
}

}  // namespace quarry::tool::report

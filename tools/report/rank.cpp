// SPDX-License-Identifier: Apache-2.0
#include "report/rank.hpp"

#include "chart/scale.hpp"
#include "common/catalogue.hpp"
#include "report/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace quarry::tool::report {
namespace {

bool is_compared(const chart_curve& curve, compared_allocators which) {
  if (curve.owner.empty() || curve.owner == "baseline") return false;  // not an allocator
  bool general = true;
  visit_allocator(curve.owner, [&](auto entry) {
    using type = typename decltype(entry)::type;
    general = type::can.frees_one && !type::can.overwrites;
  });
  return which == compared_allocators::all || general;
}

/// Whether the CPU executor counts the work of the allocator.
bool has_counts(const chart_curve& curve) {
  bool counted = true;
  visit_allocator(curve.owner, [&](auto entry) { counted = decltype(entry)::type::can.owns_pool; });
  return counted;
}

bool is_count(const view& v) { return v.field.find("atomics") != std::string::npos; }

bool is_sound(const chart_curve& curve) {
  return std::none_of(curve.points.begin(), curve.points.end(), [](const chart_point& d) {
    return d.state == point_state::unsound || d.state == point_state::lost;
  });
}

/// The values of the compared curves at each x.
using values = std::map<double, std::map<const chart_curve*, double>>;

values values_of(const std::vector<const chart_curve*>& curves, direction better) {
  std::map<double, bool> without_failures;
  for (const chart_curve* curve : curves)
    for (const chart_point& d : curve->points)
      if (std::isfinite(d.y)) {
        // The ratio to 0 is undefined.
        if (better == direction::less && d.y <= 0) return {};
        if (d.state != point_state::failed) without_failures[d.x] = true;
      }
  values at;
  for (const chart_curve* curve : curves)
    for (const chart_point& d : curve->points)
      if (d.y > 0 && (d.state != point_state::failed || better == direction::more ||
                      !without_failures.contains(d.x)))
        at[d.x][curve] = d.y;
  return at;
}

/// Returns the slowdown of `mine` against `best`, over the x values where both have one.
standing compare(const values& at, const chart_curve* mine, const chart_curve* best,
                 direction better) {
  standing s{mine->name, mine->owner, 1, 0};
  double sum = 0;
  for (const auto& [x, here] : at) {
    const auto m = here.find(mine), b = here.find(best);
    if (m == here.end() || b == here.end()) continue;
    sum += std::log(better == direction::less ? m->second / b->second : b->second / m->second);
    ++s.at;
  }
  if (s.at > 0) s.slowdown = std::exp(sum / static_cast<double>(s.at));
  return s;
}

/// Multiplies the slowdowns of a ranking into the products; summarise() takes the root. Returns
/// whether the ranking holds an allocator.
bool add_to(std::map<std::string, overall>& by_allocator, const document& d, const ranking& r) {
  std::map<std::string, double> best_series;
  for (const standing& s : r.complete) best_series.try_emplace(s.allocator, s.slowdown);
  std::set<std::string> unsound;
  const figure& f = d.experiments[r.experiment].figures[r.figure];
  for (const chart_curve& curve : f.views[r.view].picture.curves)
    if (std::find(r.unsound.begin(), r.unsound.end(), curve.name) != r.unsound.end())
      unsound.insert(curve.owner);
  for (const std::string& name : unsound) ++by_allocator[name].unsound;
  for (const auto& [name, slowdown] : best_series) {
    overall& o = by_allocator[name];
    o.slowdown *= slowdown;
    ++o.experiments;
    if (name == r.complete.front().allocator) ++o.best;
  }
  return !best_series.empty() || !unsound.empty();
}

}  // namespace

ranking rank(const view& v, compared_allocators which) {
  ranking r;
  std::vector<const chart_curve*> curves;
  for (const chart_curve& curve : v.picture.curves) {
    if (!is_compared(curve, which) || (is_count(v) && !has_counts(curve))) continue;
    if (is_sound(curve))
      curves.push_back(&curve);
    else
      r.unsound.push_back(curve.name);
  }
  values at = values_of(curves, v.better);
  std::map<const chart_curve*, std::size_t> count;
  for (const auto& [x, here] : at)
    for (const auto& [curve, value] : here) ++count[curve];
  const std::size_t half = (count.size() + 1) / 2;
  std::erase_if(at, [&](const auto& entry) { return entry.second.size() < half; });
  r.of = at.size();

  const auto is_complete = [&](const chart_curve* curve) {
    return std::all_of(at.begin(), at.end(),
                       [&](const auto& entry) { return entry.second.contains(curve); });
  };
  const chart_curve* best = nullptr;
  for (const chart_curve* curve : curves)
    if (!at.empty() && is_complete(curve) &&
        (best == nullptr || compare(at, curve, best, v.better).slowdown < 1))
      best = curve;
  if (best == nullptr) return r;
  for (const chart_curve* curve : curves)
    if (const standing s = compare(at, curve, best, v.better); s.at > 0)
      (s.at == r.of ? r.complete : r.partial).push_back(s);
  const auto by_slowdown = [](const standing& a, const standing& b) {
    return a.slowdown < b.slowdown;
  };
  std::stable_sort(r.complete.begin(), r.complete.end(), by_slowdown);
  std::stable_sort(r.partial.begin(), r.partial.end(), by_slowdown);
  return r;
}

std::vector<ranking> rank_all(const document& d, compared_allocators which) {
  std::vector<ranking> all;
  for (std::size_t e = 0; e < d.experiments.size(); ++e)
    for (std::size_t f = 0; f < d.experiments[e].figures.size(); ++f) {
      const std::vector<view>& views = d.experiments[e].figures[f].views;
      const std::string& kind = d.backends[d.experiments[e].figures[f].backend].kind;
      for (std::size_t i = 0; i < views.size(); ++i) {
        if (views[i].better == direction::none) continue;
        if (kind == "cpu" && is_time(views[i].field, views[i].picture.y.unit)) continue;
        ranking r = rank(views[i], which);
        if (r.complete.size() + r.partial.size() + r.unsound.size() < 2) continue;
        r.main = all.empty() || all.back().experiment != e || all.back().figure != f;
        r.experiment = e;
        r.figure = f;
        r.view = i;
        all.push_back(std::move(r));
      }
    }
  return all;
}

std::vector<summary> summarise(const document& d, const std::vector<ranking>& rankings) {
  std::vector<summary> all;
  for (std::size_t m = 0; m < d.backends.size(); ++m) {
    summary s;
    s.backend = m;
    std::map<std::string, overall> by_allocator;
    for (const ranking& r : rankings)
      if (d.experiments[r.experiment].figures[r.figure].backend == m && r.main &&
          add_to(by_allocator, d, r))
        ++s.experiments;
    if (s.experiments < 2) continue;  // the ranking itself says the same
    for (auto& [name, o] : by_allocator) {
      o.allocator = name;
      if (o.experiments > 0)
        o.slowdown = std::pow(o.slowdown, 1.0 / static_cast<double>(o.experiments));
      (2 * o.experiments >= s.experiments ? s.in_most : s.in_few).push_back(o);
    }
    for (auto* list : {&s.in_most, &s.in_few})
      std::stable_sort(list->begin(), list->end(), [](const overall& a, const overall& b) {
        if ((a.experiments > 0) != (b.experiments > 0)) return a.experiments > 0;
        return a.slowdown < b.slowdown;
      });
    all.push_back(std::move(s));
  }
  return all;
}

std::string mean_text(const overall& o) {
  if (o.experiments == 0) return "–";
  return o.slowdown < 100 ? fmt::format("{:.2f}", o.slowdown) : short_number(o.slowdown);
}

std::string slowdown_text(double slowdown) {
  if (slowdown < 1.0005) return "equal";
  if (slowdown < 2)
    return fmt::format("+{:.{}f}\u00a0%", 100 * (slowdown - 1), slowdown < 1.0995 ? 1 : 0);
  const std::string times =
      slowdown < 9.95 ? fmt::format("{:.1f}", slowdown) : short_number(std::round(slowdown));
  return times + "\u00a0×";
}

}  // namespace quarry::tool::report

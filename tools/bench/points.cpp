// SPDX-License-Identifier: Apache-2.0
#include "bench/points.hpp"

#include "bench/json.hpp"
#include "bench/record_file.hpp"
#include "costs/ledger_file.hpp"

#include <fmt/format.h>

namespace quarry::tool {
namespace {

using json = nlohmann::ordered_json;

std::optional<double> measured(double n) { return n < 0 ? std::nullopt : std::optional<double>(n); }

std::string row_of(const bench_step& step) {
  std::string row = fmt::format("{}", step.x);
  if (const auto at = step.fields.find("size"); at != step.fields.end()) {
    const auto size = static_cast<std::uint64_t>(at->second);
    row += ": " + size_text({size, size});
  }
  return row;
}

}  // namespace

std::vector<bench_point> points_of(const experiment& e, const bench_subject& subject,
                                   const bench_cell& cell, const bench_figures& figures) {
  bench_point point{&e, subject.allocator, subject.series, cell.x, cell.row, cell, figures};
  if (!cell.variant.empty()) point.series += ", " + cell.variant;
  if (figures.curve.empty()) return {point};
  std::vector<bench_point> all;
  for (const bench_step& step : figures.curve) {
    all.push_back(point);
    all.back().x = step.x;
    all.back().row = row_of(step);
    bench_figures& f = all.back().figures;
    f.time = step.time;
    f.free_time = step.free_time;
    for (const auto& [name, value] : step.fields) f.fields[name] = value;
    f.curve.clear();
  }
  return all;
}

std::vector<bench_point> points_of_ledger(const experiment& e,
                                          const std::vector<bench_subject>& subjects) {
  std::vector<bench_point> all;
  for (const bench_subject& s : subjects) {
    bench_point point{&e, s.allocator, s.series, 0, "one malloc, one free", {}, {}};
    point.cell.experiment = e.id;
    point.cell.row = point.row;
    if (const auto registers = registers_of(s.allocator)) {
      point.figures.fields["registers"] = *registers;
    } else {
      point.figures.outcome = bench_outcome::skipped;
      point.figures.note = "nobody counted them";
    }
    all.push_back(point);
  }
  return all;
}

std::optional<double> value_of(const bench_point& point, std::string_view field) {
  const bench_figures& f = point.figures;
  if (f.outcome != bench_outcome::ok) return std::nullopt;
  if (field == "ms") return measured(f.time.median);
  if (field == "free_ms") return measured(f.free_time.median);
  if (field == "atomics_per_call") return measured(f.atomics);
  if (field == "free_atomics_per_call") return measured(f.free_atomics);
  const auto at = f.fields.find(std::string(field));
  return at == f.fields.end() ? std::nullopt : std::optional<double>(at->second);
}

std::vector<experiment_y> shown_by(const experiment& e, bool gpu) {
  std::vector<experiment_y> all = e.y;
  if (gpu || e.from_ledger()) return all;
  for (const experiment_y& y : e.y) {
    if (y.field == "ms")
      all.push_back({"atomics_per_call", "atomics a call", "", "linear", y.better});
    if (y.field == "free_ms")
      all.push_back({"free_atomics_per_call", "atomics a free", "", "linear", y.better});
  }
  return all;
}

json experiment_record(const experiment& e, bool gpu) {
  json y = json::array();
  for (const experiment_y& one : shown_by(e, gpu)) {
    y.push_back(
        {{"field", one.field}, {"name", one.name}, {"unit", one.unit}, {"scale", one.scale}});
    if (!one.better.empty()) y.back()["better"] = one.better;
  }
  return {{"kind", "experiment"},
          {"id", e.id},
          {"group", e.group},
          {"title", e.title},
          {"source", e.source},
          {"x", {{"name", e.x.name}, {"unit", e.x.unit}, {"scale", e.x.scale}}},
          {"y", y},
          {"form", e.form},
          {"note", e.note}};
}

json point_record(const bench_point& point, const bench_environment& where,
                  const std::string& command) {
  json j = {{"kind", "point"},
            {"experiment", point.of->id},
            {"allocator", point.allocator},
            {"series", point.series},
            {"x", point.of->x.scale == "category" ? json(point.row) : json(point.x)},
            {"x_label", point.row},
            {"command", command}};
  j.update(environment_fields(where));
  json cell = to_json(point.cell);
  for (const char* known : {"experiment", "x_label", "x", "variant", "shape"}) cell.erase(known);
  j.update(cell);
  json figures = to_json(point.figures);
  for (const char* inner : {"fields", "curve"}) figures.erase(inner);
  j.update(figures);
  for (const auto& [name, value] : point.figures.fields) j[name] = value;
  // What the experiment is about is there in any case.
  for (const experiment_y& y : point.of->y)
    if (!j.contains(y.field)) j[std::string(y.field)] = nullptr;
  return j;
}

}  // namespace quarry::tool

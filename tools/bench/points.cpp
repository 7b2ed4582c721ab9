// SPDX-License-Identifier: Apache-2.0
#include "bench/points.hpp"

#include "bench/json.hpp"
#include "bench/record_file.hpp"
#include "costs/ledger_file.hpp"

#include <fmt/format.h>

namespace quarry::tool {

using json = nlohmann::ordered_json;

namespace {

std::optional<double> if_measured(double n) {
  return n < 0 ? std::nullopt : std::optional<double>(n);
}

/// "3", or "3: 64 B" if the steps differ in their block size.
std::string x_label_of(const bench_step& step) {
  std::string label = fmt::format("{}", step.x);
  if (const auto at = step.fields.find("size"); at != step.fields.end()) {
    const auto size = static_cast<std::uint64_t>(at->second);
    label += ": " + size_text({size, size});
  }
  return label;
}

json number(double n) { return n < 0 ? json() : json(n); }

void add_parameters(json& j, const bench_measurement& m) {
  j["min_size"] = m.sizes.least;
  j["max_size"] = m.sizes.most;
  j["lanes"] = m.lanes;
  j["lanes_per_warp"] = m.lanes_per_warp;
  j["threads_per_block"] = m.threads_per_block;
  j["batch"] = m.batch;
  j["rounds"] = m.rounds;
  j["loads"] = json::array();
  for (const bench_load& l : m.loads) j["loads"].push_back({l.batch, l.size});
  j["turnover"] = m.turnover;
  j["occupied"] = m.occupied;
  j["heap_bytes"] = m.heap_bytes;
  j["heap_state"] = m.cold ? "cold" : "warm";
}

void add_time(json& j, const std::string& name, const bench_time& t) {
  j[name] = number(t.median);
  j["min_" + name] = number(t.min);
  j["max_" + name] = number(t.max);
}

void add_result(json& j, const bench_result& r) {
  j["outcome"] = outcome_text(r.outcome);
  j["note"] = r.note;
  j["repeats"] = r.repeats;
  add_time(j, "ms", r.time);
  add_time(j, "free_ms", r.free_time);
  j["atomics_per_call"] = number(r.atomics);
  j["free_atomics_per_call"] = number(r.free_atomics);
  j["values"] = r.values;
  j["seconds"] = r.seconds;
  j["failures"] = r.failures;
  j["corrupt"] = r.corrupt;
  j["misaligned"] = r.misaligned;
}

}  // namespace

std::vector<bench_point> points_of(const experiment& e, const bench_subject& subject,
                                   const bench_measurement& measurement,
                                   const bench_result& result) {
  bench_point point{
      &e,    subject.allocator, subject.series, measurement.x, measurement.x_label, measurement,
      result};
  if (!measurement.variant.empty()) point.series += ", " + measurement.variant;
  if (result.curve.empty()) return {point};
  std::vector<bench_point> all;
  for (const bench_step& step : result.curve) {
    all.push_back(point);
    all.back().x = step.x;
    all.back().x_label = x_label_of(step);
    bench_result& f = all.back().result;
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
    point.measurement.experiment = e.id;
    point.measurement.x_label = point.x_label;
    if (const auto registers = registers_of(s.allocator)) {
      point.result.fields["registers"] = *registers;
    } else {
      point.result.outcome = bench_outcome::skipped;
      point.result.note = "not in the cost ledger";
    }
    all.push_back(point);
  }
  return all;
}

std::optional<double> value_of(const bench_point& point, std::string_view field) {
  const bench_result& f = point.result;
  if (f.outcome != bench_outcome::ok) return std::nullopt;
  if (field == "ms") return if_measured(f.time.median);
  if (field == "free_ms") return if_measured(f.free_time.median);
  if (field == "atomics_per_call") return if_measured(f.atomics);
  if (field == "free_atomics_per_call") return if_measured(f.free_atomics);
  const auto at = f.fields.find(std::string(field));
  return at == f.fields.end() ? std::nullopt : std::optional<double>(at->second);
}

std::vector<experiment_y> shown_by(const experiment& e, bool gpu) {
  std::vector<experiment_y> all = e.y;
  if (gpu || e.from_ledger()) return all;
  for (const experiment_y& y : e.y) {
    if (y.field == "ms")
      all.push_back({"atomics_per_call", "atomics per call", "", "linear", y.better});
    if (y.field == "free_ms")
      all.push_back({"free_atomics_per_call", "atomics per free", "", "linear", y.better});
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
            {"x", point.of->x.scale == "category" ? json(point.x_label) : json(point.x)},
            {"x_label", point.x_label},
            {"command", command}};
  j.update(environment_fields(where));
  add_parameters(j, point.measurement);
  add_result(j, point.result);
  for (const auto& [name, value] : point.result.fields) j[name] = value;
  // The fields of the experiment are always present; null means not measured.
  for (const experiment_y& y : point.of->y)
    if (!j.contains(y.field)) j[std::string(y.field)] = nullptr;
  return j;
}

}  // namespace quarry::tool

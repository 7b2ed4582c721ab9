// SPDX-License-Identifier: Apache-2.0
#include "bench/json.hpp"

#include <array>

namespace quarry::tool {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> outcomes = {"ok",        "skipped", "given up", "failed",
                                                      "timed out", "crashed", "not run"};

bench_cell cell_from_json(const json& j) {
  bench_cell c;
  c.experiment = j.at("experiment");
  c.row = j.at("x_label");
  c.x = j.at("x");
  c.variant = j.at("variant");
  c.shape = static_cast<bench_shape>(j.at("shape").get<int>());
  c.sizes = {j.at("min_size"), j.at("max_size")};
  c.workers = j.at("lanes");
  c.working = j.at("lanes_per_warp");
  c.threads = j.at("threads_per_block");
  c.batch = j.at("batch");
  c.rounds = j.at("rounds");
  for (const json& l : j.at("loads")) c.loads.push_back({l.at(0), l.at(1)});
  c.turnover = j.at("turnover");
  c.occupied = j.at("occupied");
  c.heap = j.at("heap_bytes");
  c.cold = j.at("heap_state") == "cold";
  return c;
}

json figure(double n) { return n < 0 ? json() : json(n); }
double figure(const json& j) { return j.is_null() ? -1 : j.get<double>(); }

void put(json& j, const std::string& name, const bench_time& t) {
  j[name] = figure(t.median);
  j["min_" + name] = figure(t.least);
  j["max_" + name] = figure(t.most);
}
bench_time take(const json& j, const std::string& name) {
  return {figure(j.at(name)), figure(j.at("min_" + name)), figure(j.at("max_" + name))};
}

json to_json(const bench_step& s) {
  json j = {{"x", s.x}, {"fields", s.fields}};
  put(j, "ms", s.time);
  put(j, "free_ms", s.free_time);
  return j;
}
bench_step step_from_json(const json& j) {
  return {j.at("x"), take(j, "ms"), take(j, "free_ms"), j.at("fields").get<bench_fields>()};
}

}  // namespace

std::string_view outcome_text(bench_outcome outcome) {
  return outcomes.at(static_cast<std::size_t>(outcome));
}

json to_json(const bench_cell& c) {
  json loads = json::array();
  for (const bench_load& l : c.loads) loads.push_back({l.batch, l.size});
  return {{"experiment", c.experiment},
          {"x_label", c.row},
          {"x", c.x},
          {"variant", c.variant},
          {"shape", static_cast<int>(c.shape)},
          {"min_size", c.sizes.least},
          {"max_size", c.sizes.most},
          {"lanes", c.workers},
          {"lanes_per_warp", c.working},
          {"threads_per_block", c.threads},
          {"batch", c.batch},
          {"rounds", c.rounds},
          {"loads", loads},
          {"turnover", c.turnover},
          {"occupied", c.occupied},
          {"heap_bytes", c.heap},
          {"heap_state", c.cold ? "cold" : "warm"}};
}

json to_json(const bench_request& r) {
  json j = {{"backend", r.backend},  {"allocator", r.allocator}, {"heap_bytes", r.heap},
            {"repeats", r.repeats},  {"limit", r.limit},         {"share", r.share},
            {"cells", json::array()}};
  for (const bench_cell& c : r.cells) j["cells"].push_back(to_json(c));
  return j;
}

bench_request request_from_json(const json& j) {
  bench_request r;
  r.backend = j.at("backend");
  r.allocator = j.at("allocator");
  r.heap = j.at("heap_bytes");
  r.repeats = j.at("repeats");
  r.limit = j.at("limit");
  r.share = j.at("share");
  for (const json& cell : j.at("cells")) r.cells.push_back(cell_from_json(cell));
  return r;
}

json to_json(const bench_figures& f) {
  json j;
  j["outcome"] = outcome_text(f.outcome);
  j["note"] = f.note;
  j["repeats"] = f.repeats;
  put(j, "ms", f.time);
  put(j, "free_ms", f.free_time);
  j["atomics_per_call"] = figure(f.atomics);
  j["free_atomics_per_call"] = figure(f.free_atomics);
  j["values"] = f.values;
  j["fields"] = f.fields;
  j["curve"] = json::array();
  for (const bench_step& s : f.curve) j["curve"].push_back(to_json(s));
  j["seconds"] = f.seconds;
  j["failures"] = f.failures;
  j["corrupt"] = f.corrupt;
  j["misaligned"] = f.misaligned;
  return j;
}

bench_figures figures_from_json(const json& j) {
  bench_figures f;
  const std::string outcome = j.at("outcome");
  while (outcome_text(f.outcome) != outcome)
    f.outcome = static_cast<bench_outcome>(static_cast<int>(f.outcome) + 1);
  f.note = j.at("note");
  f.repeats = j.at("repeats");
  f.time = take(j, "ms");
  f.free_time = take(j, "free_ms");
  f.atomics = figure(j.at("atomics_per_call"));
  f.free_atomics = figure(j.at("free_atomics_per_call"));
  f.values = j.at("values").get<std::vector<double>>();
  f.fields = j.at("fields").get<bench_fields>();
  for (const json& s : j.at("curve")) f.curve.push_back(step_from_json(s));
  f.seconds = j.at("seconds");
  f.failures = j.at("failures");
  f.corrupt = j.at("corrupt");
  f.misaligned = j.at("misaligned");
  return f;
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#include "bench_json.hpp"

#include <array>

namespace quarry::tool {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 6> outcomes = {"ok",        "skipped", "failed",
                                                      "timed out", "crashed", "not run"};

json to_json(const bench_cell& c) {
  return {{"workload", c.workload},
          {"row", c.row},
          {"shape", static_cast<int>(c.shape)},
          {"least_size", c.sizes.least},
          {"most_size", c.sizes.most},
          {"lanes", c.workers},
          {"lanes_per_warp", c.working},
          {"batch", c.batch},
          {"rounds", c.rounds}};
}

bench_cell cell_from_json(const json& j) {
  bench_cell c;
  c.workload = j.at("workload");
  c.row = j.at("row");
  c.shape = static_cast<bench_shape>(j.at("shape").get<int>());
  c.sizes = {j.at("least_size"), j.at("most_size")};
  c.workers = j.at("lanes");
  c.working = j.at("lanes_per_warp");
  c.batch = j.at("batch");
  c.rounds = j.at("rounds");
  return c;
}

json figure(double n) { return n < 0 ? json() : json(n); }
double figure(const json& j) { return j.is_null() ? -1 : j.get<double>(); }

void put(json& j, const std::string& name, const bench_time& t) {
  j[name] = figure(t.median);
  j["least_" + name] = figure(t.least);
  j["most_" + name] = figure(t.most);
}
bench_time take(const json& j, const std::string& name) {
  return {figure(j.at(name)), figure(j.at("least_" + name)), figure(j.at("most_" + name))};
}

}  // namespace

std::string_view outcome_text(bench_outcome outcome) {
  return outcomes.at(static_cast<std::size_t>(outcome));
}

json to_json(const bench_request& r) {
  json j = {{"machine", r.machine}, {"allocator", r.allocator}, {"heap_bytes", r.heap},
            {"repeats", r.repeats}, {"limit", r.limit},         {"cells", json::array()}};
  for (const bench_cell& c : r.cells) j["cells"].push_back(to_json(c));
  return j;
}

bench_request request_from_json(const json& j) {
  bench_request r;
  r.machine = j.at("machine");
  r.allocator = j.at("allocator");
  r.heap = j.at("heap_bytes");
  r.repeats = j.at("repeats");
  r.limit = j.at("limit");
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
  f.failures = j.at("failures");
  f.corrupt = j.at("corrupt");
  f.misaligned = j.at("misaligned");
  return f;
}

json record(const bench_environment& where, const bench_request& request, const bench_cell& cell,
            const bench_figures& figures) {
  json j = {{"machine", where.machine}, {"device", where.device},        {"driver", where.driver},
            {"cuda", where.cuda},       {"compiler", where.compiler},    {"commit", where.commit},
            {"date", where.date},       {"allocator", request.allocator}};
  json c = to_json(cell);
  c.erase("shape");
  c["heap_bytes"] = request.heap;
  j.update(c);
  j.update(to_json(figures));
  return j;
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// Lines written before lines had a "kind": workloads of the first `quarry bench` (workload, row),
/// `quarry cluster scaling --json` and the applications of `quarry cluster … --json`.

#include "common/parse.hpp"
#include "report/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quarry::tool::report {
namespace {

/// How a workload's rows are told apart: by a number in the record, or by their text.
struct workload {
  const char *name, *title, *source, *x_key, *x_name, *x_unit;
};
constexpr workload workloads[] = {
    {"alloc", "Every lane allocates once", "Winter et al. 2021", "min_size", "block size", "B"},
    {"mixed", "Every lane allocates once, sizes mixed", "Winter et al. 2021", "row", "block sizes",
     ""},
    {"one-lane", "The first lane of each warp allocates", "Winter et al. 2021", "min_size",
     "block size", "B"},
    {"churn", "malloc, write, free, 32 times over", "", "row", "", ""},
    {"xmalloc", "malloc and free of 4 B by some lanes of each warp", "Huang et al. 2013, Figure 2",
     "lanes_per_warp", "working lanes a warp", ""},
    {"acd", "Many mallocs by one lane a warp, then all frees",
     "Vinkler, Havran 2014, tests A, C, D", "batch", "blocks a lane", ""},
    {"p", "malloc or free by chance", "Vinkler, Havran 2014, test P", "row", "", ""},
    {"widmer", "16 mallocs a lane, then all frees", "Widmer et al. 2013", "row", "", ""},
    {"fragmentation", "Address-range fragmentation", "Winter et al. 2021", "row", "block sizes",
     ""},
    {"fill", "Usable fraction of the heap", "Winter et al. 2021", "min_size", "block size", "B"}};

json y_of(const std::string& name) {
  if (name == "fragmentation")
    return json::array({{{"field", "values"},
                         {"name", "address range / live bytes"},
                         {"better", "less"},
                         {"x", {{"name", "round"}}}}});
  if (name == "fill")
    return json::array({{{"field", "values"}, {"name", "usable fraction"}, {"better", "more"}}});
  return json::array(
      {{{"field", "ms"}, {"name", "time to allocate"}, {"unit", "ms"}, {"scale", "log"}},
       {{"field", "free_ms"}, {"name", "time to free"}, {"unit", "ms"}, {"scale", "log"}},
       {{"field", "atomics_per_call"}, {"name", "atomics a call"}},
       {{"field", "free_atomics_per_call"}, {"name", "atomics a free"}}});
}

void add_once(json experiment, const record& r, records& all) {
  experiment["kind"] = "experiment";
  const auto same = [&](const record& e) { return e.line["id"] == experiment["id"]; };
  if (std::none_of(all.experiments.begin(), all.experiments.end(), same))
    all.experiments.push_back({std::move(experiment), r.place});
}

/// The command as far as the record tells it.
std::string command_of(const json& line) {
  std::string text = fmt::format("quarry bench --backend {} --workloads {} --allocators {}",
                                 line.value("backend", "cpu"), line.value("workload", ""),
                                 line.value("allocator", ""));
  const std::string name = line.value("workload", "");
  const auto least = line.value("min_size", std::uint64_t{0});
  const auto most = line.value("max_size", std::uint64_t{0});
  if (name == "alloc" || name == "one-lane" || name == "fill")
    text += fmt::format(" --sizes {}", least);
  if (name == "mixed" || name == "fragmentation")
    text += fmt::format(" --sizes {}-{}", least, most);
  if ((name == "alloc" || name == "mixed") && line.contains("lanes"))
    text += fmt::format(" --lanes {}", line.value("lanes", std::uint64_t{0}));
  if (name != "fill" && line.contains("heap_bytes"))
    text += fmt::format(" --heap {}", line.value("heap_bytes", std::uint64_t{0}));
  return text;
}

json from_workload(const record& r, records& all) {
  const std::string name = r.line["workload"];
  const auto known = std::find_if(std::begin(workloads), std::end(workloads),
                                  [&](const workload& w) { return name == w.name; });
  const workload w = known != std::end(workloads)
                         ? *known
                         : workload{name.c_str(), name.c_str(), "", "row", "row", ""};
  const bool numbers = w.x_key != std::string_view("row") && r.line.contains(w.x_key);
  add_once(
      {{"id", name},
       {"title", w.title},
       {"source", w.source},
       {"x", {{"name", w.x_name}, {"unit", w.x_unit}, {"scale", numbers ? "log" : "category"}}},
       {"y", y_of(name)}},
      r, all);
  json point = r.line;
  point["experiment"] = name;
  point["x"] = r.line.value(numbers ? w.x_key : "row", json(""));
  if (!point.contains("command")) point["command"] = command_of(r.line);
  return point;
}

json from_scaling(const record& r, records& all) {
  add_once({{"id", "cluster-scaling"},
            {"title", "A call as workers grow: one scheduler against a tree"},
            {"source", "Lyberis et al. 2012, the question of Figures 4e and 4f"},
            {"x", {{"name", "workers"}, {"scale", "log"}}},
            {"y",
             {{{"field", "call_us"},
               {"name", "a worker waits for a call"},
               {"unit", "µs"},
               {"scale", "log"}},
              {{"field", "queue_us"},
               {"name", "a message waits in a queue"},
               {"unit", "µs"},
               {"scale", "log"}},
              {{"field", "messages_per_call"}, {"name", "messages a call"}, {"better", "less"}},
              {{"field", "busiest_share"},
               {"name", "share of messages at the busiest scheduler"},
               {"better", "none"}}}}},
           r, all);
  json point = r.line;
  const bool leases = r.line.value("leases", false);
  point["series"] = r.line.value("tree", "") + (leases ? ", leases" : "");
  point["x"] = r.line.value("workers", json(""));
  point["backend"] = "simulated network";
  if (!point.contains("command"))
    point["command"] = fmt::format("quarry cluster scaling --json{}", leases ? " --leases" : "");
  return point;
}

/// A run is three points, one in each layer of its bar.
std::vector<json> from_application(const record& r, records& all) {
  const std::string app = r.line["app"], network = r.line.value("network", "cluster");
  add_once({{"id", "cluster-" + app},
            {"title", app + ": where a worker's time goes"},
            {"source", "Lyberis et al. 2012, Figures 4d to 4h"},
            {"x", {{"name", "workers (schedulers)"}, {"scale", "category"}}},
            {"y", json::array(
                      {{{"field", "seconds"}, {"name", "mean time of a worker"}, {"unit", "s"}}})},
            {"form", "layers"}},
           r, all);
  constexpr std::pair<const char*, const char*> layers[] = {
      {"computation", "computation"},
      {"worker_communication", "worker communication"},
      {"scheduler_communication", "scheduler communication"}};
  std::vector<json> points;
  for (const auto& [key, name] : layers) {
    json point = r.line;
    point["experiment"] = "cluster-" + app;
    point["series"] = name;
    point["seconds"] = r.line.value(key, json());
    point["x"] = fmt::format("{} ({})", r.line.value("workers", 0), r.line.value("schedulers", 0));
    point["backend"] = network == "simulated" ? "simulated network" : network;
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

void add_older(const record& r, records& all) {
  const auto has_text = [&](const char* key) {
    return r.line.contains(key) && r.line[key].is_string();
  };
  std::vector<json> points;
  try {
    if (has_text("workload"))
      points.push_back(from_workload(r, all));
    else if (has_text("experiment") && r.line["experiment"] == "cluster-scaling")
      points.push_back(from_scaling(r, all));
    else if (has_text("app"))
      points = from_application(r, all);
    else
      throw input_error(r.place + ": neither \"kind\" nor \"workload\" is there");
  } catch (const json::exception&) {
    throw input_error(r.place + ": a field has the wrong type");
  }
  for (json& point : points) {
    point["kind"] = "point";
    all.points.push_back({std::move(point), r.place});
  }
}

}  // namespace quarry::tool::report

// SPDX-License-Identifier: Apache-2.0
#include "cluster/records.hpp"

#include "bench/environment.hpp"
#include "bench/record_file.hpp"

#include <fmt/format.h>

#include <utility>

namespace quarry::tool {
namespace {

/// The figures of the paper that show the same application, and how the records differ from them.
std::pair<const char*, const char*> figures_of(const std::string& app) {
  if (app == "barnes-hut") return {"Figures 4e and 4f", "Figure 4e: one scheduler, 4f: several"};
  if (app == "delaunay") return {"Figure 4d", ""};
  return {"Figures 4g and 4h", "regions only, without the comparison node by node"};
}

cluster_json app_experiment(const std::string& app) {
  const auto [figures, note] = figures_of(app);
  return {{"kind", "experiment"},
          {"id", "cluster-" + app},
          {"group", "Regions and clusters"},
          {"title", app + ": time of a worker by activity"},
          {"source", fmt::format("compare Lyberis et al. 2012, {}", figures)},
          {"note", note},
          {"x", {{"name", "workers (schedulers)"}, {"scale", "category"}}},
          {"y", cluster_json::array({{{"field", "mean_seconds"},
                                      {"name", "mean time of a worker"},
                                      {"unit", "s"},
                                      {"scale", "linear"}}})},
          {"form", "layers"}};
}

}  // namespace

cluster_json network_fields(cluster_network network) {
  bench_environment where = describe_host();
  if (network == cluster_network::simulated) {
    where.backend = "simulated network";
    where.device.clear();
  } else {
    where.backend = "mpi";
    where.device = "MPI, " + where.device;
  }
  return environment_fields(where);
}

std::vector<cluster_json> run_records(const cluster_json& run, cluster_network network,
                                      const std::string& command) {
  const std::string app = run.at("app");
  std::vector<cluster_json> all = {app_experiment(app)};
  const cluster_json where = network_fields(network);
  constexpr std::pair<const char*, const char*> activities[] = {
      {"computation", "computation"},
      {"worker_communication", "worker communication"},
      {"scheduler_communication", "scheduler communication"}};
  for (const auto& [field, name] : activities) {
    cluster_json point = {{"kind", "point"},
                          {"experiment", "cluster-" + app},
                          {"series", name},
                          {"x", fmt::format("{} ({})", run.at("workers").get<unsigned>(),
                                            run.at("schedulers").get<unsigned>())},
                          {"command", command},
                          {"outcome", run.at("correct").get<bool>() ? "ok" : "wrong result"},
                          {"mean_seconds", run.at(field)}};
    point.update(where);
    point.update(run);
    all.push_back(std::move(point));
  }
  return all;
}

cluster_json scaling_experiment() {
  return {{"kind", "experiment"},
          {"id", "cluster-scaling"},
          {"group", "Regions and clusters"},
          {"title", "Cost of a call against the number of workers: one scheduler and a tree"},
          {"source", "compare Lyberis et al. 2012, Figures 4e and 4f"},
          {"note", "a synthetic load in a simulated network, not Barnes-Hut"},
          {"x", {{"name", "workers"}, {"scale", "log"}}},
          {"y",
           {{{"field", "call_us"},
             {"name", "waiting time of a worker per call"},
             {"unit", "µs"},
             {"scale", "log"}},
            {{"field", "queue_us"},
             {"name", "queueing time of a message"},
             {"unit", "µs"},
             {"scale", "log"}},
            {{"field", "messages_per_call"}, {"name", "messages per call"}, {"better", "less"}},
            {{"field", "busiest_share"},
             {"name", "fraction of messages at the busiest scheduler"},
             {"better", "none"}}}},
          {"form", "lines"}};
}

void write_records(const std::vector<cluster_json>& records, bool print, const std::string& out) {
  record_file file(out);
  for (const cluster_json& line : records) {
    file.add(line);
    if (print) fmt::print("{}\n", line.dump());
  }
}

}  // namespace quarry::tool

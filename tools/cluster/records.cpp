// SPDX-License-Identifier: Apache-2.0
#include "cluster/records.hpp"

#include "bench/environment.hpp"
#include "bench/record_file.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace quarry::tool {
namespace {

/// The figures of the paper that show the same application, and how the records differ from them.
std::pair<const char*, const char*> figures_of(const std::string& app) {
  if (app == "barnes-hut") return {"Figures 4e and 4f", "Figure 4e: one scheduler, 4f: several"};
  if (app == "delaunay") return {"Figure 4d", ""};
  return {"Figures 4g and 4h", "regions only; the experiment after this one has the ratios"};
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

/// The list exchange as regions against node by node.
cluster_json ratio_experiment() {
  return {{"kind", "experiment"},
          {"id", "cluster-list-ratio"},
          {"group", "Regions and clusters"},
          {"title", "list-exchange: regions against access node by node"},
          {"source", "Lyberis et al. 2012, Figures 4g and 4h"},
          {"note",
           "the paper's comparison is Berkeley UPC over MPI; here MPI_Get and MPI_Put, and request "
           "and reply, in the same run"},
          {"x", {{"name", "nodes in the list of a worker"}, {"scale", "log"}}},
          {"y", cluster_json::array({{{"field", "ratio"},
                                      {"name", "times as fast as node by node"},
                                      {"unit", ""},
                                      {"scale", "log"},
                                      {"better", "more"}}})},
          {"form", "lines"}};
}

/// The fields of a data point that tell what was run; the measured value follows them.
cluster_json run_point(const std::string& experiment, const std::string& series, cluster_json x,
                       const cluster_json& run, const std::string& command) {
  return {{"kind", "point"},    {"experiment", experiment},
          {"series", series},   {"x", std::move(x)},
          {"command", command}, {"outcome", run.at("correct").get<bool>() ? "ok" : "wrong result"}};
}

std::vector<cluster_json> ratio_points(const cluster_json& run, const cluster_json& where,
                                       const std::string& command) {
  std::vector<cluster_json> all;
  constexpr std::pair<const char*, const char*> transports[] = {
      {"times_faster_than_one_sided", "one-sided"},
      {"times_faster_than_request_reply", "request and reply"}};
  for (const auto& [field, name] : transports) {
    cluster_json point =
        run_point("cluster-list-ratio",
                  fmt::format("{} workers ({}), {}", run.at("workers").get<unsigned>(),
                              run.at("schedulers").get<unsigned>(), name),
                  run.at("nodes"), run, command);
    point["ratio"] = run.at(field);
    point.update(where);
    all.push_back(std::move(point));
  }
  return all;
}

/// The claims are about 16 or more workers with 30,000 nodes each. Request and reply is what UPC
/// over MPI does for each node.
std::optional<cluster_json> ratio_claim(const cluster_json& run, const cluster_json& where) {
  const auto workers = run.at("workers").get<unsigned>();
  const auto schedulers = run.at("schedulers").get<unsigned>();
  if (workers < 16 || run.at("nodes").get<std::uint64_t>() < 30'000) return {};
  const bool one = schedulers == 1;
  cluster_json claim = {
      {"kind", "claim"},
      {"id", one ? "list-exchange-one" : "list-exchange-tree"},
      {"source", "Lyberis et al. 2012"},
      {"claim", one ? "lists move 3.7 to 3.9 x as fast as with UPC: one scheduler"
                    : "lists move 4.6 to 10.7 x as fast as with UPC: a hierarchy of schedulers"},
      {"paper", one ? cluster_json::array({3.7, 3.9}) : cluster_json::array({4.6, 10.7})},
      {"ours", run.at("times_faster_than_request_reply")},
      {"unit", "x"},
      {"how",
       fmt::format("time by request and reply for each node / time as regions, {} workers, "
                   "{} scheduler{}, {} nodes each, experiment cluster-list-ratio",
                   workers, schedulers, one ? "" : "s", run.at("nodes").get<std::uint64_t>())}};
  claim.update(where);
  return claim;
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
    cluster_json point = run_point("cluster-" + app, name,
                                   fmt::format("{} ({})", run.at("workers").get<unsigned>(),
                                               run.at("schedulers").get<unsigned>()),
                                   run, command);
    point["mean_seconds"] = run.at(field);
    point.update(where);
    point.update(run);
    all.push_back(std::move(point));
  }
  if (!run.contains("times_faster_than_one_sided")) return all;
  all.push_back(ratio_experiment());
  for (cluster_json& point : ratio_points(run, where, command)) all.push_back(std::move(point));
  if (auto claim = ratio_claim(run, where)) all.push_back(*std::move(claim));
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

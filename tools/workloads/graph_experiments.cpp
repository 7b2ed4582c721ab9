// SPDX-License-Identifier: Apache-2.0
#include "workloads/graph_experiments.hpp"

#include "common/parse.hpp"
#include "workloads/workload.hpp"

#include <quarry/core/bits.hpp>

#include <algorithm>
#include <vector>

namespace quarry::tool {
namespace {

constexpr std::uint32_t expansion_batches = 10;

graph_point point_with(const graph_size& size, std::vector<apps::graph_batch> batches,
                       bool erases) {
  return {size.vertices(), apps::graph_batch(apps::make_rmat(size.scale, size.edges(), 1)),
          std::move(batches), erases};
}
graph_point init_point(const graph_size& size, std::uint64_t vertices) {
  return point_with({log2_floor(vertices), size.degree}, {}, false);
}
std::vector<apps::graph_batch> from_range(const graph_size& size, std::uint32_t sources,
                                          std::uint64_t edges) {
  const std::uint32_t first = (size.vertices() - sources) / 2;
  std::vector<apps::graph_batch> one;
  one.emplace_back(apps::make_uniform(first, sources, size.vertices(), edges, 2));
  return one;
}
graph_point update_point(const graph_size& size, std::uint64_t edges) {
  return point_with(size, from_range(size, size.vertices(), edges), true);
}
graph_point range_point(const graph_size& size, std::uint64_t edges) {
  return point_with(size, from_range(size, std::max(1u, size.vertices() / 256), edges), true);
}
graph_point expand_point(const graph_size& size, std::uint64_t edges) {
  std::vector<apps::graph_batch> batches;
  for (std::uint32_t i = 0; i < expansion_batches; ++i)
    batches.emplace_back(
        apps::make_rmat(size.scale, std::max<std::uint64_t>(1, edges / expansion_batches), 2 + i));
  return point_with(size, std::move(batches), false);
}

constexpr graph_experiment all_experiments[] = {
    {"init", "Graph initialisation", "vertices", "time to build", "time to free all lists",
     "One kernel allocates the lists of all vertices, one warp per vertex.", init_point},
    {"update", "Graph update", "edges in the batch", "time to insert", "time to erase",
     "Inserts a batch with random sources, then erases it; one kernel each, one warp per source.",
     update_point},
    {"range", "Graph update in a range", "edges in the batch", "time to insert", "time to erase",
     "As update, with sources in 1/256 of the vertices, whose lists become long.", range_point},
    {"expand", "Graph expansion", "edges inserted", "time to insert", "",
     "Inserts R-MAT edges in ten batches; erases nothing.", expand_point}};

json result_of(const graph_experiment& e, const graph_point& point, const graph_request& requested,
               const graph_result& m) {
  if (!m.skipped.empty()) return missing_result("skipped", m.skipped);
  json result = empty_result();
  result["note"] = m.problem;
  result["corrupt"] = m.problem.empty() ? 0 : 1;
  result["repeats"] = requested.repeats;
  const bool init = e.name == "init";
  put_times(result, "ms", init ? m.init : m.insert);
  put_times(result, "free_ms", init ? m.clear : m.erase);
  result["vertices"] = point.vertices;
  result["edges"] = m.edges;
  result["final_edges"] = m.final_edges;
  result["allocations"] = m.allocations;
  result["bytes"] = m.bytes;
  result["heap_bytes"] = requested.heap;
  return result;
}

}  // namespace

std::span<const graph_experiment> graph_experiments() { return all_experiments; }

const graph_experiment& experiment_named(const std::string& name) {
  const auto* at = std::find_if(std::begin(all_experiments), std::end(all_experiments),
                                [&](const graph_experiment& e) { return e.name == name; });
  if (at == std::end(all_experiments))
    throw input_error("--experiments: '" + name +
                      "' is not one of init, update, range, expand, all");
  return *at;
}

void run_graph_request(const json& request, const result_sink& emit) {
  const graph_experiment& e = experiment_named(request.at("experiment"));
  const graph_size size{request.at("scale"), request.at("degree")};
  graph_request requested;
  requested.allocator = request.at("allocator");
  requested.heap = request.at("heap");
  requested.repeats = request.at("repeats");
  requested.check = request.at("check");
  const bool gpu = request.at("backend") == "cuda";
  for (const std::uint64_t x : request.at("points")) {
    const graph_point point = e.make(size, x);
    emit(result_of(e, point, requested,
                   (gpu ? measure_graph_cuda : measure_graph_cpu)(point, requested)));
  }
}

}  // namespace quarry::tool

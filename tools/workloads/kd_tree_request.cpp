// SPDX-License-Identifier: Apache-2.0
/// Executes a request of `quarry kd-tree` in the child process.

#include "workloads/kd_tree.hpp"
#include "workloads/workload.hpp"

#include "apps/scene/file.hpp"

#include <algorithm>

namespace quarry::tool {
namespace {

/// Returns the number of rays to cast: brute force takes time proportional to rays * triangles.
std::uint64_t rays_for(std::uint32_t triangles) {
  return std::clamp<std::uint64_t>(100'000'000 / triangles, 20, 1000);
}

}  // namespace

void run_kd_tree_request(const json& request, const result_sink& emit) {
  const apps::scene s = apps::find_scene(request.at("scene"), request.at("triangles"));
  const apps::kd_input input = apps::make_kd_input(s);
  kd_tree_request measurement;
  measurement.allocator = request.at("allocator");
  measurement.heap = request.at("heap");
  measurement.repeats = request.at("repeats");
  if (request.at("check").get<bool>()) measurement.rays = rays_for(s.size());
  const auto limits = apps::kd_limits::default_for(s.size(), request.at("leaf"));
  const bool gpu = request.at("backend") == "cuda";
  const kd_tree_result m =
      (gpu ? measure_kd_tree_cuda : measure_kd_tree_cpu)(s, input, limits, measurement);
  if (!m.skipped.empty()) return emit(missing_result("skipped", m.skipped));
  json result = empty_result();
  result["note"] = m.problem;
  result["corrupt"] = m.problem.empty() ? 0 : 1;
  result["repeats"] = m.times.size();
  put_times(result, "ms", m.times);
  const apps::kd_statistics& t = m.tree;
  result["slowdown"] = nullptr;
  result["triangles"] = s.size();
  result["references"] = t.references;
  result["references_per_triangle"] = static_cast<double>(t.references) / s.size();
  result["nodes"] = t.nodes;
  result["leaves"] = t.leaves;
  result["depth"] = t.depth;
  result["allocations"] = t.allocations;
  result["bytes"] = t.bytes;
  result["mean_bytes"] = t.mean;
  result["deviation_bytes"] = t.deviation;
  result["digest"] = to_hex(t.digest);
  result["registers"] = m.registers != 0 ? json(m.registers) : json();
  result["warps"] = m.warps;
  result["heap_bytes"] = measurement.heap;
  result["metadata_bytes"] = m.metadata;
  result["rays"] = measurement.rays;
  emit(result);
}

}  // namespace quarry::tool

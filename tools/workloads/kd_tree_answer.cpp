// SPDX-License-Identifier: Apache-2.0
/// The child's part of `quarry kd-tree`: from a request to figures.

#include "workloads/kd_tree.hpp"
#include "workloads/workload.hpp"

#include "apps/scene/file.hpp"

#include <algorithm>

namespace quarry::tool {
namespace {

/// Enough to find a hole, few enough for the time that all triangles take.
std::uint64_t rays_for(std::uint32_t triangles) {
  return std::clamp<std::uint64_t>(100'000'000 / triangles, 20, 1000);
}

}  // namespace

void answer_kd_tree(const json& request, const workload_emit& emit) {
  const apps::scene s = apps::find_scene(request.at("scene"), request.at("triangles"));
  const apps::kd_input input = apps::make_kd_input(s);
  kd_tree_request asked;
  asked.allocator = request.at("allocator");
  asked.heap = request.at("heap");
  asked.repeats = request.at("repeats");
  if (request.at("check").get<bool>()) asked.rays = rays_for(s.size());
  const auto limits = apps::kd_limits::default_for(s.size(), request.at("leaf"));
  const bool gpu = request.at("backend") == "cuda";
  const kd_tree_measured m =
      (gpu ? measure_kd_tree_cuda : measure_kd_tree_cpu)(s, input, limits, asked);
  if (!m.skipped.empty()) return emit(no_answer("skipped", m.skipped));
  json answer = empty_answer();
  answer["note"] = m.problem;
  answer["corrupt"] = m.problem.empty() ? 0 : 1;
  answer["repeats"] = m.times.size();
  put_times(answer, "ms", m.times);
  const apps::kd_statistics& t = m.tree;
  answer["slowdown"] = nullptr;
  answer["triangles"] = s.size();
  answer["references"] = t.references;
  answer["references_per_triangle"] = static_cast<double>(t.references) / s.size();
  answer["nodes"] = t.nodes;
  answer["leaves"] = t.leaves;
  answer["depth"] = t.depth;
  answer["allocations"] = t.allocations;
  answer["bytes"] = t.bytes;
  answer["mean_bytes"] = t.mean;
  answer["deviation_bytes"] = t.deviation;
  answer["digest"] = hexadecimal(t.digest);
  answer["registers"] = m.registers != 0 ? json(m.registers) : json();
  answer["warps"] = m.warps;
  answer["heap_bytes"] = asked.heap;
  answer["metadata_bytes"] = m.metadata;
  answer["rays"] = asked.rays;
  emit(answer);
}

}  // namespace quarry::tool

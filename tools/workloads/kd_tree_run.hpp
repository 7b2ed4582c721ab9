// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Measures the kd-tree build on a backend with an allocator that is selected by name.

#include "bench/kernels/clock.hpp"
#include "workloads/kd_tree.hpp"

#include "apps/kd_tree/builder.hpp"
#include "apps/kd_tree/rays.hpp"

#include <quarry/heap/named.hpp>

#include <string>
#include <type_traits>

namespace quarry::tool {

/// Returns the registers per thread of a kernel; 0 on the CPU backend.
template <class Backend, class Kernel>
std::uint32_t registers_of() {
#if QUARRY_CUDA
  if constexpr (std::is_same_v<Backend, quarry::cuda>) {
    cudaFuncAttributes attributes{};
    simt::check_cuda(cudaFuncGetAttributes(&attributes, simt::run_kernel<Kernel>),
                     "cudaFuncGetAttributes");
    return static_cast<std::uint32_t>(attributes.numRegs);
  }
#endif
  return 0;
}

template <class Allocator, class Backend>
kd_tree_result measure_kd_tree(const apps::scene& s, const apps::kd_input& input,
                               const apps::kd_limits& limits, const kd_tree_request& request) {
  using builder_type = apps::kd_builder<Allocator, Backend>;
  kd_tree_result result;
  if (apps::kd_list_bytes(s.size()) > Allocator::can.max_size) {
    result.skipped = "serves at most " + to_text(Allocator::can.max_size);
    return result;
  }
  builder_type builder(input, limits, bytes(request.heap));
  result.metadata = builder.memory().metadata_bytes();
  result.registers = registers_of<Backend, typename builder_type::kernel>();
  const bench_clock<Backend> clock;
  const auto build = [&] {
    double milliseconds = 0;
    builder.build([&](const grid& g, const auto& kernel) {
      result.warps = std::uint64_t{g.blocks} * g.threads / simt::warp_size;
      milliseconds = clock.time([&] { clock.start(g, kernel); }).milliseconds;
    });
    return milliseconds;
  };
  const auto check_tree = [&] {
    const apps::kd_tree tree = builder.tree();
    const apps::kd_statistics f = apps::statistics_of(tree);
    if (!result.times.empty() && f.digest != result.tree.digest)
      result.problem = "two builds produced different trees";
    result.tree = f;
    const apps::kd_ray_check rays = apps::check_rays(s, input, tree, request.rays, 1);
    if (result.problem.empty()) result.problem = rays.problem;
  };
  (void)build();
  check_tree();
  builder.clear();
  for (std::uint64_t i = 0; i < request.repeats; ++i) {
    result.times.push_back(build());
    if (i + 1 == request.repeats) check_tree();
    builder.clear();
  }
  if (result.problem.empty()) result.problem = builder.memory().check_invariants();
  return result;
}

template <class Backend>
kd_tree_result measure_kd_tree_named(const apps::scene& s, const apps::kd_input& input,
                                     const apps::kd_limits& limits,
                                     const kd_tree_request& request) {
  kd_tree_result result;
  for_each_allocator([&](auto entry) {
    if (entry.name == request.allocator)
      result = measure_kd_tree<typename decltype(entry)::type, Backend>(s, input, limits, request);
  });
  return result;
}

}  // namespace quarry::tool

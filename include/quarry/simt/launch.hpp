// SPDX-License-Identifier: Apache-2.0
#pragma once
/// launch<Backend>(grid, kernel): runs kernel() once per lane and waits for the end.
///
/// Waiting makes an error appear where it was caused, on both machines. Programs that overlap kernels
/// launch theirs with CUDA's own <<<>>>: device code of this library needs nothing from launch.

#include <quarry/simt/backend.hpp>
#include <quarry/simt/cuda_error.hpp>
#include <quarry/simt/executor/worker_pool.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace quarry {

struct grid {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;    // a block, at most 1024
  unsigned workers = 0;          // cpu: OS threads, 0 for the default
  std::uint64_t step_limit = 0;  // cpu: atomics a block may take before the run fails; 0: no limit
};

namespace simt {

inline void check_grid(const grid& g) {
  if (g.blocks != 0 && g.threads != 0 && g.threads <= 1024) return;
  throw error("launch of " + std::to_string(g.blocks) + " blocks of " + std::to_string(g.threads) +
              " threads: both must be at least 1, and a block holds at most 1024 threads");
}

template <class Kernel>
exec::job make_job(const grid& g, const Kernel& kernel) {
  return {[](const void* k) { (*static_cast<const Kernel*>(k))(); }, &kernel, g.blocks, g.threads};
}

#if QUARRY_CUDA
template <class Kernel>
__global__ void run_kernel(const Kernel kernel) {
  kernel();
}
#endif

}  // namespace simt

template <backend Backend = default_backend, class Kernel>
void launch(const grid& g, const Kernel& kernel) {
  simt::check_grid(g);
  if constexpr (std::is_same_v<Backend, cpu>) {
    simt::exec::worker_pool::instance().run(simt::make_job(g, kernel), g.workers, g.step_limit);
  } else {
#if QUARRY_CUDA
    simt::run_kernel<<<g.blocks, g.threads>>>(kernel);
    simt::check_cuda(cudaGetLastError(), "kernel launch");
    simt::check_cuda(cudaDeviceSynchronize(), "kernel");
#else
    static_assert(std::is_same_v<Backend, cpu>,
                  "launch<quarry::cuda> needs nvcc: compile this file as CUDA");
#endif
  }
}

}  // namespace quarry

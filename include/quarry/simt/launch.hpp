// SPDX-License-Identifier: Apache-2.0
#pragma once
/// launch<Backend>(grid, kernel, stream): runs kernel() once per lane.
///
/// Without a stream, launch waits until the kernel has ended, so that an error appears where it was
/// caused. With a stream, launch enqueues the kernel and returns; the next call that waits for the
/// stream reports an error of the kernel (stream.hpp). On the CPU backend the kernel has always ended
/// when launch returns. Device code of this library needs nothing from launch: CUDA's own <<<>>> is
/// equivalent.

#include <quarry/simt/backend.hpp>
#include <quarry/simt/cuda_error.hpp>
#include <quarry/simt/executor/worker_pool.hpp>
#include <quarry/simt/stream.hpp>

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
void launch(const grid& g, const Kernel& kernel,
            [[maybe_unused]] std::type_identity_t<stream_ref<Backend>> stream = {}) {
  simt::check_grid(g);
  if constexpr (std::is_same_v<Backend, cpu>) {
    simt::exec::worker_pool::instance().run(simt::make_job(g, kernel), g.workers, g.step_limit);
  } else {
#if QUARRY_CUDA
    simt::run_kernel<<<g.blocks, g.threads, 0, stream.get()>>>(kernel);
    simt::check_cuda(cudaGetLastError(), "kernel launch");
    if (!stream.names_stream()) simt::check_cuda(cudaDeviceSynchronize(), "kernel");
#else
    static_assert(std::is_same_v<Backend, cpu>,
                  "launch<quarry::cuda> needs nvcc: compile this file as CUDA");
#endif
  }
}

}  // namespace quarry

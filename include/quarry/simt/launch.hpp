// SPDX-License-Identifier: Apache-2.0
#pragma once
/// launch<Backend>(grid, kernel, stream): calls kernel() once per lane.
///
/// Without a stream, launch waits until the kernel has ended, so that an error appears where it was
/// caused. With a stream, launch enqueues the kernel and returns; the next call that waits for the
/// stream reports an error of the kernel (stream.hpp). On the CPU backend the kernel has always
/// ended when launch returns. The device code of this library does not depend on launch: CUDA's own
/// <<<>>> is equivalent.
///
/// launch<cpu> needs the library quarry::cpu. Without it the linker reports
/// `quarry::simt::needs_quarry_cpu::run_grid` as undefined (detail/cpu_library.hpp).

#include <quarry/simt/backend.hpp>
#include <quarry/simt/cuda_error.hpp>
#include <quarry/simt/detail/cpu_library.hpp>
#include <quarry/simt/stream.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace quarry {

struct grid {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;    // per block, at most 1024
  unsigned workers = 0;          // cpu: the number of OS threads; 0: simt::default_workers()
  std::uint64_t step_limit = 0;  // cpu: a block with more accesses fails; 0: no limit
};

namespace simt {

inline void check_grid(const grid& g) {
  if (g.blocks != 0 && g.threads != 0 && g.threads <= 1024) return;
  throw error("launch of " + std::to_string(g.blocks) + " blocks of " + std::to_string(g.threads) +
              " threads: both must be at least 1, and a block holds at most 1024 threads");
}

/// Returns: the number of OS threads that run a grid on the CPU backend by default. The environment
/// variable QUARRY_WORKERS sets it.
inline unsigned default_workers() { return needs_quarry_cpu::default_workers(); }

template <class Kernel>
detail::job make_job(const grid& g, const Kernel& kernel) {
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
    simt::needs_quarry_cpu::run_grid(simt::make_job(g, kernel), g.workers, g.step_limit);
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The grid of a persistent kernel: as many blocks as the device runs concurrently.

#include <quarry/simt/cuda_error.hpp>
#include <quarry/simt/launch.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace quarry::apps {

/// On the CPU backend: one block per worker thread. Further blocks would start after all work is
/// done.
template <class Backend, class Kernel>
grid persistent_grid([[maybe_unused]] const Kernel& kernel, std::uint32_t threads) {
  if constexpr (std::is_same_v<Backend, cpu>) {
    return {.blocks = simt::default_workers(), .threads = threads};
  } else {
#if QUARRY_CUDA
    int device = 0, multiprocessors = 0, blocks = 0;
    simt::check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    simt::check_cuda(
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
    simt::check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                         &blocks, simt::run_kernel<Kernel>, static_cast<int>(threads), 0),
                     "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    return {.blocks = static_cast<std::uint32_t>(multiprocessors * std::max(blocks, 1)),
            .threads = threads};
#else
    static_assert(std::is_same_v<Backend, cpu>, "a GPU's grid needs nvcc");
#endif
  }
}

}  // namespace quarry::apps

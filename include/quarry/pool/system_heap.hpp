// SPDX-License-Identifier: Apache-2.0
#pragma once
/// system_heap: the system's allocator: CUDA's device malloc on the GPU, std::malloc on the CPU.
///
/// GPU: CUDA has one device heap per process. A system_heap raises its size to at least the
/// requested one (cudaLimitMallocHeapSize), which is possible only before the first use of the
/// device heap. Later kernels may free blocks; the host may not free them, and cudaMemcpy cannot
/// copy them.
/// CPU: the heap enforces its size. It counts the bytes that the C library assigns, and a request
/// beyond the size fails. The limit matches the behaviour of CUDA, and the count gives statistics.
///
/// Blocks lie outside the heap's pool (`owns_pool` is false), and no call frees all blocks.
/// Invariant (CPU, between kernels): live bytes <= size.
/// Thread safety and progress: those of the system's allocator.

#include <quarry/core/allocator.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/backend.hpp>
#include <quarry/simt/cuda_error.hpp>

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace quarry {

class system_heap {
 public:
  static constexpr abilities can = {
      .frees_one = true, .frees_all = false, .reuses = true, .owns_pool = false};

  system_heap() = default;
  system_heap(memory_range pool, carve& metadata)
      : size_(pool.size), counters_(metadata.take<counters>("counters", 1)) {}

  /// Effects: makes CUDA's device heap at least `size` bytes large.
  /// Requires: a call on the host, before the first kernel that uses the device heap.
  template <class Backend>
  static void reserve([[maybe_unused]] std::uint64_t size) {
#if QUARRY_CUDA
    if constexpr (std::is_same_v<Backend, cuda>) {
      std::size_t limit = 0;
      simt::check_cuda(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize),
                       "size of CUDA's device heap");
      if (limit >= size) return;
      if (cudaDeviceSetLimit(cudaLimitMallocHeapSize, size) == cudaSuccess) return;
      (void)cudaGetLastError();
      throw out_of_memory(
          "CUDA's device heap has " + std::to_string(limit) + " bytes, " + std::to_string(size) +
          " were requested, and it cannot grow after its first use: construct the largest "
          "system_heap first");
    }
#endif
  }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t) const {
#if !QUARRY_DEVICE_CODE
    if (lane == 0) counters_->enabled = 1;  // CUDA does not report block sizes
#else
    (void)lane;
#endif
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n == 0 || n > size_) return nullptr;
#if QUARRY_DEVICE_CODE
    return ::malloc(n);
#else
    simt::detail::before_access();
    void* block = std::malloc(n);
    if (block == nullptr) return nullptr;
    const std::uint64_t taken = ::malloc_usable_size(block);
    if (bytes_ref().fetch_add(taken, std::memory_order_relaxed) + taken > size_) {
      bytes_ref().fetch_sub(taken, std::memory_order_relaxed);
      std::free(block);
      return nullptr;
    }
    blocks_ref().fetch_add(1, std::memory_order_relaxed);
    return block;
#endif
  }

  QUARRY_DEVICE void free(void* block) const {
    if (block == nullptr) return;
#if QUARRY_DEVICE_CODE
    ::free(block);
#else
    simt::detail::before_access();
    bytes_ref().fetch_sub(::malloc_usable_size(block), std::memory_order_relaxed);
    blocks_ref().fetch_sub(1, std::memory_order_relaxed);
    std::free(block);
#endif
  }

  std::string check_invariants() const {
    if (counters_->enabled != 0 && counters_->bytes > size_)
      return "the live bytes exceed the size of the heap";
    return {};
  }

  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = size_;
    if (counters_->enabled == 0) return s;
    s.live_blocks = counters_->blocks;
    s.live_bytes = counters_->bytes;
    s.free_bytes = size_ - counters_->bytes;
    return s;
  }

 private:
  struct counters {
    std::uint64_t enabled;
    std::uint64_t bytes;
    std::uint64_t blocks;
  };

  // std::atomic_ref: these accesses belong to the system's allocator, so the executor neither
  // counts them nor switches lanes at them.
  std::atomic_ref<std::uint64_t> bytes_ref() const {
    return std::atomic_ref<std::uint64_t>(counters_->bytes);
  }
  std::atomic_ref<std::uint64_t> blocks_ref() const {
    return std::atomic_ref<std::uint64_t>(counters_->blocks);
  }

  std::uint64_t size_;
  counters* counters_;
};

static_assert(freeing_allocator<system_heap>);

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// system_heap: the allocator the system brings. CUDA's device malloc on the GPU, std::malloc on the CPU.
///
/// On the GPU the pool is CUDA's own and there is one per process: a heap of this kind makes it at least
/// as large as asked (cudaLimitMallocHeapSize), which is possible only before its first use. Blocks may be
/// freed in later kernels, but not by the host, and memory of it can not be copied by cudaMemcpy.
/// On the CPU the heap is held to its size: bytes as the C library rounds them are counted, and a
/// request that would exceed the size fails. That makes it behave as CUDA's does, and tells what is live.
///
/// Blocks do not lie in the heap's pool (`owns_pool` is false), and nothing can free all at once.
/// Invariant (CPU, between kernels): live bytes <= size.

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
      : size_(pool.size), book_(metadata.take<book>("book", 1)) {}

  /// Host, before the first kernel: sees to it that the system has this much.
  template <class Backend>
  static void reserve([[maybe_unused]] std::uint64_t size) {
#if QUARRY_CUDA
    if constexpr (std::is_same_v<Backend, cuda>) {
      std::size_t limit = 0;
      simt::check_cuda(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize), "size of CUDA's heap");
      if (limit >= size) return;
      if (cudaDeviceSetLimit(cudaLimitMallocHeapSize, size) == cudaSuccess) return;
      (void)cudaGetLastError();
      throw out_of_memory(
          "CUDA's device heap has " + std::to_string(limit) + " bytes, " + std::to_string(size) +
          " were asked for, and it can not grow after its first use: make the largest "
          "heap of this kind first");
    }
#endif
  }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t) const {
#if !QUARRY_DEVICE_CODE
    if (lane == 0) book_->kept = 1;  // only the CPU's is kept
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
    if (book_->kept != 0 && book_->bytes > size_) return "more bytes are live than the heap has";
    return {};
  }

  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = size_;
    if (book_->kept == 0) return s;  // CUDA tells nobody
    s.live_blocks = book_->blocks;
    s.live_bytes = book_->bytes;
    s.free_bytes = size_ - book_->bytes;
    return s;
  }

 private:
  struct book {
    std::uint64_t kept;
    std::uint64_t bytes;
    std::uint64_t blocks;
  };

  // The system's own doings, so neither counted nor a place to switch lanes.
  std::atomic_ref<std::uint64_t> bytes_ref() const {
    return std::atomic_ref<std::uint64_t>(book_->bytes);
  }
  std::atomic_ref<std::uint64_t> blocks_ref() const {
    return std::atomic_ref<std::uint64_t>(book_->blocks);
  }

  std::uint64_t size_;
  book* book_;
};

static_assert(freeing_allocator<system_heap>);

}  // namespace quarry

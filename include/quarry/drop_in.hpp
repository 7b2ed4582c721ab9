// SPDX-License-Identifier: Apache-2.0
#pragma once
/// malloc, free, calloc and realloc for kernels that already call CUDA's.
///
///   #include <quarry/drop_in.hpp>
///   using namespace quarry::literals;
///
///   __global__ void kernel(char* text) {
///     using quarry::drop_in::malloc, quarry::drop_in::free;
///     char* copy = static_cast<char*>(malloc(80));
///     ...
///     free(copy);
///   }
///   int main() {
///     quarry::drop_in::init(1_GiB);         // once, before the first kernel
///     kernel<<<1000, 256>>>(text);
///     quarry::drop_in::heap().check();      // throws if an allocation failed
///   }
///
/// Put the using-declaration into the kernel, or into a namespace around kernels, where it hides
/// CUDA's functions. At file scope, and as `using namespace`, calls would be ambiguous.
///
/// Kernels allocate from the heap of their backend; before init(), their malloc returns nullptr.
/// Host code outside kernels allocates from the C library, so that a __host__ __device__ function
/// works on both sides. Kernels on a GPU free the blocks of kernels, and host code those of host
/// code. On the CPU backend, kernels and host code may free each other's blocks.
///
/// A process has one heap per backend. It lives until the process ends, or until cudaDeviceReset:
/// then init() makes a new heap. Blocks of the old one must not be used or freed. init() and heap()
/// are called by one thread at a time. Programs with several heaps, with a heap on each of several
/// GPUs, or with heaps that end use heap and heap_ref.
///
/// How device code finds the heap: each translation unit has a __constant__ copy of the heap_ref
/// and adds itself to a list when the program starts (as layer/xmc.hpp does). init() writes all
/// copies. It works with and without relocatable device code. cudaDeviceReset clears the copies.

#include <quarry/heap.hpp>
#include <quarry/simt/detail/allocation_id.hpp>
#include <quarry/simt/detail/executor_interface.hpp>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>

namespace quarry::drop_in {

/// realloc needs an allocator that knows the sizes of its blocks.
using allocator_type = slab;

namespace detail {

template <backend Backend>
struct handle {
  heap_ref<allocator_type, Backend> heap;
  bool ready;  // whether init() has made the heap
};

/// The heap of a backend.
template <backend Backend>
class process_heap {
 public:
  using heap_type = quarry::heap<allocator_type, Backend>;

  /// Returns nullptr before make(), and after cudaDeviceReset.
  static heap_type* find() { return heap_ != nullptr && !is_lost() ? heap_ : nullptr; }
  static bool was_made() { return heap_ != nullptr; }
  /// The heap is never destroyed, because kernels may run until the process ends. Nor is one that
  /// cudaDeviceReset has ended: its memory may belong to another allocation.
  static heap_type& make(bytes pool) {
    heap_ = new heap_type(pool);
#if QUARRY_CUDA
    if constexpr (std::is_same_v<Backend, cuda>) {
      id_ = simt::allocation_id(heap_->pool().begin);
      simt::check_cuda(cudaGetDevice(&device_), "querying the current device");
    }
#endif
    return *heap_;
  }
  /// Throws error if the heap is on another GPU than the current one.
  static void check_device() {
#if QUARRY_CUDA
    if constexpr (std::is_same_v<Backend, cuda>) {
      int current = 0;
      simt::check_cuda(cudaGetDevice(&current), "querying the current device");
      if (current != device_)
        throw error("quarry::drop_in::init: the heap of the process is on GPU " +
                    std::to_string(device_) + ", and the current device is GPU " +
                    std::to_string(current) + "; use a quarry::heap on each GPU");
    }
#endif
  }
  /// Returns whether p is in the pool.
  static bool owns(const void* p) {
    return heap_ != nullptr && heap_->pool().contains(p) && !is_lost();
  }

 private:
  static bool is_lost() {
#if QUARRY_CUDA
    if constexpr (std::is_same_v<Backend, cuda>)
      return simt::allocation_id(heap_->pool().begin) != id_;
#endif
    return false;
  }

  inline static heap_type* heap_ = nullptr;
#if QUARRY_CUDA
  inline static std::optional<unsigned long long> id_;  // of the pool
  inline static int device_ = 0;
#endif
};

inline handle<cpu> cpu_handle{};

#if QUARRY_CUDA
/// A translation unit with its own copy of the handle. All units form a list.
class unit {
 public:
  using writer = void (*)(const handle<cuda>&);
  explicit unit(writer write) : write_(write), next_(first()) {
    first() = this;
    // A library that is loaded after init().
    if (const auto* heap = process_heap<cuda>::find()) write({heap->ref(), true});
  }
  static void write_all(const handle<cuda>& h) {
    for (const unit* u = first(); u != nullptr; u = u->next_) u->write_(h);
  }

 private:
  static unit*& first() {
    static unit* u = nullptr;
    return u;
  }
  writer write_;
  unit* next_;
};

static __constant__ handle<cuda> unit_handle;
static const unit this_unit([](const handle<cuda>& h) {
  simt::check_cuda(cudaMemcpyToSymbol(unit_handle, &h, sizeof h), "quarry::drop_in::init");
});
#endif

/// Returns the handle of the backend that the calling lane runs on.
QUARRY_DEVICE static inline const auto& current_handle() {
#if QUARRY_DEVICE_CODE
  return unit_handle;
#else
  return cpu_handle;
#endif
}

#if !QUARRY_DEVICE_CODE
/// Returns whether the caller is host code outside kernels.
inline bool is_host_code() { return simt::detail::executor_interface::current() == nullptr; }

/// Returns whether p is a block of the C library: all blocks outside the pool of the CPU backend.
/// Throws error if p is a block of the GPU's heap.
inline bool belongs_to_c_library(const void* p) {
#if QUARRY_CUDA
  if (process_heap<cuda>::owns(p))
    throw error(
        "quarry::drop_in: host code can not free or resize a block of the GPU's heap; do it "
        "in a kernel");
#endif
  return !process_heap<cpu>::owns(p);
}
#endif

}  // namespace detail

/// Makes the heap of the process and waits until the device is idle. Has no effect if the heap
/// exists and has this size. Throws out_of_memory, and error if the heap exists and has another
/// size or is on another GPU than the current one.
template <backend Backend = default_backend>
void init(bytes pool) {
  using process_heap = detail::process_heap<Backend>;
  if (const auto* existing = process_heap::find()) {
    if (existing->pool_bytes() != pool.value())
      throw error("quarry::drop_in::init(" + to_text(pool) +
                  "): the process already has a heap of " + to_text(existing->pool_bytes()) +
                  ", which kernels may be using; call init with one size everywhere");
    return process_heap::check_device();
  }
  const auto& made = process_heap::make(pool);
  if constexpr (std::is_same_v<Backend, cpu>) {
    detail::cpu_handle = {made.ref(), true};
  } else {
#if QUARRY_CUDA
    detail::unit::write_all({made.ref(), true});
#endif
  }
}

/// Returns the heap for host functions: statistics(), check(), reset(). Throws error before init(),
/// and after cudaDeviceReset.
template <backend Backend = default_backend>
quarry::heap<allocator_type, Backend>& heap() {
  using process_heap = detail::process_heap<Backend>;
  if (auto* existing = process_heap::find()) return *existing;
  throw error(process_heap::was_made()
                  ? "quarry::drop_in::heap(): cudaDeviceReset has ended the heap; call "
                    "quarry::drop_in::init again"
                  : "quarry::drop_in::heap(): there is no heap; call quarry::drop_in::init first");
}

/// The functions of the C library. Each returns nullptr if the allocation failed or n is 0. In host
/// code, free and realloc throw error if p is a block of the GPU's heap.
QUARRY_DEVICE static inline void* malloc(std::size_t n) {
#if !QUARRY_DEVICE_CODE
  if (detail::is_host_code()) return n != 0 ? std::malloc(n) : nullptr;
#endif
  return detail::current_handle().ready ? detail::current_handle().heap.malloc(n) : nullptr;
}
QUARRY_DEVICE static inline void* calloc(std::size_t count, std::size_t size) {
#if !QUARRY_DEVICE_CODE
  if (detail::is_host_code()) return count != 0 && size != 0 ? std::calloc(count, size) : nullptr;
#endif
  return detail::current_handle().ready ? detail::current_handle().heap.calloc(count, size)
                                        : nullptr;
}
QUARRY_DEVICE static inline void free(void* p) {
  if (p == nullptr) return;
#if !QUARRY_DEVICE_CODE
  if (detail::belongs_to_c_library(p)) return std::free(p);
#endif
  detail::current_handle().heap.free(p);
}
QUARRY_DEVICE static inline void* realloc(void* p, std::size_t n) {
#if !QUARRY_DEVICE_CODE
  if (p == nullptr) return malloc(n);
  if (detail::belongs_to_c_library(p)) {
    if (n != 0) return std::realloc(p, n);
    std::free(p);
    return nullptr;
  }
#endif
  return detail::current_handle().ready ? detail::current_handle().heap.realloc(p, n) : nullptr;
}

}  // namespace quarry::drop_in

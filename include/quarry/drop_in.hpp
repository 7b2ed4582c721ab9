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
/// A process has one heap per backend, which lives until the process ends. Before init(), malloc
/// returns nullptr. Programs with several heaps, or with heaps that end, use heap and heap_ref.
///
/// How device code finds the heap: each translation unit has a __constant__ copy of the heap_ref
/// and adds itself to a list when the program starts (as layer/xmc.hpp does). init() writes all
/// copies. It works with and without relocatable device code.

#include <quarry/heap.hpp>

#include <cstddef>
#include <memory>
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

/// The heap of a backend; nullptr before init(). It is never destroyed, because kernels may run
/// until the process ends.
template <backend Backend>
inline quarry::heap<allocator_type, Backend>* process_heap = nullptr;

inline handle<cpu> cpu_handle{};

#if QUARRY_CUDA
/// A translation unit with its own copy of the handle. All units form a list.
class unit {
 public:
  using writer = void (*)(const handle<cuda>&);
  explicit unit(writer write) : write_(write), next_(first()) {
    first() = this;
    // A library that is loaded after init().
    if (process_heap<cuda> != nullptr) write({process_heap<cuda>->ref(), true});
  }
  static void write_all() {
    for (const unit* u = first(); u != nullptr; u = u->next_)
      u->write_({process_heap<cuda>->ref(), true});
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

}  // namespace detail

/// Makes the heap of the process and waits until the device is idle. Throws out_of_memory, and
/// error if init() was called before.
template <backend Backend = default_backend>
void init(bytes pool) {
  auto*& process_heap = detail::process_heap<Backend>;
  if (process_heap != nullptr)
    throw error("quarry::drop_in::init(" + to_text(pool) + "): the process already has a heap of " +
                to_text(process_heap->pool_bytes()) + "; call init once");
  process_heap = new quarry::heap<allocator_type, Backend>(pool);
  if constexpr (std::is_same_v<Backend, cpu>) {
    detail::cpu_handle = {process_heap->ref(), true};
  } else {
#if QUARRY_CUDA
    detail::unit::write_all();
#endif
  }
}

/// Returns the heap for host functions: statistics(), check(), reset(). Throws error before init().
template <backend Backend = default_backend>
quarry::heap<allocator_type, Backend>& heap() {
  if (detail::process_heap<Backend> == nullptr)
    throw error("quarry::drop_in::heap(): there is no heap; call quarry::drop_in::init first");
  return *detail::process_heap<Backend>;
}

/// The functions of the C library. Each returns nullptr if the allocation failed or n is 0.
QUARRY_DEVICE static inline void* malloc(std::size_t n) {
  return detail::current_handle().ready ? detail::current_handle().heap.malloc(n) : nullptr;
}
QUARRY_DEVICE static inline void* calloc(std::size_t count, std::size_t size) {
  return detail::current_handle().ready ? detail::current_handle().heap.calloc(count, size)
                                        : nullptr;
}
QUARRY_DEVICE static inline void* realloc(void* p, std::size_t n) {
  return detail::current_handle().ready ? detail::current_handle().heap.realloc(p, n) : nullptr;
}
QUARRY_DEVICE static inline void free(void* p) {
  if (p != nullptr) detail::current_handle().heap.free(p);
}

}  // namespace quarry::drop_in

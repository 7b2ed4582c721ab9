// SPDX-License-Identifier: Apache-2.0
#pragma once
/// malloc, free, calloc and realloc in kernels that already call them: one line a kernel, one in main.
///
///   #include <quarry/drop_in.hpp>
///
///   __global__ void kernel(char* text) {
///     using quarry::drop_in::malloc, quarry::drop_in::free;
///     char* copy = static_cast<char*>(malloc(80));
///     …
///     free(copy);
///   }
///   int main() {
///     quarry::drop_in::init(1_GiB);         // once, before the first kernel
///     kernel<<<1000, 256>>>(text);
///     quarry::drop_in::heap().check();      // throws if an allocation failed
///   }
///
/// The line stands in the kernel, or in a namespace around kernels, where these names hide CUDA's. At file scope, and
/// as `using namespace`, they would stand beside CUDA's, and the compiler could not choose.
/// There is one heap a process and machine, and it lives until the process ends. Before init, malloc gives nullptr.
/// Programs that want two heaps, or an end, take heap and heap_ref.
///
/// How device code finds the heap: see layer/xmc.hpp. Each translation unit has a __constant__ of its own and adds
/// itself to a list when the program starts; init writes all of them.

#include <quarry/heap.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace quarry::drop_in {

/// It frees, and knows the sizes of blocks, which realloc needs.
using allocator_type = slab;

namespace detail {

template <backend Backend>
struct handle {
  heap_ref<allocator_type, Backend> heap;
  bool ready;  // false: there is no heap yet
};

/// What init made on a machine; never destroyed, since kernels may run until the very end.
template <backend Backend>
inline quarry::heap<allocator_type, Backend>* made = nullptr;

inline handle<cpu> cpu_handle{};

#if QUARRY_CUDA
/// A translation unit with a copy of the handle.
class unit {
 public:
  using writer = void (*)(const handle<cuda>&);
  explicit unit(writer write) : write_(write), next_(first()) {
    first() = this;
    if (made<cuda> != nullptr) write({made<cuda>->ref(), true});  // a library that is loaded late
  }
  static void write_all() {
    for (const unit* u = first(); u != nullptr; u = u->next_) u->write_({made<cuda>->ref(), true});
  }

 private:
  static unit*& first() {
    static unit* u = nullptr;
    return u;
  }
  writer write_;
  unit* next_;
};

static __constant__ handle<cuda> handle_here;
static const unit this_unit([](const handle<cuda>& h) {
  simt::check_cuda(cudaMemcpyToSymbol(handle_here, &h, sizeof h), "quarry::drop_in::init");
});
#endif

/// The heap that the running code may use.
QUARRY_DEVICE static inline const auto& here() {
#if QUARRY_DEVICE_CODE
  return handle_here;
#else
  return cpu_handle;
#endif
}

}  // namespace detail

/// Makes the heap. Throws out_of_memory, and error if there is one already.
template <backend Backend = default_backend>
void init(bytes pool) {
  auto*& made = detail::made<Backend>;
  if (made != nullptr)
    throw error("quarry::drop_in::init(" + to_text(pool) + "): there is a heap of " +
                to_text(made->pool_bytes()) + " already; call init once");
  made = new quarry::heap<allocator_type, Backend>(pool);
  if constexpr (std::is_same_v<Backend, cpu>) {
    detail::cpu_handle = {made->ref(), true};
  } else {
#if QUARRY_CUDA
    detail::unit::write_all();
#endif
  }
}

/// For what only the host can ask: statistics(), check(), reset(). Throws error before init.
template <backend Backend = default_backend>
quarry::heap<allocator_type, Backend>& heap() {
  if (detail::made<Backend> == nullptr)
    throw error("quarry::drop_in::heap(): call quarry::drop_in::init first");
  return *detail::made<Backend>;
}

/// As C's: nullptr when nothing fits, and for n = 0.
QUARRY_DEVICE static inline void* malloc(std::size_t n) {
  return detail::here().ready ? detail::here().heap.malloc(n) : nullptr;
}
QUARRY_DEVICE static inline void* calloc(std::size_t count, std::size_t size) {
  return detail::here().ready ? detail::here().heap.calloc(count, size) : nullptr;
}
QUARRY_DEVICE static inline void* realloc(void* p, std::size_t n) {
  return detail::here().ready ? detail::here().heap.realloc(p, n) : nullptr;
}
QUARRY_DEVICE static inline void free(void* p) {
  if (p != nullptr) detail::here().heap.free(p);
}

}  // namespace quarry::drop_in

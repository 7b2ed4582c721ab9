// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The functions of XMalloc's paper (Huang et al. 2013, Fig. 1), for existing programs.
///
///   #include <quarry/layer/xmc.hpp>
///   using namespace quarry;
///   __global__ void kernel() {
///     void* p = xmcMalloc(64);
///     …
///     xmcFree(p);
///   }
///   int main() {
///     xmcInit();                       // once, before the first kernel
///     kernel<<<1000, 256>>>();
///   }
///
/// There is one heap per process and backend (on CUDA: for the device that is current at xmcInit),
/// which lives until the process ends. xmcMalloc returns nullptr before xmcInit. Programs that need
/// two heaps, or a heap with a shorter lifetime, use heap<xmalloc>.
///
/// How device code finds the heap. An inline __device__ variable in a header exists once per
/// program with -rdc=true, but once per translation unit without it, and then the host writes only
/// one copy. This header therefore always has one copy per translation unit: a __constant__ with
/// internal linkage, read by functions with internal linkage. Each translation unit registers
/// itself when the program starts, and xmcInit writes all copies. Constant memory also holds kernel
/// arguments, so the handle costs no more than a heap_ref. The variable exists only in programs
/// that include this header.

#include <quarry/core/bytes.hpp>
#include <quarry/layer/xmalloc.hpp>
#include <quarry/simt/array.hpp>
#include <quarry/simt/cuda_error.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/launch.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace quarry {

namespace detail {

struct xmc_handle {
  xmalloc heap;
  std::uint64_t size;  // 0: no heap exists
};

/// The heap that xmcInit has created on a backend.
template <backend Backend>
inline xmc_handle xmc_heap{};

struct xmc_start {
  xmalloc heap;
  QUARRY_DEVICE void operator()() const {
    heap.initialise(simt::global_thread(), simt::grid_threads());
  }
};

#if QUARRY_CUDA
/// A translation unit that has a copy of the handle.
class xmc_unit {
 public:
  using writer = void (*)(const xmc_handle&);
  explicit xmc_unit(writer write) : write_(write), next_(first()) {
    first() = this;
    if (xmc_heap<cuda>.size != 0) write(xmc_heap<cuda>);  // a library that is loaded after xmcInit
  }
  static void write_all() {
    for (const xmc_unit* unit = first(); unit != nullptr; unit = unit->next_)
      unit->write_(xmc_heap<cuda>);
  }

 private:
  static xmc_unit*& first() {
    static xmc_unit* unit = nullptr;
    return unit;
  }
  writer write_;
  xmc_unit* next_;
};

// `static` instead of an unnamed namespace: nvcc confuses the latter with the unnamed namespace of
// a file that has `using namespace quarry`.
static __constant__ xmc_handle xmc_here;
static const xmc_unit xmc_this_unit([](const xmc_handle& h) {
  simt::check_cuda(cudaMemcpyToSymbol(xmc_here, &h, sizeof h), "xmcInit");
});
#endif

/// Returns the handle for the code that calls this function.
QUARRY_DEVICE static inline const xmc_handle& xmc_handle_here() {
#if QUARRY_DEVICE_CODE
  return xmc_here;
#else
  return xmc_heap<cpu>;
#endif
}

}  // namespace detail

/// Effects: creates the heap. A further call has no effect if the heap has at least `size` bytes.
/// Throws: error if a smaller heap exists, since it cannot grow; out_of_memory.
template <backend Backend = default_backend>
void xmcInit(bytes size = 512_MiB) {
  detail::xmc_handle& handle = detail::xmc_heap<Backend>;
  if (size.value() <= handle.size) return;
  if (handle.size != 0)
    throw error("xmcInit(" + to_text(size) + "): a heap of " + to_text(handle.size) +
                " exists already and cannot grow; call xmcInit once, with the larger size");
  xmalloc::reserve<Backend>(size.value());
  carve parts(static_cast<std::byte*>(
      simt::memory<Backend>::allocate(metadata_bytes<xmalloc>(size.value()))));
  const xmalloc heap(memory_range{nullptr, size.value()}, parts);
  launch<Backend>({64, 256}, detail::xmc_start{heap});
  handle = {heap, size.value()};
#if QUARRY_CUDA
  if constexpr (std::is_same_v<Backend, cuda>) detail::xmc_unit::write_all();
#endif
}

/// Returns n bytes aligned to 16; nullptr if n is 0, if memory is exhausted, or before xmcInit.
QUARRY_DEVICE static inline void* xmcMalloc(std::size_t n) {
  const detail::xmc_handle& h = detail::xmc_handle_here();
  return h.size == 0 ? nullptr : h.heap.malloc(n);
}

/// Requires: p is nullptr or the result of xmcMalloc.
QUARRY_DEVICE static inline void xmcFree(void* p) {
  if (p != nullptr) detail::xmc_handle_here().heap.free(p);
}

}  // namespace quarry

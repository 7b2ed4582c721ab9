// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The functions of XMalloc's paper (Huang et al. 2013, Fig. 1), for programs written to them.
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
/// There is one heap a process and machine (on CUDA: for the device that is current at xmcInit), and
/// it lives until the process ends. Before xmcInit, xmcMalloc gives nullptr. Programs that want two
/// heaps, or an end, use heap<xmalloc>.
///
/// How device code finds the heap. A __device__ variable in a header is a trap: as an inline variable
/// it is one per program with -rdc=true, and one per translation unit without, of which the host
/// writes only one. So it is one per translation unit always: a __constant__ of internal linkage, read
/// by functions of internal linkage. Each unit adds itself to a list when the program starts, and
/// xmcInit writes all of them. Constant memory is where kernel arguments are, too: reading the handle
/// costs no more than heap_ref does. And this is a header of its own, so that only who includes it
/// has the variable.

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
  std::uint64_t size;  // 0: there is no heap yet
};

/// What xmcInit made on a machine.
template <backend Backend>
inline xmc_handle xmc_heap{};

struct xmc_start {
  xmalloc heap;
  QUARRY_DEVICE void operator()() const {
    heap.initialise(simt::global_thread(), simt::grid_threads());
  }
};

#if QUARRY_CUDA
/// A translation unit with a copy of the handle.
class xmc_unit {
 public:
  using writer = void (*)(const xmc_handle&);
  explicit xmc_unit(writer write) : write_(write), next_(first()) {
    first() = this;
    if (xmc_heap<cuda>.size != 0) write(xmc_heap<cuda>);  // a library that is loaded late
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

// `static`, not an unnamed namespace: nvcc confuses that with the one of who writes `using namespace
// quarry`.
static __constant__ xmc_handle xmc_here;
static const xmc_unit xmc_this_unit([](const xmc_handle& h) {
  simt::check_cuda(cudaMemcpyToSymbol(xmc_here, &h, sizeof h), "xmcInit");
});
#endif

/// The heap that the running code may use.
QUARRY_DEVICE static inline const xmc_handle& xmc_handle_here() {
#if QUARRY_DEVICE_CODE
  return xmc_here;
#else
  return xmc_heap<cpu>;
#endif
}

}  // namespace detail

/// Makes the heap. Called again it does nothing, if the heap is large enough, and throws error if not:
/// it can not grow. Throws out_of_memory.
template <backend Backend = default_backend>
void xmcInit(bytes size = 512_MiB) {
  detail::xmc_handle& made = detail::xmc_heap<Backend>;
  if (size.value() <= made.size) return;
  if (made.size != 0)
    throw error("xmcInit(" + to_text(size) + "): there is a heap of " + to_text(made.size) +
                " already, and it can not grow; call xmcInit once, with the larger size");
  xmalloc::reserve<Backend>(size.value());
  carve parts(static_cast<std::byte*>(
      simt::memory<Backend>::allocate(metadata_bytes<xmalloc>(size.value()))));
  const xmalloc heap(memory_range{nullptr, size.value()}, parts);
  launch<Backend>({64, 256}, detail::xmc_start{heap});
  made = {heap, size.value()};
#if QUARRY_CUDA
  if constexpr (std::is_same_v<Backend, cuda>) detail::xmc_unit::write_all();
#endif
}

/// n bytes, 16-byte aligned; nullptr for n = 0, when nothing fits, and before xmcInit.
QUARRY_DEVICE static inline void* xmcMalloc(std::size_t n) {
  const detail::xmc_handle& h = detail::xmc_handle_here();
  return h.size == 0 ? nullptr : h.heap.malloc(n);
}

/// Requires: p from xmcMalloc, or nullptr.
QUARRY_DEVICE static inline void xmcFree(void* p) {
  if (p != nullptr) detail::xmc_handle_here().heap.free(p);
}

}  // namespace quarry

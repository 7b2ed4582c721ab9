// SPDX-License-Identifier: Apache-2.0
/// Kernels that check_registers.py compiles with relocatable device code (-rdc=true). ptxas rejects
/// a kernel that calls a function with more registers than the launch bounds of the kernel leave.
#include <quarry/drop_in.hpp>
#include <quarry/heap.hpp>

#include <cstddef>
#include <type_traits>

namespace {

using quarry::heap_ref;

/// The pointer to free is loaded from memory, so that the compiler cannot combine the two calls.
template <class Allocator, int Threads, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks)
    bounded(heap_ref<Allocator, quarry::cuda> heap, std::size_t n, void** out, void* const* in) {
  out[threadIdx.x] = heap.malloc(n);
  if constexpr (Allocator::can.frees_one) heap.free(in[threadIdx.x]);
}
template <class Allocator, int Threads, int Blocks>
void instantiate_bounded() {
  bounded<Allocator, Threads, Blocks><<<1, 32>>>({}, 64, nullptr, nullptr);
}

}  // namespace

// Without launch bounds, a block of 1,024 threads starts if a kernel has at most 64 registers.
__global__ void unbounded(heap_ref<> heap, std::size_t n, void** out, void* const* in) {
  out[threadIdx.x] = heap.malloc(n);
  heap.free(in[threadIdx.x]);
}
__global__ void drop_in_unbounded(std::size_t n, void** out, void* const* in) {
  out[threadIdx.x] = quarry::drop_in::malloc(n);
  quarry::drop_in::free(in[threadIdx.x]);
}
__global__ void __launch_bounds__(1024, 2)
    drop_in_bounded(std::size_t n, void** out, void* const* in) {
  out[threadIdx.x] = quarry::drop_in::malloc(n);
  quarry::drop_in::free(in[threadIdx.x]);
}

void instantiate_kernels() {
  instantiate_bounded<quarry::slab, 256, 5>();
  instantiate_bounded<quarry::slab, 768, 2>();
  instantiate_bounded<quarry::slab, 1024, 1>();
  quarry::for_each_allocator([](auto entry) {
    using allocator_type = typename decltype(entry)::type;
    instantiate_bounded<allocator_type, 1024, 2>();
  });
}

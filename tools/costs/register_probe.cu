// SPDX-License-Identifier: Apache-2.0
/// Kernels whose registers and stack scripts/costs records: one per allocator, with one malloc and,
/// if the allocator can free single blocks, one free. This file is compiled to a cubin only; it is
/// neither linked nor run.
///
/// The first template argument of a kernel is the index of the allocator in the list. The index is
/// easy to parse from a mangled name (register_probeILj3E...).

#include <quarry/heap.hpp>

#include <cstddef>
#include <type_traits>

namespace quarry {

template <class Allocator>
constexpr unsigned list_index() {
  unsigned index = 0;
  unsigned found = 0;
  for_each_allocator([&](auto entry) {
    if (std::is_same_v<typename decltype(entry)::type, Allocator>) found = index;
    ++index;
  });
  return found;
}

/// The pointer to free is loaded from memory, so that the compiler cannot combine the two calls.
template <unsigned Index, class Allocator>
__global__ void register_probe(heap_ref<Allocator, cuda> heap, std::size_t n, void** out,
                               void* const* in) {
  const std::uint64_t lane = simt::global_thread();
  out[lane] = heap.malloc(n);
  if constexpr (Allocator::can.frees_one) heap.free(in[lane]);
}

/// Instantiates all kernels.
void instantiate_probes() {
  for_each_allocator([](auto entry) {
    using allocator_type = typename decltype(entry)::type;
    register_probe<list_index<allocator_type>()>
        <<<1, 32>>>(heap_ref<allocator_type, cuda>(), 64, nullptr, nullptr);
  });
}

}  // namespace quarry

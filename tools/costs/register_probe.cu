// SPDX-License-Identifier: Apache-2.0
/// Kernels whose registers scripts/costs counts: one a named allocator, with one malloc and, where
/// the allocator can, one free. Compiled to a cubin only, never linked and never run.
///
/// A kernel's first template argument is the allocator's place in the list: it reads well in a
/// mangled name (register_probeILj3E...), which a type does not.

#include <quarry/heap.hpp>

#include <cstddef>
#include <type_traits>

namespace quarry {

template <class Allocator>
constexpr unsigned place_in_list() {
  unsigned place = 0;
  unsigned found = 0;
  for_each_allocator([&](auto entry) {
    if (std::is_same_v<typename decltype(entry)::type, Allocator>) found = place;
    ++place;
  });
  return found;
}

/// The pointer to free is read from memory, so that the compiler can not merge the two calls.
template <unsigned Place, class Allocator>
__global__ void register_probe(heap_ref<Allocator, cuda> heap, std::size_t n, void** out,
                               void* const* in) {
  const std::uint64_t lane = simt::global_thread();
  out[lane] = heap.malloc(n);
  if constexpr (Allocator::can.frees_one) heap.free(in[lane]);
}

/// Makes the compiler generate all of them.
void instantiate_probes() {
  for_each_allocator([](auto entry) {
    using allocator_type = typename decltype(entry)::type;
    register_probe<place_in_list<allocator_type>()>
        <<<1, 32>>>(heap_ref<allocator_type, cuda>(), 64, nullptr, nullptr);
  });
}

}  // namespace quarry

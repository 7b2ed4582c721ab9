// SPDX-License-Identifier: Apache-2.0
/// One malloc and one free of the default heap, for slab_calls.py.
#include <quarry/heap.hpp>

__global__ void malloc_and_free(quarry::heap_ref<quarry::slab, quarry::cuda> heap, std::size_t size,
                                void** given, void** taken) {
  given[threadIdx.x] = heap.malloc(size);
  heap.free(taken[threadIdx.x]);
}

// SPDX-License-Identifier: Apache-2.0
/// wrap supports an alignment of 16 bytes only.
// expect: aligning_allocator
#include <quarry/heap.hpp>

void* use(quarry::heap_ref<quarry::wrap, quarry::cpu> heap) {
#ifndef QUARRY_CONTROL
  return heap.malloc(8, 64);
#else
  return heap.malloc(8);
#endif
}

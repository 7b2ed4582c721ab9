// SPDX-License-Identifier: Apache-2.0
/// realloc needs an allocator that knows the usable size of a block, or the old size.
// expect: sizing_allocator
#include <quarry/heap.hpp>

void* use(quarry::heap_ref<quarry::system_heap, quarry::cpu> heap, void* p) {
#ifndef QUARRY_CONTROL
  return heap.realloc(p, 100);
#else
  return heap.realloc(p, 50, 100);
#endif
}

// SPDX-License-Identifier: Apache-2.0
/// bump does not support free().
// expect: freeing_allocator
#include <quarry/heap.hpp>

void use(quarry::heap_ref<quarry::bump, quarry::cpu> heap, void* p) {
#ifndef QUARRY_CONTROL
  heap.free(p);
#else
  (void)heap.malloc(8);
  (void)p;
#endif
}

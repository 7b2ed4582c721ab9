// SPDX-License-Identifier: Apache-2.0
/// The host can not free one block of bump either.
// expect: freeing_allocator
#include <quarry/heap.hpp>

void use(const quarry::heap<quarry::bump, quarry::cpu>& heap) {
  void* const p = heap.allocate(8);
#ifndef QUARRY_CONTROL
  heap.deallocate(p);
#else
  (void)p;
#endif
}

// SPDX-License-Identifier: Apache-2.0
/// The system heap can not free all of its blocks at once.
// expect: frees_all
#include <quarry/heap.hpp>

void use() {
  quarry::heap<quarry::system_heap, quarry::cpu> heap(1024u);
#ifndef QUARRY_CONTROL
  heap.reset();
#endif
}

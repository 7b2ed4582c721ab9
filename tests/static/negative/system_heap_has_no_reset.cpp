// SPDX-License-Identifier: Apache-2.0
/// Nothing can free all that the system handed out.
// expect: frees_all
#include <quarry/heap.hpp>

void use() {
  quarry::heap<quarry::system_heap, quarry::cpu> heap(1024u);
#ifndef QUARRY_CONTROL
  heap.reset();
#endif
}

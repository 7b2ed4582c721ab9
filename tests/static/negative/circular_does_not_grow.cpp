// SPDX-License-Identifier: Apache-2.0
/// A heap grows only if its allocator is resizable.
// expect: resizable_allocator
#include <quarry/heap.hpp>

void use() {
#ifndef QUARRY_CONTROL
  quarry::heap<quarry::cfmalloc, quarry::cpu> heap(quarry::bytes(4096u), {.max = 8192u});
#else
  quarry::heap<quarry::growing_bump, quarry::cpu> heap(quarry::bytes(4096u), {.max = 8192u});
#endif
}

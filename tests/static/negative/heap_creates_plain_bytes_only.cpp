// SPDX-License-Identifier: Apache-2.0
/// The host copies the bytes of an object into a block: other types are created in a kernel.
// expect: create other types in a kernel
#include <quarry/heap.hpp>

#include <string>

void use(const quarry::heap<quarry::slab, quarry::cpu>& heap) {
#ifndef QUARRY_CONTROL
  heap.create<std::string>("text");
#else
  heap.create<int>(3);
#endif
}

// SPDX-License-Identifier: Apache-2.0
/// An allocator with the ability frees_one has free().
// expect: free
#include "example_allocator.hpp"

struct example : example_allocator {
  using example_allocator::example_allocator;
#ifndef QUARRY_CONTROL
  void free(void*) const = delete;
#endif
};
void use() { quarry::heap<example, quarry::cpu> heap(1024u); }

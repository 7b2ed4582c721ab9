// SPDX-License-Identifier: Apache-2.0
/// Every allocator has check_invariants().
// expect: check_invariants
#include "example_allocator.hpp"

struct example : example_allocator {
  using example_allocator::example_allocator;
#ifndef QUARRY_CONTROL
  std::string check_invariants() const = delete;
#endif
};
void use() { quarry::heap<example, quarry::cpu> heap(1024u); }

// SPDX-License-Identifier: Apache-2.0
/// The handle of an allocator is trivially copyable: kernels take it by value.
// expect: is_trivially_copyable_v
#include "example_allocator.hpp"

struct example : example_allocator {
  using example_allocator::example_allocator;
#ifndef QUARRY_CONTROL
  std::string not_bytes;
#endif
};
void use() { quarry::heap<example, quarry::cpu> heap(1024u); }

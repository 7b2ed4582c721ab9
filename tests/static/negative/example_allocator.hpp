// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The smallest type that satisfies the allocator concept. Each test removes one member.

#include <quarry/heap.hpp>

#include <string>

struct example_allocator {
  static constexpr quarry::abilities can = {.frees_one = true, .reuses = true};
  example_allocator() = default;
  example_allocator(quarry::memory_range, quarry::carve&) {}
  void initialise(std::uint64_t, std::uint64_t) const {}
  void* malloc(std::size_t) const { return nullptr; }
  void free(void*) const {}
  std::string check_invariants() const { return {}; }
  quarry::heap_statistics statistics() const { return {}; }
};

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A typed test suite over every allocator: TYPED_TEST_SUITE(Suite, every_allocator, paper_name).

#include <quarry/heap/named.hpp>

#include <gtest/gtest.h>

#include <string>

namespace quarry {

template <class List>
struct as_types;
template <class... Allocators>
struct as_types<allocator_list<Allocators...>> {
  using type = ::testing::Types<Allocators...>;
};
using every_allocator = as_types<all_allocators>::type;

/// The names of tests are the names of the allocators in the papers.
struct paper_name {
  template <class Allocator>
  static std::string GetName(int) {
    std::string name(label_of<Allocator>.name);
    std::erase(name, '-');
    return name;
  }
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
/// The four circular allocators under explored schedules, in pools of several regions: failed
/// searches record their failure in one region while other lanes free and split chunks in the next.
#include "check/effort.hpp"

#include <quarry/pool/circular/circular.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace quarry::circular_explore_test {
namespace {

template <class Allocator>
class ExploreCircular : public ::testing::Test {};
using four = ::testing::Types<cmalloc, cfmalloc, cmmalloc, cfmmalloc>;
TYPED_TEST_SUITE(ExploreCircular, four);

TYPED_TEST(ExploreCircular, OverSeveralRegions) {
  for (const std::uint32_t lanes : {3u, 8u, 32u})
    for (const exploration_strategy how :
         {exploration_strategy::both, exploration_strategy::lockstep})
      expect_survival<TypeParam>({.bounds = {.lanes = lanes, .blocks = 2},
                                  .pool_bytes = 4096,
                                  .schedules = scaled(lanes == 32 ? 4000 : 15'000),
                                  .strategy = how,
                                  .step_limit = 400'000,
                                  .refill_one_in = 4});
}

template <class Allocator>
class ExploreOffsets : public ::testing::Test {};
using per_multiprocessor = ::testing::Types<cmmalloc, cfmmalloc>;
TYPED_TEST_SUITE(ExploreOffsets, per_multiprocessor);

/// The pool is large enough for eight offsets. The four blocks run on four multiprocessors, and
/// each moves an offset of its own through the part of the pool that the others search, too.
TYPED_TEST(ExploreOffsets, OfFourMultiprocessors) {
  for (const exploration_strategy how :
       {exploration_strategy::both, exploration_strategy::lockstep})
    expect_survival<TypeParam>({.bounds = {.lanes = 2, .blocks = 4},
                                .pool_bytes = 8192,
                                .schedules = scaled(15'000),
                                .strategy = how,
                                .step_limit = 400'000,
                                .refill_one_in = 4});
}

}  // namespace
}  // namespace quarry::circular_explore_test

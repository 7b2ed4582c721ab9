// SPDX-License-Identifier: Apache-2.0 The explorer finds no failure in the repaired forms of the
// published algorithms and in the library's own allocators: 100,000 schedules each, half of them
// random and half PCT.
#include "effort.hpp"

#include <mutants/published_awmalloc.hpp>
#include <mutants/published_cmalloc.hpp>
#include <mutants/repaired_cmalloc.hpp>
#include <quarry/heap/named.hpp>

namespace quarry::survivors_test {
namespace {

using namespace mutants;

constexpr exploration_options all = {.schedules = scaled(100'000)};
constexpr exploration_options several_blocks = {.bounds = {.blocks = 4},
                                                .schedules = scaled(100'000)};

TEST(Survivors, RepairedAWMalloc) { expect_survival<repaired_awmalloc>(for_mutants(all)); }

using split_headers_repaired = published_cmalloc<cmalloc_repairs{
    .marker_used = true, .out_of_band = true, .next_before_flag = true, .bounded = true}>;
using split_headers_repaired_multi = published_cmalloc<
    cmalloc_repairs{
        .marker_used = true, .out_of_band = true, .next_before_flag = true, .bounded = true},
    4>;
TEST(Survivors, CMallocWithAllDefectsRepaired) { expect_survival<split_headers_repaired>(all); }
TEST(Survivors, CMMallocWithAllDefectsRepaired) {
  expect_survival<split_headers_repaired_multi>(several_blocks);
}

TEST(Survivors, FusedTombstones) { expect_survival<repaired_cmalloc<false>>(all); }
TEST(Survivors, FusedTombstonesWithSeveralOffsets) {
  expect_survival<repaired_cmalloc<false, 4>>(several_blocks);
}
TEST(Survivors, FusedTombstonesThatAbsorb) { expect_survival<repaired_cmalloc<true>>(all); }
TEST(Survivors, FusedTombstonesThatAbsorbWithSeveralOffsets) {
  expect_survival<repaired_cmalloc<true, 4>>(several_blocks);
}

TEST(Survivors, EveryAllocatorOfTheLibrary) {
  for_each_allocator([]<class A>(named_allocator<A> named) {
    SCOPED_TRACE(std::string(named.name));
    exploration_options options = all;
    options.paint_hidden = A::can.overwrites;  // two owners of one block race by design
    expect_survival<A>(options);
  });
}
TEST(Survivors, EveryAllocatorOfTheLibraryInLockstep) {
  for_each_allocator([]<class A>(named_allocator<A> named) {
    SCOPED_TRACE(std::string(named.name));
    for (const std::uint32_t lanes : {8u, 64u})
      expect_survival<A>({.bounds = {.lanes = lanes, .blocks = 3, .operations = 4},
                          .pool_bytes = 4096,
                          .schedules = scaled(lanes == 8 ? 10'000 : 1'000),
                          .strategy = exploration_strategy::lockstep,
                          .step_limit = 400'000,
                          .paint_hidden = A::can.overwrites});
  });
}
TEST(Survivors, EveryAllocatorOfTheLibraryWithAFullWarpOnSeveralBlocks) {
  for_each_allocator([]<class A>(named_allocator<A> named) {
    SCOPED_TRACE(std::string(named.name));
    exploration_options options = {.bounds = {.lanes = 64, .blocks = 3, .operations = 3},
                                   .pool_bytes = 4096,
                                   .schedules = scaled(4'000),
                                   .step_limit = 400'000,
                                   .paint_hidden = A::can.overwrites};
    expect_survival<A>(options);
  });
}

}  // namespace
}  // namespace quarry::survivors_test

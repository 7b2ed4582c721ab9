// SPDX-License-Identifier: Apache-2.0
// Every check of the explorer has an allocator that only it condemns.
#include "effort.hpp"

#include <mutants/broken_cells.hpp>

namespace quarry {
namespace {

using mutants::broken_cells;
using mutants::fault;

constexpr exploration_options quick = {
    .schedules = 5'000, .step_limit = 5'000, .refill_one_in = 2, .minimise = false};

TEST(Oracle, AcceptsTheSoundAllocatorThatTheBrokenOnesAreMadeFrom) {
  expect_survival<broken_cells<>>({.schedules = scaled(20'000), .refill_one_in = 2});
}
TEST(Oracle, SeesBlocksThatOverlap) {
  expect_failure<broken_cells<fault::claims_in_two_steps>>(quick, "which overlaps block #");
}
TEST(Oracle, SeesABlockOutsideThePool) {
  expect_failure<broken_cells<fault::one_cell_too_many>>(quick, "which is not inside the pool");
}
TEST(Oracle, SeesABlockThatIsNotAligned) {
  expect_failure<broken_cells<fault::wrong_alignment>>(quick, "which is not a multiple of 16");
}
TEST(Oracle, SeesLostMemory) {
  expect_failure<broken_cells<fault::leaks_last_cell>>(quick, "lost memory: the pool served");
}
TEST(Oracle, SeesACallThatDoesNotEnd) {
  expect_failure<broken_cells<fault::spins_when_full>>(quick, "step limit: the kernel has not ended after");
}
TEST(Oracle, SeesABrokenInvariant) {
  expect_failure<broken_cells<fault::counts_in_two_steps>>(quick,
                                                           "cells are taken, but the count is");
}
TEST(Oracle, SeesUserDataOverwritten) {
  expect_failure<broken_cells<fault::writes_to_neighbour>>(
      quick, "was overwritten while the block was live");
}
TEST(Oracle, SeesABlockForNothing) {
  expect_failure<broken_cells<fault::serves_zero_bytes>>(quick, "nothing was asked for");
}
TEST(Oracle, SeesABlockForTooMuch) {
  expect_failure<broken_cells<fault::serves_oversize>>(quick, "so much can not be served");
}
TEST(Oracle, SeesStatisticsThatDoNotReturnToZero) {
  expect_failure<broken_cells<fault::miscounts>>(quick, "the statistics count");
}
TEST(Oracle, SeesAWriteBeforeThePool) {
  expect_failure<broken_cells<fault::writes_before_pool>>(quick,
                                                          "before the pool were overwritten");
}
TEST(Oracle, SeesAWriteAfterTheMetadata) {
  expect_failure<broken_cells<fault::writes_after_metadata>>(quick,
                                                             "after the metadata were overwritten");
}
TEST(Oracle, SeesADeadlock) { expect_failure<broken_cells<fault::deadlocks>>(quick, "deadlock"); }

}  // namespace
}  // namespace quarry

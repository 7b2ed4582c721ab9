// SPDX-License-Identifier: Apache-2.0
// For each check of the oracle there is a mutant that only this check detects.
#include "effort.hpp"

#include <mutants/broken_cells.hpp>

namespace quarry::oracle_test {
namespace {

using mutants::broken_cells;
using mutants::fault;

constexpr exploration_options quick = {
    .schedules = 5'000, .step_limit = 5'000, .refill_one_in = 2, .minimise = false};

TEST(Oracle, AcceptsTheAllocatorWithoutAFault) {
  expect_survival<broken_cells<>>({.schedules = scaled(20'000), .refill_one_in = 2});
}
TEST(Oracle, DetectsBlocksThatOverlap) {
  expect_failure<broken_cells<fault::claims_in_two_steps>>(quick, "which overlaps block #");
}
TEST(Oracle, DetectsABlockOutsideThePool) {
  expect_failure<broken_cells<fault::one_cell_too_many>>(quick, "which is not inside the pool");
}
TEST(Oracle, DetectsABlockThatIsNotAligned) {
  expect_failure<broken_cells<fault::wrong_alignment>>(quick, "which is not a multiple of 16");
}
TEST(Oracle, DetectsALeak) {
  expect_failure<broken_cells<fault::leaks_last_cell>>(quick, "leak: the pool served");
}
TEST(Oracle, DetectsACallThatDoesNotEnd) {
  expect_failure<broken_cells<fault::spins_when_full>>(
      quick, "step limit: the kernel has not ended after");
}
TEST(Oracle, DetectsABrokenInvariant) {
  expect_failure<broken_cells<fault::counts_in_two_steps>>(quick,
                                                           "cells are taken, but the count is");
}
TEST(Oracle, DetectsOverwrittenUserData) {
  expect_failure<broken_cells<fault::writes_to_neighbour>>(
      quick, "was overwritten while the block was live");
}
TEST(Oracle, DetectsABlockForZeroBytes) {
  expect_failure<broken_cells<fault::serves_zero_bytes>>(quick, "the size is 0");
}
TEST(Oracle, DetectsABlockForASizeLargerThanThePool) {
  expect_failure<broken_cells<fault::serves_oversize>>(quick, "the size can not be served");
}
TEST(Oracle, DetectsStatisticsThatDoNotReturnToZero) {
  expect_failure<broken_cells<fault::miscounts>>(quick, "the statistics count");
}
TEST(Oracle, DetectsAWriteBeforeThePool) {
  expect_failure<broken_cells<fault::writes_before_pool>>(quick,
                                                          "before the pool were overwritten");
}
TEST(Oracle, DetectsAWriteAfterTheMetadata) {
  expect_failure<broken_cells<fault::writes_after_metadata>>(quick,
                                                             "after the metadata were overwritten");
}
TEST(Oracle, DetectsADeadlock) {
  expect_failure<broken_cells<fault::deadlocks>>(quick, "deadlock");
}

}  // namespace
}  // namespace quarry::oracle_test

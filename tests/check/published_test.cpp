// SPDX-License-Identifier: Apache-2.0
// The explorer finds the defects of the published algorithms, each on its own.
#include "defects.hpp"
#include "effort.hpp"

namespace quarry {
namespace {

template <allocator A>
void expect_found(const defect<A>& d) {
  exploration_options options = d.options;
  options.schedules = d.allowed;
  options.minimise = false;
  expect_failure<A>(options, d.text);
}

TEST(PublishedAWMalloc, ReturnsMemoryItNeverReserved) { expect_found(defects::unreserved); }
TEST(PublishedAWMalloc, ServesARequestLargerThanItsPool) { expect_found(defects::too_large); }

TEST(PublishedCMalloc, A_SwallowsItsEndMarker) { expect_found(defects::a); }
TEST(PublishedCMalloc, A_SwallowsItsEndMarkerEvenWithOneLane) { expect_found(defects::a_one_lane); }

TEST(PublishedCMalloc, B_ReadsUserDataAsAHeader) { expect_found(defects::b); }
TEST(PublishedCFMalloc, B_ReadsUserDataAsAHeader) { expect_found(defects::b_fused); }
TEST(PublishedCMalloc, B_NeedsLanesThatInterleave) {
  exploration_options options = for_mutants(defects::in_turn);
  options.schedules = scaled(50'000);
  expect_survival<defects::only_b>(options);
}

TEST(PublishedCMalloc, C_PublishesAChunkBeforeItsNext) {
  if (effort_divisor != 1) GTEST_SKIP() << "too rare for a slow build";
  expect_found(defects::c);
}

TEST(PublishedCMMalloc, D_IsCorruptedEvenWhenLanesRunOneAfterTheOther) { expect_found(defects::d); }
TEST(PublishedCFMMalloc, D_IsCorruptedEvenWhenLanesRunOneAfterTheOther) {
  expect_found(defects::d_fused);
}

TEST(PublishedCMalloc, E_HasNoEndWhenThePoolIsFull) { expect_found(defects::e); }

TEST(PublishedCMalloc, AsPrintedFailsAtOnce) { expect_found(defects::cmalloc_as_printed); }
TEST(PublishedCFMalloc, AsPrintedFailsAtOnce) { expect_found(defects::cfmalloc_as_printed); }

}  // namespace
}  // namespace quarry

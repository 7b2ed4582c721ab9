// SPDX-License-Identifier: Apache-2.0
// The explorer detects each defect of the published algorithms in isolation.
#include "defects.hpp"
#include "effort.hpp"

namespace quarry::published_test {
namespace {

template <allocator A>
void expect_detected(const defect<A>& d) {
  exploration_options options = d.options;
  options.schedules = d.allowed;
  options.minimise = false;
  expect_failure<A>(options, d.text);
}

TEST(PublishedAWMalloc, ReturnsMemoryItNeverReserved) { expect_detected(defects::unreserved); }
TEST(PublishedAWMalloc, ServesARequestLargerThanItsPool) { expect_detected(defects::too_large); }

TEST(PublishedCMalloc, A_MergesItsEndMarkerAway) { expect_detected(defects::a); }
TEST(PublishedCMalloc, A_MergesItsEndMarkerAwayEvenWithOneLane) {
  expect_detected(defects::a_one_lane);
}

TEST(PublishedCMalloc, B_ReadsUserDataAsAHeader) { expect_detected(defects::b); }
TEST(PublishedCFMalloc, B_ReadsUserDataAsAHeader) { expect_detected(defects::b_fused); }
TEST(PublishedCMalloc, B_NeedsLanesThatInterleave) {
  exploration_options options = for_mutants(defects::sequential);
  options.schedules = scaled(50'000);
  expect_survival<defects::only_b>(options);
}

TEST(PublishedCMalloc, C_PublishesAChunkBeforeItsNext) {
  if (effort_divisor != 1) GTEST_SKIP() << "too rare for a slow build";
  expect_detected(defects::c);
}

TEST(PublishedCMMalloc, D_IsCorruptedEvenWhenLanesRunOneAfterTheOther) {
  expect_detected(defects::d);
}
TEST(PublishedCFMMalloc, D_IsCorruptedEvenWhenLanesRunOneAfterTheOther) {
  expect_detected(defects::d_fused);
}

TEST(PublishedCMalloc, E_DoesNotTerminateWhenThePoolIsFull) { expect_detected(defects::e); }

TEST(PublishedCMalloc, AsPrintedFailsAtOnce) { expect_detected(defects::cmalloc_as_printed); }
TEST(PublishedCFMalloc, AsPrintedFailsAtOnce) { expect_detected(defects::cfmalloc_as_printed); }

}  // namespace
}  // namespace quarry::published_test

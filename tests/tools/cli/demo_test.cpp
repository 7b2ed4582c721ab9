// SPDX-License-Identifier: Apache-2.0
/// The checks of `quarry demo` detect faulty allocators.

#include "demo/run.hpp"
#include "faulty_bump.hpp"

#include <gtest/gtest.h>

#include <string>

namespace quarry::tool::demo_test {
namespace {

template <class Allocator = faulty_bump<>>
demo_row demo_of(defect d) {
  const with_defect present(d);
  const demo_plan plan{.lanes = 3000, .sizes = {64, 64}, .pool = 1 << 20, .timed_rounds = 1};
  demo_row row;
  demo_run<Allocator, cpu>(plan, row).run([](const char*, double) {});
  return row;
}

TEST(Demo, PassesASoundAllocator) {
  const demo_row row = demo_of(defect::none);
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.checked, 3000u);
  EXPECT_GT(row.mallocs_per_second, 0);
  EXPECT_LT(row.frees_per_second, 0);  // no free to time
}

TEST(Demo, DetectsBlocksThatOverlap) {
  if (QUARRY_TSAN) GTEST_SKIP() << "ThreadSanitizer reports the race first";
  EXPECT_NE(demo_of(defect::overlaps).failure.find("overlap"), std::string::npos);
}

TEST(Demo, DetectsMisalignedBlocks) {
  EXPECT_NE(demo_of(defect::misaligns).failure.find("not aligned"), std::string::npos);
}

TEST(Demo, DetectsBlocksOutsideThePool) {
  EXPECT_NE(demo_of(defect::strays).failure.find("outside the pool"), std::string::npos);
}

TEST(Demo, DetectsBlocksThatTheAllocatorWroteTo) {
  if (QUARRY_TSAN) GTEST_SKIP() << "ThreadSanitizer reports the race first";
  EXPECT_NE(demo_of(defect::spoils).failure.find("overwritten by other lanes"), std::string::npos);
}

TEST(Demo, DetectsFailedAllocations) {
  EXPECT_NE(demo_of(defect::fails).failure.find("of 3000 lanes"), std::string::npos);
}

TEST(Demo, DetectsAPoolThatHoldsLessAfterAReset) {
  EXPECT_NE(demo_of(defect::forgets).failure.find("of 3000 lanes"), std::string::npos);
}

TEST(Demo, DetectsBrokenInvariants) {
  EXPECT_NE(demo_of(defect::breaks).failure.find("two and two are five"), std::string::npos);
}

TEST(Demo, DetectsBlocksThatStayLive) {
  EXPECT_NE(demo_of<faulty_bump<true>>(defect::counts_wrong).failure.find("live blocks"),
            std::string::npos);
}

TEST(DemoSizes, StayInTheirRangeAndReachBothEnds) {
  const demo_sizes sizes{17, 130};
  bool least = false;
  bool most = false;
  for (std::uint64_t lane = 0; lane < 100'000; ++lane) {
    const std::uint64_t n = sizes.of(lane);
    ASSERT_GE(n, 17u);
    ASSERT_LE(n, 130u);
    least = least || n == 17;
    most = most || n == 130;
  }
  EXPECT_TRUE(least && most);
}

TEST(DemoSizes, CoverTheLargestRange) {
  const demo_sizes sizes{1, ~std::uint64_t{0}};
  for (std::uint64_t lane = 0; lane < 1000; ++lane) ASSERT_GE(sizes.of(lane), 1u);
}

}  // namespace
}  // namespace quarry::tool::demo_test

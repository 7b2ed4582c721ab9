// SPDX-License-Identifier: Apache-2.0
/// The checks of `quarry demo` see what they are there to see.

#include "demo/run.hpp"
#include "faulty_bump.hpp"

#include <gtest/gtest.h>

#include <string>

namespace quarry::tool {
namespace {

template <defect Defect>
demo_row demo_of() {
  const demo_plan plan{.lanes = 3000, .sizes = {64, 64}, .pool = 1 << 20, .timed_rounds = 1};
  demo_row row;
  demo_run<faulty_bump<Defect>, cpu>(plan, row).run([](const char*, double) {});
  return row;
}

TEST(Demo, PassesASoundAllocator) {
  const demo_row row = demo_of<defect::none>();
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.checked, 3000u);
  EXPECT_GT(row.mallocs_per_second, 0);
  EXPECT_LT(row.frees_per_second, 0);  // nothing to time
}

TEST(Demo, SeesBlocksThatOverlap) {
  if (QUARRY_TSAN) GTEST_SKIP() << "the defect is a race, and the race detector ends the program";
  EXPECT_NE(demo_of<defect::overlaps>().failure.find("overlap"), std::string::npos);
}

TEST(Demo, SeesBlocksThatAreNotAligned) {
  EXPECT_NE(demo_of<defect::misaligns>().failure.find("not aligned"), std::string::npos);
}

TEST(Demo, SeesBlocksOutsideThePool) {
  EXPECT_NE(demo_of<defect::strays>().failure.find("outside the pool"), std::string::npos);
}

TEST(Demo, SeesBlocksThatSomebodyElseWroteTo) {
  if (QUARRY_TSAN) GTEST_SKIP() << "the defect is a race, and the race detector ends the program";
  EXPECT_NE(demo_of<defect::spoils>().failure.find("written by somebody else"), std::string::npos);
}

TEST(Demo, SeesLanesThatWereNotServed) {
  EXPECT_NE(demo_of<defect::refuses>().failure.find("of 3000 lanes"), std::string::npos);
}

TEST(Demo, SeesAPoolThatServesLessTheSecondTime) {
  EXPECT_NE(demo_of<defect::forgets>().failure.find("of 3000 lanes"), std::string::npos);
}

TEST(Demo, SeesBrokenMetadata) {
  EXPECT_NE(demo_of<defect::breaks>().failure.find("two and two are five"), std::string::npos);
}

TEST(Demo, SeesBlocksThatStayLive) {
  EXPECT_NE(demo_of<defect::counts_wrong>().failure.find("live blocks"), std::string::npos);
}

TEST(DemoSizes, StayInTheirRangeAndReachItsEnds) {
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

TEST(DemoSizes, ReachTheEndOfTheNumberRange) {
  const demo_sizes sizes{1, ~std::uint64_t{0}};
  for (std::uint64_t lane = 0; lane < 1000; ++lane) ASSERT_GE(sizes.of(lane), 1u);
}

}  // namespace
}  // namespace quarry::tool

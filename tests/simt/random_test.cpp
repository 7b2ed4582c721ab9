// SPDX-License-Identifier: Apache-2.0
/// lane_random: seeds give different sequences, and values are uniformly distributed.

#include <quarry/simt/random.hpp>

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace quarry::simt::random_test {
namespace {

TEST(LaneRandom, SeedsGiveDifferentSequences) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) first.insert(lane_random(seed).next());
  EXPECT_GT(first.size(), 99'990u);
  EXPECT_NE(lane_random(1).next(), lane_random(std::uint64_t{1} << 32).next());
}

TEST(LaneRandom, StaysBelowItsBoundAndReachesEveryValue) {
  lane_random draw(5);
  std::vector<unsigned> seen(10);
  for (int i = 0; i < 100'000; ++i) ++seen.at(draw.below(10));
  for (unsigned n : seen) {
    EXPECT_GT(n, 9'500u);
    EXPECT_LT(n, 10'500u);
  }
}

TEST(Scramble, IsABijectionOnASample) {
  std::set<std::uint32_t> out;
  for (std::uint32_t x = 0; x < 100'000; ++x) out.insert(scramble(x));
  EXPECT_EQ(out.size(), 100'000u);
}

}  // namespace
}  // namespace quarry::simt::random_test

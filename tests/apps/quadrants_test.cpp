// SPDX-License-Identifier: Apache-2.0
#include "apps/delaunay/quadrants.hpp"

#include <gtest/gtest.h>

#include <set>

namespace quadrants_test {
namespace {

using namespace quarry;
using namespace quarry::apps;

static_assert(interleave_bits(0xffffffff, 0) == 0x5555555555555555);
static_assert(morton_code({3, 5}) == 0b100111);
static_assert(morton_position(0b100111) == cell_position{3, 5});

TEST(Quadrants, HaveConsecutiveNumbersBelowTheirParent) {
  for (unsigned n = 0; n < 64; ++n) {
    EXPECT_EQ(morton_code(morton_position(n)), n);
    EXPECT_EQ(morton_position(n).x / 2, morton_position(n / 4).x);
    EXPECT_EQ(morton_position(n).y / 2, morton_position(n / 4).y);
  }
  const quadrants q(16);
  EXPECT_EQ(q.leaves(), 64u);
  EXPECT_EQ(q.leaves_of(1, 2).first, 32u);
  EXPECT_EQ(q.leaves_of(1, 2).count, 16u);
  EXPECT_EQ(q.leaves_of(3, 7).count, 1u);
}

TEST(Quadrants, UseFourTimesMoreWorkersInEveryStage) {
  const quadrants q(64);
  for (unsigned stage = 0; stage <= q.last_stage(); ++stage) {
    unsigned taking_part = 0;
    for (unsigned w = 0; w < 64; ++w) {
      taking_part += q.participates(stage, w);
      if (q.participates(stage, w)) {
        EXPECT_EQ(q.worker_of(stage, q.block_of(stage, w)), w);
      }
    }
    EXPECT_EQ(taking_part, 1u << 2 * stage);
  }
  EXPECT_EQ(q.worker_of(2, 4 * 3), q.worker_of(1, 3)) << "the first quadrant stays at its worker";
}

TEST(Quadrants, CoverEveryTwoByTwoNeighbourhoodByAWindow) {
  for (const unsigned stage : {1u, 2u}) {
    const unsigned wide = 2u << stage;
    std::set<std::set<unsigned>> met;
    for (std::size_t i = 0; i < 4; ++i)
      for (unsigned block = 0; block < 1u << 2 * stage; ++block) {
        const auto parts = quadrants::window(stage, block, window_offsets[i]);
        met.emplace(parts.begin(), parts.end());
      }
    for (unsigned x = 0; x + 1 < wide; ++x)
      for (unsigned y = 0; y + 1 < wide; ++y)
        EXPECT_TRUE(met.contains({morton_code({x, y}), morton_code({x + 1, y}),
                                  morton_code({x, y + 1}), morton_code({x + 1, y + 1})}));
  }
}

/// Sender and receiver agree; half of the sub-quadrants move; neighbours do not both send first.
TEST(Quadrants, RotateBetweenNeighboursWithoutDeadlock) {
  for (const unsigned stage : {1u, 2u, 3u})
    for (std::size_t i = 0; i + 1 < window_offsets.size(); ++i)
      for (unsigned block = 0; block < 1u << 2 * stage; ++block) {
        const auto mine = quadrants::rotate(stage, block, window_offsets[i], window_offsets[i + 1]);
        const auto next =
            quadrants::rotate(stage, mine.to, window_offsets[i], window_offsets[i + 1]);
        EXPECT_EQ(mine.sent.size(), 2u);
        EXPECT_EQ(mine.sent, next.received);
        EXPECT_EQ(next.from, block);
        EXPECT_NE(mine.to, block);
        EXPECT_NE(mine.sends_first, next.sends_first);
      }
}

TEST(Quadrants, RequireAPowerOfFour) {
  EXPECT_NO_THROW(quadrants(1));
  EXPECT_THROW(quadrants(0), error);
  EXPECT_THROW(quadrants(8), error);
  EXPECT_THROW(quadrants(12), error);
}

}  // namespace
}  // namespace quadrants_test

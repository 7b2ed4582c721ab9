// SPDX-License-Identifier: Apache-2.0
#include "apps/delaunay/quadrants.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using namespace quarry;
using namespace quarry::apps;

static_assert(interleave(0xffffffff, 0) == 0x5555555555555555);
static_assert(number_at({3, 5}) == 0b100111);
static_assert(place_of(0b100111) == grid_place{3, 5});

TEST(Quadrants, FollowEachOtherBelowTheirParent) {
  for (unsigned n = 0; n < 64; ++n) {
    EXPECT_EQ(number_at(place_of(n)), n);
    EXPECT_EQ(place_of(n).x / 2, place_of(n / 4).x);
    EXPECT_EQ(place_of(n).y / 2, place_of(n / 4).y);
  }
  const quadrants q(16);
  EXPECT_EQ(q.leaves(), 64u);
  EXPECT_EQ(q.leaves_of(1, 2).first, 32u);
  EXPECT_EQ(q.leaves_of(1, 2).count, 16u);
  EXPECT_EQ(q.leaves_of(3, 7).count, 1u);
}

TEST(Quadrants, GoToFourTimesMoreWorkersInEveryStage) {
  const quadrants q(64);
  for (unsigned stage = 0; stage <= q.last_stage(); ++stage) {
    unsigned taking_part = 0;
    for (unsigned w = 0; w < 64; ++w) {
      taking_part += q.takes_part(stage, w);
      if (q.takes_part(stage, w)) {
        EXPECT_EQ(q.worker_of(stage, q.block_of(stage, w)), w);
      }
    }
    EXPECT_EQ(taking_part, 1u << 2 * stage);
  }
  EXPECT_EQ(q.worker_of(2, 4 * 3), q.worker_of(1, 3)) << "the first part stays";
}

TEST(Quadrants, MakeEveryTwoByTwoNeighboursMeetInSomeWindow) {
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
        EXPECT_TRUE(met.contains({number_at({x, y}), number_at({x + 1, y}), number_at({x, y + 1}),
                                  number_at({x + 1, y + 1})}));
  }
}

/// Who gives what, and who takes it, agree; half of everything moves; nobody waits in a circle.
TEST(Quadrants, RotateBetweenNeighbours) {
  for (const unsigned stage : {1u, 2u, 3u})
    for (std::size_t i = 0; i + 1 < window_offsets.size(); ++i)
      for (unsigned block = 0; block < 1u << 2 * stage; ++block) {
        const auto mine = quadrants::rotate(stage, block, window_offsets[i], window_offsets[i + 1]);
        const auto next =
            quadrants::rotate(stage, mine.to, window_offsets[i], window_offsets[i + 1]);
        EXPECT_EQ(mine.given.size(), 2u);
        EXPECT_EQ(mine.given, next.taken);
        EXPECT_EQ(next.from, block);
        EXPECT_NE(mine.to, block);
        EXPECT_NE(mine.gives_first, next.gives_first);
      }
}

TEST(Quadrants, NeedAPowerOfFour) {
  EXPECT_NO_THROW(quadrants(1));
  EXPECT_THROW(quadrants(0), error);
  EXPECT_THROW(quadrants(8), error);
  EXPECT_THROW(quadrants(12), error);
}

}  // namespace

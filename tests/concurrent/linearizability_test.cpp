// SPDX-License-Identifier: Apache-2.0
#include "concurrent/linearizability.hpp"

#include <gtest/gtest.h>

namespace linearizability_test {
namespace {

using quarry::testing::history;
using quarry::testing::linearizable;
using quarry::testing::queue_call;
using quarry::testing::sequential_queue;

queue_call put(std::uint32_t v) { return {true, v, true}; }
queue_call full(std::uint32_t v) { return {true, v, false}; }
queue_call got(std::uint32_t v) { return {false, v, true}; }
queue_call empty() { return {false, 0, false}; }

bool fits(const history<queue_call>& calls, std::size_t capacity = 2) {
  return linearizable(calls, sequential_queue(capacity));
}

TEST(Linearizability, AcceptsAnEmptyHistory) { EXPECT_TRUE(fits({})); }

TEST(Linearizability, AcceptsASequentialHistory) {
  EXPECT_TRUE(fits({{empty(), 0, 1, 2},
                    {put(1), 0, 3, 4},
                    {put(2), 0, 5, 6},
                    {full(3), 0, 7, 8},
                    {got(1), 0, 9, 10},
                    {got(2), 0, 11, 12},
                    {empty(), 0, 13, 14}}));
}

TEST(Linearizability, RejectsValuesOutOfOrder) {
  EXPECT_FALSE(fits({{put(1), 0, 1, 2}, {put(2), 0, 3, 4}, {got(2), 1, 5, 6}, {got(1), 1, 7, 8}}));
}

TEST(Linearizability, AcceptsEitherOrderOfCallsThatOverlap) {
  EXPECT_TRUE(fits({{put(1), 0, 1, 4}, {put(2), 1, 2, 3}, {got(2), 1, 5, 6}, {got(1), 1, 7, 8}}));
  EXPECT_TRUE(fits({{put(1), 0, 1, 4}, {put(2), 1, 2, 3}, {got(1), 1, 5, 6}, {got(2), 1, 7, 8}}));
}

TEST(Linearizability, RejectsAValueThatIsDequeuedTwice) {
  EXPECT_FALSE(fits({{put(1), 0, 1, 2}, {got(1), 1, 3, 5}, {got(1), 2, 4, 6}}));
}

TEST(Linearizability, RejectsAValueThatIsNeverEnqueued) {
  EXPECT_FALSE(fits({{put(1), 0, 1, 2}, {got(7), 1, 3, 4}}));
}

TEST(Linearizability, RejectsAValueThatIsDequeuedBeforeItIsEnqueued) {
  EXPECT_FALSE(fits({{got(1), 1, 1, 2}, {put(1), 0, 3, 4}}));
  EXPECT_TRUE(fits({{got(1), 1, 1, 4}, {put(1), 0, 2, 3}}));
}

TEST(Linearizability, RejectsFullIfThereIsRoomThroughoutTheCall) {
  EXPECT_FALSE(fits({{put(1), 0, 1, 2}, {full(2), 0, 3, 4}}));
}

TEST(Linearizability, AcceptsFullIfTheQueueIsFullDuringTheCall) {
  EXPECT_TRUE(fits({{put(1), 0, 1, 2}, {put(2), 0, 3, 4}, {got(1), 1, 5, 8}, {full(3), 2, 6, 7}}));
  EXPECT_FALSE(fits({{put(1), 0, 1, 2}, {put(2), 0, 3, 4}, {got(1), 1, 5, 6}, {full(3), 2, 7, 8}}));
}

TEST(Linearizability, RejectsEmptyIfTheQueueHasAValueThroughoutTheCall) {
  EXPECT_FALSE(fits({{put(1), 0, 1, 2}, {empty(), 1, 3, 4}, {got(1), 1, 5, 6}}));
}

TEST(Linearizability, RejectsOneMoreThanTheCapacity) {
  EXPECT_FALSE(fits({{put(1), 0, 1, 2}, {put(2), 0, 3, 4}, {put(3), 0, 5, 6}}));
  EXPECT_TRUE(fits({{put(1), 0, 1, 2}, {put(2), 0, 3, 4}, {put(3), 0, 5, 6}}, 4));
}

// Twelve calls overlap, and no order gives their results: there are 12! orders, but few
// configurations.
TEST(Linearizability, TerminatesQuicklyIfAllCallsOverlap) {
  history<queue_call> calls;
  for (std::uint32_t i = 0; i < 11; ++i) calls.push_back({put(1), i, i + 1, 100 + i});
  calls.push_back({got(2), 11, 50, 200});
  EXPECT_FALSE(fits(calls, 16));
}

}  // namespace
}  // namespace linearizability_test

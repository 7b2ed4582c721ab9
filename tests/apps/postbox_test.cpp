// SPDX-License-Identifier: Apache-2.0
#include "apps/common/postbox.hpp"
#include "apps/common/phases.hpp"

#include <quarry/cluster/simulation.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace {

using namespace quarry;
using namespace quarry::apps;

void in_cluster(unsigned workers, bool isolated,
                const std::function<void(cluster::worker&)>& main) {
  cluster::simulation s({.workers = workers, .isolated = isolated, .room = 1 << 30});
  const auto result = s.run(main);
  EXPECT_EQ(result.left.regions, 0u);
  EXPECT_EQ(result.left.objects, 0u);
}

TEST(Postbox, BringsMessagesOfAnyLength) {
  for (const bool isolated : {false, true})
    in_cluster(2, isolated, [](cluster::worker& w) {
      postbox post(w);
      for (const std::size_t length : {0u, 1u, 100u, 100'000u}) {
        std::vector<int> mine(length, static_cast<int>(w.number()));
        const std::vector<int> theirs = post.swap(1 - w.number(), std::span<const int>(mine));
        EXPECT_EQ(theirs, std::vector<int>(length, static_cast<int>(1 - w.number())));
      }
      post.close();
    });
}

/// The next message is written while the last may still be read.
TEST(Postbox, KeepsAMessageUntilItWasRead) {
  in_cluster(2, false, [](cluster::worker& w) {
    postbox post(w);
    for (int i = 0; i < 50; ++i)
      if (w.number() == 0)
        post.send(1, std::span<const int>(&i, 1));
      else
        EXPECT_EQ(post.receive<int>(0), std::vector{i});
    post.close();
  });
}

TEST(Postbox, CombinesWhatGroupsHave) {
  in_cluster(8, true, [](cluster::worker& w) {
    postbox post(w);
    const std::uint64_t me = w.number();
    EXPECT_EQ(post.sum(8, std::vector{me, std::uint64_t{1}}), (std::vector<std::uint64_t>{28, 8}));
    EXPECT_EQ(post.sum(2, std::vector{me}).at(0), me / 2 * 4 + 1);
    EXPECT_EQ(post.sum(1, std::vector{me}).at(0), me);
    std::vector<std::uint64_t> all = post.gather(std::vector{me});
    std::sort(all.begin(), all.end());
    std::vector<std::uint64_t> expected(8);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
    post.close();
  });
}

TEST(PhaseClock, SharesOutAllTime) {
  in_cluster(4, false, [](cluster::worker& w) {
    const double start = w.connection().now();
    phase_clock clock(w);
    time_shares messages, barriers;
    postbox post(w);
    post.sum(4, std::vector{1.0});
    clock.charge(messages);
    w.barrier();
    clock.charge(barriers);
    EXPECT_GT(messages.workers, 0);
    EXPECT_GT(messages.schedulers, 0);
    EXPECT_EQ(barriers.workers, 0);
    EXPECT_NEAR(messages.total() + barriers.total(), w.connection().now() - start, 1e-12);
    post.close();
  });
}

}  // namespace

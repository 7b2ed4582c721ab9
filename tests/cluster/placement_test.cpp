// SPDX-License-Identifier: Apache-2.0
/// Where a cluster places regions: at the level of the hint, on the requester's side while the load
/// is even, and spread over all schedulers of the level when one worker creates them all.

#include "directed_programs.hpp"

#include <algorithm>
#include <map>

namespace quarry::cluster::placement_test {
namespace {

using testing::small_cluster;

/// Four levels: 1, 2, 4 and 8 schedulers over 16 workers.
simulation_options four_levels() {
  simulation_options o = small_cluster(16);
  o.capacity = 256u << 20;
  return o;
}

/// The scheduler of the level above the worker.
node_id scheduler_above(const shape& tree, node_id worker, unsigned level) {
  node_id n = worker;
  while (tree.level(n) != level) n = tree.parent(n);
  return n;
}

class Hint : public ::testing::TestWithParam<int> {};

/// Each worker creates one region in turn. An even load never outweighs the requester's side.
TEST_P(Hint, SelectsTheLevelAndTheRequestersSide) {
  simulation s(four_levels());
  const unsigned lowest = s.tree().levels() - 1;
  ASSERT_EQ(lowest, 3u);
  const int hint = GetParam();
  const unsigned level = hint < 0 ? lowest : std::min(static_cast<unsigned>(hint), lowest);
  s.run([&](worker& w) {
    for (unsigned turn = 0; turn < w.count(); ++turn) {
      if (turn == w.number()) {
        const rid r = *w.create_region(root, hint);
        const node_id owner = scheduler_of(r);
        EXPECT_EQ(s.tree().level(owner), level);
        EXPECT_EQ(owner, scheduler_above(s.tree(), s.tree().worker(turn), level));
        void* const p = *w.allocate(r, 100);
        EXPECT_EQ(w.deallocate(p), region_status::ok);
      }
      w.barrier();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Level, Hint, ::testing::Values(-1, 0, 1, 2, 3, 4, 1000),
                         [](const auto& hint) {
                           return hint.param < 0 ? "None" : "Of" + std::to_string(hint.param);
                         });

/// The owner decides for a child: a parent at the lowest level keeps its children, whatever the
/// hint says.
TEST(Placement, KeepsTheChildrenOfALowRegionWithIt) {
  simulation s(four_levels());
  s.run([&](worker& w) {
    if (w.number() != 5) return;
    const rid low = *w.create_region(root);
    for (const int hint : {-1, 0, 1, 3})
      EXPECT_EQ(scheduler_of(*w.create_region(low, hint)), scheduler_of(low)) << "hint " << hint;
    const rid high = *w.create_region(root, 1);
    EXPECT_EQ(s.tree().level(scheduler_of(*w.create_region(high, 2))), 2u);
    EXPECT_EQ(s.tree().level(scheduler_of(*w.create_region(high))), 3u);
  });
}

struct spread {
  std::uint64_t fewest;
  std::uint64_t most;
  std::uint64_t messages;
};

/// Worker 0 alone creates `regions` regions below the root without a hint.
spread create_from_one_worker(unsigned regions, std::uint64_t load_change, double load_fraction) {
  simulation_options o = four_levels();
  o.tuning.load_change = load_change;
  o.tuning.load_fraction = load_fraction;
  simulation s(o);
  std::map<node_id, std::uint64_t> owned;
  for (node_id n = 7; n < s.tree().schedulers(); ++n) owned[n] = 0;
  const simulation_result result = s.run([&](worker& w) {
    if (w.number() != 0) return;
    for (unsigned i = 0; i < regions; ++i) ++owned[scheduler_of(*w.create_region(root))];
  });
  EXPECT_EQ(owned.size(), 8u) << "only the lowest level has regions";
  spread all{~std::uint64_t{0}, 0, result.messages};
  for (const auto& [scheduler, count] : owned) {
    all.fewest = std::min(all.fewest, count);
    all.most = std::max(all.most, count);
  }
  return all;
}

TEST(Placement, SpreadsTheRegionsOfOneWorkerOverAllSchedulers) {
  const spread s = create_from_one_worker(2000, 4, 0.125);
  // The requester's side may have a quarter and 8 regions more at each of the three levels.
  EXPECT_GE(s.fewest, 2000u / 8 / 2);
  EXPECT_LE(s.most, 2000u / 8 * 2);
}

TEST(Placement, NeedsLoadReports) {
  const spread s = create_from_one_worker(2000, ~std::uint64_t{0}, 0.125);
  EXPECT_EQ(s.most, 2000u) << "without reports, every load is 0 and the requester's side wins";
}

TEST(Placement, ReportsLessOftenWithALargerThreshold) {
  const spread often = create_from_one_worker(2000, 1, 0);
  const spread seldom = create_from_one_worker(2000, 64, 0.5);
  EXPECT_GT(often.messages, seldom.messages + 2000);
  EXPECT_GE(often.fewest, seldom.fewest);
  EXPECT_GT(seldom.fewest, 0u);
}

}  // namespace
}  // namespace quarry::cluster::placement_test

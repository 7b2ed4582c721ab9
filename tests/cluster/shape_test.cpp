// SPDX-License-Identifier: Apache-2.0
#include <quarry/cluster/shape.hpp>

#include <gtest/gtest.h>

#include <set>

namespace quarry::cluster::shape_test {
namespace {

/// Every node except the top has a parent one level above and is one of its children, once.
void expect_a_tree(const shape& s) {
  std::multiset<node_id> seen;
  for (node_id n = 0; n < s.nodes(); ++n) {
    for (const node_id c : s.children(n)) {
      EXPECT_EQ(s.parent(c), n);
      EXPECT_EQ(s.level(c), s.level(n) + 1);
      seen.insert(c);
    }
    EXPECT_TRUE(s.is_worker(n) || !s.children(n).empty()) << "a scheduler without children";
  }
  EXPECT_EQ(seen.size(), s.nodes() - 1);
  for (node_id n = 1; n < s.nodes(); ++n) EXPECT_EQ(seen.count(n), 1u);
}

TEST(Shape, IsATreeForAnyNumberOfWorkers) {
  for (const ratios r : {ratios{}, ratios{2, 1}, ratios{2, 2}, ratios{3, 5}, ratios{8, 8}})
    for (const unsigned workers : {1u, 2u, 3u, 7u, 8u, 9u, 17u, 64u, 100u, 513u}) {
      const shape s = shape::for_workers(workers, r);
      ASSERT_EQ(s.workers(), workers);
      expect_a_tree(s);
      for (node_id n = 0; n < s.schedulers(); ++n)
        EXPECT_LE(s.children(n).size(),
                  s.level(n) + 1 == s.levels() ? r.workers_each : r.schedulers_each);
    }
}

TEST(Shape, UsesAllNodesItIsGiven) {
  for (const ratios r : {ratios{}, ratios{2, 2}, ratios{2, 4}, ratios{4, 4}})
    for (unsigned nodes = 2; nodes < 200; ++nodes) {
      const shape s = shape::for_nodes(nodes, r);
      ASSERT_EQ(s.nodes(), nodes);
      expect_a_tree(s);
    }
}

TEST(Shape, RoutesAlongTheEdgesOfTheTree) {
  const shape s = shape::for_workers(50, {3, 4});
  ASSERT_GE(s.levels(), 3u);
  for (node_id from = 0; from < s.nodes(); ++from)
    for (node_id to = 0; to < s.nodes(); ++to) {
      unsigned hops = 0;
      for (node_id at = from; at != to; ++hops) {
        const node_id next = s.next_hop(at, to);
        ASSERT_TRUE(s.parent(at) == next || s.parent(next) == at) << "the next hop is no neighbour";
        at = next;
        ASSERT_LE(hops, 2 * s.levels()) << "the route has a cycle";
      }
    }
}

TEST(Shape, RejectsImpossibleTrees) {
  EXPECT_THROW(shape::for_workers(0), error);
  EXPECT_THROW(shape::for_nodes(1), error);
  EXPECT_THROW(shape::for_workers(4, {1, 4}), error);
  EXPECT_THROW(shape::for_workers(4, {4, 0}), error);
}

}  // namespace
}  // namespace quarry::cluster::shape_test

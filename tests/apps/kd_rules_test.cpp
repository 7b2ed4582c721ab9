// SPDX-License-Identifier: Apache-2.0
#include "apps/kd_tree/grid.hpp"
#include "apps/kd_tree/rays.hpp"
#include "apps/kd_tree/sequential.hpp"
#include "apps/scene/generated.hpp"

#include <gtest/gtest.h>

#include <set>

namespace kd_rules_test {
namespace {

using namespace quarry::apps;

kd_box box_of(std::uint32_t lower, std::uint32_t upper) {
  kd_box b;
  for (unsigned axis = 0; axis < 3; ++axis) b.set_lower(axis, lower), b.set_upper(axis, upper);
  return b;
}

TEST(KdBox, PacksItsCoordinatesIndependently) {
  kd_box b;
  for (unsigned axis = 0; axis < 3; ++axis) {
    b.set_lower(axis, 1000 + axis);
    b.set_upper(axis, (1u << kd_grid_bits) - axis);
  }
  b.set_lower(1, 7);
  EXPECT_EQ(b.lower(0), 1000u);
  EXPECT_EQ(b.lower(1), 7u);
  EXPECT_EQ(b.lower(2), 1002u);
  for (unsigned axis = 0; axis < 3; ++axis) EXPECT_EQ(b.upper(axis), (1u << kd_grid_bits) - axis);
}

TEST(KdPlanes, LieInsideTheBoxAndAreAtLeastSixteen) {
  for (std::uint32_t side = 0; side < 3000; ++side) {
    const kd_planes p = kd_planes::across(box_of(5, 5 + side), 1);
    EXPECT_LE(p.count, kd_planes::max_count);
    EXPECT_GE(p.count, std::min(side < 2 ? 0 : side - 1, 16u)) << side;
    for (std::uint32_t k = 1; k <= p.count; ++k) {
      EXPECT_GT(p.position(k), p.position(k - 1));
      EXPECT_LT(p.position(k), 5 + side);
    }
  }
}

TEST(KdPlanes, GiveEntryAndExitBinsThatAgreeWithTheSides) {
  for (const std::uint32_t side : {1u, 2u, 31u, 32u, 33u, 100u}) {
    const kd_planes p = kd_planes::across(box_of(10, 10 + side), 0);
    for (std::uint32_t lower = 0; lower < 130; ++lower)
      for (std::uint32_t upper = lower; upper < 130; upper += 1 + upper % 3) {
        const kd_box b = box_of(lower, upper);
        for (std::uint32_t k = 1; k <= p.count; ++k) {
          const bool left = goes_left(b, 0, p.position(k)), right = goes_right(b, 0, p.position(k));
          ASSERT_TRUE(left || right);
          ASSERT_EQ(left, p.entry_bin(b, 0) < k);
          ASSERT_EQ(right, p.exit_bin(b, 0) >= k);
        }
      }
  }
}

TEST(KdCosts, DoNotOverflow) {
  const std::uint32_t far = 1u << kd_grid_bits, most = scene::max_triangles;
  const kd_box whole = box_of(0, far);
  EXPECT_GT(split_cost(whole, 2, far - 1, most, most), leaf_cost(whole, most));
  EXPECT_GT(leaf_cost(whole, most), leaf_cost(whole, most - 1));
  EXPECT_GT(split_cost(whole, 0, far / 2, most, most),
            split_cost(whole, 0, far / 2, most, most - 1));
}

TEST(KdInput, BoundsEveryTriangleByItsBox) {
  const scene s = make_thin(500);
  const kd_input in = make_kd_input(s);
  for (std::uint32_t t = 0; t < s.size(); ++t)
    for (unsigned i = 0; i < 3; ++i)
      for (unsigned axis = 0; axis < 3; ++axis) {
        const double x = static_cast<double>(s.corner(t, i)[axis]), loss = 1e-6 * in.step;
        EXPECT_GE(x, in.position(axis, in.boxes[t].lower(axis)) - loss);
        EXPECT_LE(x, in.position(axis, in.boxes[t].upper(axis)) + loss);
        EXPECT_LE(in.boxes[t].upper(axis), in.root.upper(axis));
      }
}

/// Every leaf has all triangles whose boxes overlap its own.
TEST(KdSequential, LosesNoTriangle) {
  for (const generated_scene& m : generated_scenes) {
    const scene s = m.make(2000);
    const kd_input in = make_kd_input(s);
    const kd_tree tree = kd_sequential(in, kd_limits::default_for(s.size())).build();
    ASSERT_GT(tree.nodes.size(), 500u) << m.name;
    std::set<std::uint32_t> seen(tree.references.begin(), tree.references.end());
    EXPECT_EQ(seen.size(), s.size());
    for (const kd_tree_node& n : tree.nodes) {
      if (!n.leaf()) continue;
      const std::set<std::uint32_t> has(tree.references.begin() + n.first,
                                        tree.references.begin() + n.first + n.count);
      ASSERT_EQ(has.size(), n.count) << "duplicate triangle";
      for (std::uint32_t t = 0; t < s.size(); ++t) {
        bool inside = true;
        for (unsigned axis = 0; axis < 3; ++axis)
          inside = inside && in.boxes[t].lower(axis) < n.box.upper(axis) &&
                   in.boxes[t].upper(axis) > n.box.lower(axis);
        if (inside) {
          ASSERT_TRUE(has.contains(t)) << m.name;
        }
      }
    }
    const kd_ray_check rays = check_rays(s, in, tree, 300, 1);
    EXPECT_EQ(rays.problem, "") << m.name;
    EXPECT_GT(rays.hits, 200u);
  }
}

TEST(KdSequential, RespectsMaxDepthAndLeafSize) {
  const scene s = make_tessellated(2000);
  const kd_input in = make_kd_input(s);
  for (const std::uint32_t depth : {0u, 1u, 5u}) {
    const kd_statistics f = statistics_of(kd_sequential(in, {1, depth}).build());
    EXPECT_EQ(f.depth, depth);
    EXPECT_EQ(f.nodes, (2u << depth) - 1);
  }
  const kd_tree tree = kd_sequential(in, {20, 60}).build();
  for (const kd_tree_node& n : tree.nodes)
    if (!n.leaf()) {
      EXPECT_GT(n.count, 20u);
    }
}

/// The columns of the paper, computed by hand for a tree of three nodes.
TEST(KdStatistics, CountListsAndTheirSizes) {
  kd_tree tree;
  tree.nodes.resize(3);
  tree.nodes[0].count = 9, tree.nodes[0].right = 2;  // 36 bytes, allocated as 48
  tree.nodes[1].count = 8, tree.nodes[1].depth = 1;  // 32
  tree.nodes[2].count = 1, tree.nodes[2].first = 8;  // 16
  tree.references = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const kd_statistics f = statistics_of(tree);
  EXPECT_EQ(f.nodes, 3u);
  EXPECT_EQ(f.leaves, 2u);
  EXPECT_EQ(f.references, 9u);
  EXPECT_EQ(f.depth, 1u);
  EXPECT_EQ(f.allocations, 3u);
  EXPECT_EQ(f.bytes, 96u);
  EXPECT_DOUBLE_EQ(f.mean, 32);
  EXPECT_NEAR(f.deviation, 13.0639, 1e-4);
}

// ---- the checks detect damage ------------------------------------------------------------------

struct damaged_tree : ::testing::Test {
  scene s = make_tessellated(800);
  kd_input in = make_kd_input(s);
  kd_tree whole = kd_sequential(in, kd_limits::default_for(s.size())).build();

  void expect_detected(const kd_tree& other) const {
    EXPECT_NE(first_difference(whole, other), "");
    EXPECT_NE(first_difference(other, whole), "");
    EXPECT_NE(statistics_of(whole).digest, statistics_of(other).digest);
  }
};
using KdOracles = damaged_tree;

TEST_F(KdOracles, FindNoDifferenceBetweenEqualTrees) {
  EXPECT_EQ(first_difference(whole, kd_sequential(in, kd_limits::default_for(s.size())).build()),
            "");
}

TEST_F(KdOracles, DetectAWrongTriangleInALeaf) {
  kd_tree other = whole;
  other.references[100] ^= 1;
  expect_detected(other);
}

TEST_F(KdOracles, DetectAWrongPlaneAndAWrongShape) {
  kd_tree other = whole;
  other.nodes[0].plane += 1;
  expect_detected(other);
  expect_detected(kd_sequential(in, {20, 30}).build());
}

/// Simulates straddling triangles that were sent to the left child only.
TEST_F(KdOracles, DetectByRaysTrianglesMissingFromRightChildren) {
  kd_tree other = whole;
  std::vector<bool> kept(s.size(), false);
  for (std::uint32_t& r : other.references) {
    if (kept[r]) r = 0;  // a triangle far from most leaves
    kept[r] = true;
  }
  expect_detected(other);
  EXPECT_NE(check_rays(s, in, other, 1000, 5).problem, "");
  EXPECT_EQ(check_rays(s, in, whole, 1000, 5).problem, "");
}

}  // namespace
}  // namespace kd_rules_test

// SPDX-License-Identifier: Apache-2.0
#include "apps/barnes_hut/oct_tree.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace oct_tree_test {
namespace {

using namespace quarry::apps;

/// A tree in host memory that records the level of each allocation.
struct local_tree {
  std::map<const void*, unsigned> level_of;
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  std::vector<particle> particles;
  unsigned levels = 0;
  cell* root = nullptr;

  local_tree(std::span<const body> bodies, double theta, unsigned leaf_size)
      : particles(bodies.begin(), bodies.end()) {
    tree_builder builder(theta, leaf_size, [this](unsigned level, std::size_t size) -> void* {
      blocks.push_back(std::make_unique<std::byte[]>(size));
      level_of[blocks.back().get()] = level;
      return blocks.back().get();
    });
    root = builder.build(particles);
    levels = builder.levels();
  }
};

double rms_error(std::span<const body> bodies, double theta) {
  const local_tree tree(bodies, theta, 8);
  double sum = 0;
  for (const body& b : bodies) {
    std::uint64_t forces = 0;
    const vec3 direct = direct_acceleration(b.position, bodies, 0.05);
    const vec3 error = tree_acceleration(*tree.root, b.position, 0.05, forces) - direct;
    sum += dot(error, error) / dot(direct, direct);
  }
  return std::sqrt(sum / static_cast<double>(bodies.size()));
}

TEST(PlummerSphere, IsAtRestAndInVirialEquilibrium) {
  const auto bodies = plummer_sphere(4000, 1);
  vec3 middle;
  double kinetic = 0;
  for (const body& b : bodies) {
    middle += b.mass * b.position;
    kinetic += 0.5 * b.mass * dot(b.velocity, b.velocity);
  }
  EXPECT_LT(length(middle), 1e-12);
  EXPECT_LT(length(momentum(bodies)), 1e-12);
  const double total = energy(bodies, bodies, 0);
  EXPECT_NEAR(total, -0.25, 0.02);
  EXPECT_NEAR(kinetic, -total, 0.02) << "twice the kinetic energy is minus the potential";
}

TEST(OctTree, IsExactWhenEveryCellIsOpened) {
  EXPECT_LT(rms_error(plummer_sphere(500, 2), 0), 1e-13);
}

TEST(OctTree, HasASmallerErrorForSmallerTheta) {
  const auto bodies = plummer_sphere(2000, 3);
  const double wide = rms_error(bodies, 1);
  const double middle = rms_error(bodies, 0.5);
  const double narrow = rms_error(bodies, 0.25);
  EXPECT_LT(wide, 0.02);
  EXPECT_LT(middle, 0.004);
  EXPECT_LT(narrow, 0.001);
  EXPECT_LT(narrow, middle);
  EXPECT_LT(middle, wide);
}

TEST(OctTree, ComputesFewerForcesThanPairs) {
  const auto bodies = plummer_sphere(4000, 4);
  const local_tree tree(bodies, 0.7, 4);
  std::uint64_t forces = 0;
  for (const body& b : bodies) tree_acceleration(*tree.root, b.position, 0.05, forces);
  EXPECT_LT(forces, 4000u * 4000u / 4);
}

TEST(OctTree, AllocatesEachLevelSeparately) {
  const auto bodies = plummer_sphere(1000, 5);
  const local_tree tree(bodies, 0.5, 4);
  std::vector<const cell*> rest{tree.root};
  std::size_t count = 0;
  while (!rest.empty()) {
    const cell* c = rest.back();
    rest.pop_back();
    EXPECT_EQ(tree.level_of.at(c), c->level);
    if (c->bodies != nullptr) {
      EXPECT_EQ(tree.level_of.at(c->bodies), c->level);
      count += c->count;
    }
    for (const cell* below : c->child)
      if (below != nullptr) {
        EXPECT_EQ(below->level, c->level + 1);
        rest.push_back(below);
      }
  }
  EXPECT_EQ(count, bodies.size());
}

TEST(OctTree, PutsCoincidentBodiesIntoOneLeaf) {
  std::vector<body> bodies(21);
  for (body& b : bodies) b.mass = 1;
  std::uint64_t forces = 0;
  const local_tree one(std::span<const body>(bodies), 0.5, 4);
  EXPECT_EQ(one.levels, 1u);
  EXPECT_EQ(length(tree_acceleration(*one.root, {}, 0.1, forces)), 0);
  bodies.back().position = {1, 0, 0};
  const local_tree two(std::span<const body>(bodies), 0.5, 4);
  EXPECT_EQ(two.levels, max_levels);
  EXPECT_NEAR(tree_acceleration(*two.root, {1, 0, 0}, 0.1, forces).x, -20 / std::pow(1.01, 1.5),
              1e-9);
}

/// Frees all levels that a box does not need: the acceleration of bodies in the box is unchanged.
TEST(OctTree, VisitsNoMoreLevelsThanLevelsNeeded) {
  const auto bodies = plummer_sphere(3000, 6);
  for (unsigned axis = 0; axis < 3; ++axis) {
    local_tree tree(bodies, 0.6, 4);
    std::vector<body> outside;
    for (const body& b : bodies)
      if (b.position[axis] > 0.8) outside.push_back(b);
    ASSERT_FALSE(outside.empty());
    std::vector<vec3> before, cut;
    std::uint64_t forces = 0;
    for (const body& b : outside)
      before.push_back(tree_acceleration(*tree.root, b.position, 0.05, forces));
    const box3 far_away{{999, 0, 0}, {999, 0, 0}};
    EXPECT_LT(levels_needed(*tree.root, far_away), 3u);
    EXPECT_EQ(levels_needed(*tree.root, box3{}), 1u);
    const unsigned levels = levels_needed(*tree.root, box_around(outside));
    EXPECT_LE(levels, tree.levels);
    for (auto& [p, level] : tree.level_of)
      if (level >= levels)
        for (auto& block : tree.blocks)
          if (block.get() == p)
            block.reset();  // AddressSanitizer detects a traversal that gets here
    for (const body& b : outside)
      cut.push_back(tree_acceleration(*tree.root, b.position, 0.05, forces));
    for (std::size_t i = 0; i < cut.size(); ++i) EXPECT_EQ(length(cut[i] - before[i]), 0);
  }
}

TEST(OctTree, GraftsTreesWithoutCopyingThem) {
  const auto bodies = plummer_sphere(1000, 7);
  const std::span<const body> all(bodies);
  const local_tree low{all.first(400), 0, 8}, high{all.subspan(400), 0, 8};
  cell* const both[] = {low.root, high.root};
  const cell top = graft(both);
  EXPECT_EQ(top.count, 1000u);
  std::uint64_t forces = 0;
  const vec3 direct = direct_acceleration(bodies[7].position, bodies, 0.05);
  EXPECT_LT(length(tree_acceleration(top, bodies[7].position, 0.05, forces) - direct), 1e-12);
  EXPECT_EQ(forces, 1000u);
}

}  // namespace
}  // namespace oct_tree_test

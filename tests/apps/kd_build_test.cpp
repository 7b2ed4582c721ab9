// SPDX-License-Identifier: Apache-2.0
/// The kd-tree build with every allocator, on the machine this file is compiled for: the CPU
/// executor as .cpp, a GPU as .cu. Its trees are held against those of a single thread, and looked
/// through with rays.

#include "apps/kd_tree/builder.hpp"
#include "apps/kd_tree/rays.hpp"
#include "apps/kd_tree/sequential.hpp"
#include "apps/scene/file.hpp"
#include "support/every_allocator.hpp"

#include <quarry/heap.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace quarry::apps {
namespace {

using here = default_backend;
constexpr bool on_gpu = !std::is_same_v<here, cpu>;
constexpr std::uint32_t triangles = on_gpu ? 50'000 : QUARRY_TSAN ? 200 : QUARRY_ASAN ? 500 : 1500;

/// A scene, its boxes, and the tree that everybody has to find.
struct problem {
  scene triangles;
  kd_limits limits;
  kd_input input;
  kd_tree expected;

  explicit problem(scene s, std::uint32_t leaf_size = kd_limits::usual_leaf_size)
      : triangles(std::move(s)),
        limits(kd_limits::usual(triangles.size(), leaf_size)),
        input(make_kd_input(triangles)),
        expected(kd_sequential(input, limits).build()) {}

  /// As Vinkler and Havran (2014), but some for small scenes.
  bytes pool() const { return 16_MiB + bytes(200 * kd_list_bytes(triangles.size())); }
};

/// Made once: all allocators work on the same.
const std::vector<problem>& problems() {
  static const std::vector<problem> all = [] {
    std::vector<problem> made;
    for (const made_scene& m : made_scenes) made.emplace_back(m.make(triangles));
    return made;
  }();
  return all;
}

template <class Builder>
void expect_empty(const Builder& builder) {
  EXPECT_EQ(builder.memory().check_invariants(), "");
  EXPECT_EQ(builder.memory().statistics().live_blocks.value_or(0), 0u);
}

template <class Builder>
void expect_right(Builder& builder, const problem& p) {
  builder.build();
  const kd_tree tree = builder.tree();
  EXPECT_EQ(difference(p.expected, tree), "") << p.triangles.name;
  EXPECT_EQ(figures_of(tree).digest, figures_of(p.expected).digest);
  const kd_ray_check rays = check_rays(p.triangles, p.input, tree, 50, 7);
  EXPECT_EQ(rays.problem, "") << p.triangles.name;
  EXPECT_GT(rays.hits, 30u);
  builder.clear();
  expect_empty(builder);
}

// ---- every allocator ---------------------------------------------------------------------------

template <class Allocator>
class KdTree : public ::testing::Test {};
TYPED_TEST_SUITE(KdTree, every_allocator, paper_name);

TYPED_TEST(KdTree, IsTheOneThatASingleThreadBuilds) {
  for (const problem& p : problems()) {
    kd_builder<TypeParam, here> builder(p.input, p.limits, p.pool());
    expect_right(builder, p);
    expect_right(builder, p);  // in the memory that the first one gave back
  }
}

/// Ends, says so, and leaves nothing behind, wherever memory runs out.
TYPED_TEST(KdTree, EndsWhereMemoryIsShort) {
  if (on_gpu && !label_of<TypeParam>.trial.empty())
    GTEST_SKIP() << "on trial: " << label_of<TypeParam>.trial;
  if (!TypeParam::can.owns_pool || TypeParam::can.overwrites)
    GTEST_SKIP() << "never short of memory";
  static const problem p(make_tessellated(on_gpu ? 50'000 : 1500));
  const std::uint64_t root = kd_list_bytes(p.triangles.size());
  unsigned refused = 0;
  for (const std::uint64_t pool : {root / 2, root + 64, 4 * root}) {
    if (pool < TypeParam::can.min_pool) continue;
    kd_builder<TypeParam, here> builder(p.input, p.limits, bytes(pool), {.part = 256});
    try {
      builder.build();
    } catch (const out_of_memory& e) {
      ++refused;
      EXPECT_NE(std::string(e.what()).find("has no room for the lists of a node of"),
                std::string::npos);
    }
    builder.clear();
    expect_empty(builder);
  }
  EXPECT_GT(refused, 0u);
}

// ---- the work's shape --------------------------------------------------------------------------

TEST(KdBuild, FindsTheSameTreeHoweverTheWorkIsCut) {
  const problem p(make_thin(triangles));
  for (const kd_shape shape :
       {kd_shape{.part = 32, .threads = 64}, kd_shape{.part = 64, .threads = 32, .blocks = 1},
        kd_shape{.part = 100, .threads = 96, .blocks = 7},
        kd_shape{.part = 1u << 20, .threads = 256}}) {
    SCOPED_TRACE(shape.part);
    kd_builder<cfmalloc, here> builder(p.input, p.limits, p.pool(), shape);
    expect_right(builder, p);
  }
}

TEST(KdBuild, GoesOnAloneWhereThereAreNoMoreTeams) {
  const problem p(make_thin(triangles));
  for (const std::uint32_t teams : {0u, 1u, 5u}) {
    kd_builder<slab, here> builder(p.input, p.limits, p.pool(), {.part = 32, .most_teams = teams});
    expect_right(builder, p);
  }
}

TEST(KdBuild, MakesALeafOfFewTriangles) {
  for (const std::uint32_t n : {1u, 2u, 7u, 8u, 40u}) {
    const problem p(make_clustered(n));
    kd_builder<slab, here> builder(p.input, p.limits, 16_MiB);
    builder.build();
    EXPECT_EQ(difference(p.expected, builder.tree()), "");
    if (n <= kd_limits::usual_leaf_size) {
      EXPECT_EQ(builder.tree().nodes.size(), 1u);
    }
  }
}

/// Triangles in a plane, along a line, all in one point, and the same one many times.
TEST(KdBuild, TakesScenesWithoutVolume) {
  for (const unsigned kind : {0u, 1u, 2u, 3u}) {
    scene s = make_clustered(300);
    s.name = "flat " + std::to_string(kind);
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      scene_point& p = s.points[i];
      if (kind < 3) p.z = 1;
      if (kind == 1 || kind == 2) p.y = -1;
      if (kind == 2) p.x = 0;
      if (kind == 3) p = s.points[i % 3];
    }
    const problem p(std::move(s));
    kd_builder<slab, here> builder(p.input, p.limits, 16_MiB, {.part = 64});
    builder.build();
    EXPECT_EQ(difference(p.expected, builder.tree()), "") << kind;
  }
}

// ---- what is wrong is told ---------------------------------------------------------------------

TEST(KdBuild, EndsWhereThereIsNoRoomForNodes) {
  const problem p(make_tessellated(3000), 2);
  ASSERT_GT(p.expected.nodes.size(), 4096u);
  kd_builder<slab, here> builder(p.input, p.limits, p.pool(), {.nodes_a_triangle = 0});
  try {
    builder.build();
    FAIL() << "there was room after all";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("more than 4096 nodes"), std::string::npos) << e.what();
  }
  builder.clear();
  expect_empty(builder);
}

/// AWMalloc hands out old blocks when its pool has gone round: the build must end, and the damage
/// be seen.
TEST(KdBuild, SeesAHeapThatHandsOutMemoryInUse) {
  if (QUARRY_TSAN) GTEST_SKIP() << "two warps in one list are the race that it is";
  const problem& p = problems()[2];
  kd_builder<wrap, here> builder(p.input, p.limits, bytes(3 * kd_list_bytes(p.triangles.size())));
  std::string seen;
  try {
    builder.build();
    seen = difference(p.expected, builder.tree());
  } catch (const error& e) {
    seen = e.what();
  }
  EXPECT_NE(seen, "");
}

/// A scanned mesh, where there is one: QUARRY_SCENES names a folder with stanford-bunny.obj.
TEST(KdBuild, BuildsTheBunny) {
  const char* folder = std::getenv("QUARRY_SCENES");
  if (folder == nullptr) GTEST_SKIP() << "QUARRY_SCENES is not set";
  const problem p(load_scene(std::string(folder) + "/stanford-bunny.obj"),
                  on_gpu ? kd_limits::usual_leaf_size : 16);
  kd_builder<slab, here> ours(p.input, p.limits, p.pool());
  expect_right(ours, p);
  kd_builder<cfmalloc, here> paper(p.input, p.limits, p.pool());
  expect_right(paper, p);
}

}  // namespace
}  // namespace quarry::apps

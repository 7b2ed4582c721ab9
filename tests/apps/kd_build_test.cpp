// SPDX-License-Identifier: Apache-2.0
/// The kd-tree build with every allocator, on the backend that this file is compiled for. The trees
/// are compared with those of the sequential reference implementation, and validated by ray
/// casting.

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

namespace quarry::apps::kd_build_test {
namespace {

using test_backend = default_backend;
constexpr bool on_gpu = !std::is_same_v<test_backend, cpu>;
constexpr std::uint32_t triangles = on_gpu ? 50'000 : QUARRY_TSAN ? 200 : QUARRY_ASAN ? 500 : 1500;

/// A scene, its boxes, and the expected tree.
struct problem {
  scene triangles;
  kd_limits limits;
  kd_input input;
  kd_tree expected;

  explicit problem(scene s, std::uint32_t leaf_size = kd_limits::default_leaf_size)
      : triangles(std::move(s)),
        limits(kd_limits::default_for(triangles.size(), leaf_size)),
        input(make_kd_input(triangles)),
        expected(kd_sequential(input, limits).build()) {}

  /// The pool size of Vinkler and Havran (2014), plus a constant for small scenes.
  bytes pool() const { return 16_MiB + bytes(200 * kd_list_bytes(triangles.size())); }
};

/// Created once and shared by the tests of all allocators.
const std::vector<problem>& problems() {
  static const std::vector<problem> all = [] {
    std::vector<problem> created;
    for (const generated_scene& m : generated_scenes) created.emplace_back(m.make(triangles));
    return created;
  }();
  return all;
}

template <class Builder>
void expect_empty(const Builder& builder) {
  EXPECT_EQ(builder.memory().check_invariants(), "");
  EXPECT_EQ(builder.memory().statistics().live_blocks.value_or(0), 0u);
}

template <class Builder>
void expect_correct_build(Builder& builder, const problem& p) {
  builder.build();
  const kd_tree tree = builder.tree();
  EXPECT_EQ(first_difference(p.expected, tree), "") << p.triangles.name;
  EXPECT_EQ(statistics_of(tree).digest, statistics_of(p.expected).digest);
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

TYPED_TEST(KdTree, EqualsTheTreeOfTheSequentialReference) {
  for (const problem& p : problems()) {
    kd_builder<TypeParam, test_backend> builder(p.input, p.limits, p.pool());
    expect_correct_build(builder, p);
    expect_correct_build(builder, p);  // in the memory that the first build freed
  }
}

/// The build terminates, reports out of memory and leaks nothing, at any pool size.
TYPED_TEST(KdTree, ReportsOutOfMemoryAndFreesEverything) {
  if (on_gpu && !label_of<TypeParam>.trial.empty())
    GTEST_SKIP() << "on trial: " << label_of<TypeParam>.trial;
  if (!TypeParam::can.owns_pool || TypeParam::can.overwrites)
    GTEST_SKIP() << "the allocator never runs out of memory";
  static const problem p(make_tessellated(on_gpu ? 50'000 : 1500));
  const std::uint64_t root = kd_list_bytes(p.triangles.size());
  unsigned failed_builds = 0;
  for (const std::uint64_t pool : {root / 2, root + 64, 4 * root}) {
    if (pool < TypeParam::can.min_pool) continue;
    kd_builder<TypeParam, test_backend> builder(p.input, p.limits, bytes(pool), {.chunk = 256});
    try {
      builder.build();
    } catch (const out_of_memory& e) {
      ++failed_builds;
      EXPECT_NE(std::string(e.what()).find("has no room for the lists of a node of"),
                std::string::npos);
    }
    builder.clear();
    expect_empty(builder);
  }
  EXPECT_GT(failed_builds, 0u);
}

// ---- launch configuration -----------------------------------------------------------------------

TEST(KdBuild, BuildsTheSameTreeForAnyChunkSizeAndGrid) {
  const problem p(make_thin(triangles));
  for (const kd_build_config config : {kd_build_config{.chunk = 32, .threads = 64},
                                       kd_build_config{.chunk = 64, .threads = 32, .blocks = 1},
                                       kd_build_config{.chunk = 100, .threads = 96, .blocks = 7},
                                       kd_build_config{.chunk = 1u << 20, .threads = 256}}) {
    SCOPED_TRACE(config.chunk);
    kd_builder<cfmalloc, test_backend> builder(p.input, p.limits, p.pool(), config);
    expect_correct_build(builder, p);
  }
}

TEST(KdBuild, SplitsNodesByOneWarpWhenNoCooperativeSplitIsAvailable) {
  const problem p(make_thin(triangles));
  for (const std::uint32_t cooperative_splits : {0u, 1u, 5u}) {
    kd_builder<slab, test_backend> builder(
        p.input, p.limits, p.pool(), {.chunk = 32, .max_cooperative_splits = cooperative_splits});
    expect_correct_build(builder, p);
  }
}

TEST(KdBuild, MakesTheRootALeafIfTheSceneIsSmall) {
  for (const std::uint32_t n : {1u, 2u, 7u, 8u, 40u}) {
    const problem p(make_clustered(n));
    kd_builder<slab, test_backend> builder(p.input, p.limits, 16_MiB);
    builder.build();
    EXPECT_EQ(first_difference(p.expected, builder.tree()), "");
    if (n <= kd_limits::default_leaf_size) {
      EXPECT_EQ(builder.tree().nodes.size(), 1u);
    }
  }
}

/// Coplanar triangles, collinear triangles, triangles in one point, and one triangle many times.
TEST(KdBuild, AcceptsDegenerateScenes) {
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
    kd_builder<slab, test_backend> builder(p.input, p.limits, 16_MiB, {.chunk = 64});
    builder.build();
    EXPECT_EQ(first_difference(p.expected, builder.tree()), "") << kind;
  }
}

// ---- errors are reported -----------------------------------------------------------------------

TEST(KdBuild, ReportsWhenTheNodeArrayIsFull) {
  const problem p(make_tessellated(3000), 2);
  ASSERT_GT(p.expected.nodes.size(), 4096u);
  kd_builder<slab, test_backend> builder(p.input, p.limits, p.pool(), {.nodes_per_triangle = 0});
  try {
    builder.build();
    FAIL() << "the node array was large enough";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("more than 4096 nodes"), std::string::npos) << e.what();
  }
  builder.clear();
  expect_empty(builder);
}

/// AWMalloc hands out blocks in use after its pool has wrapped around: the build must terminate,
/// and the corruption must be detected.
TEST(KdBuild, DetectsAHeapThatHandsOutMemoryInUse) {
  if (QUARRY_TSAN) GTEST_SKIP() << "two warps write to one list, which is a data race";
  const problem& p = problems()[2];
  kd_builder<wrap, test_backend> builder(p.input, p.limits,
                                         bytes(3 * kd_list_bytes(p.triangles.size())));
  std::string detected;
  try {
    builder.build();
    detected = first_difference(p.expected, builder.tree());
  } catch (const error& e) {
    detected = e.what();
  }
  EXPECT_NE(detected, "");
}

/// A scanned mesh, if QUARRY_SCENES names a folder that contains stanford-bunny.obj.
TEST(KdBuild, BuildsTheStanfordBunny) {
  const char* folder = std::getenv("QUARRY_SCENES");
  if (folder == nullptr) GTEST_SKIP() << "QUARRY_SCENES is not set";
  const problem p(load_scene(std::string(folder) + "/stanford-bunny.obj"),
                  on_gpu ? kd_limits::default_leaf_size : 16);
  kd_builder<slab, test_backend> ours(p.input, p.limits, p.pool());
  expect_correct_build(ours, p);
  kd_builder<cfmalloc, test_backend> paper(p.input, p.limits, p.pool());
  expect_correct_build(paper, p);
}

}  // namespace
}  // namespace quarry::apps::kd_build_test

// SPDX-License-Identifier: Apache-2.0
/// The dynamic graph with every allocator, on the backend that this file is compiled for, compared
/// with the sequential reference implementation.

#include "apps/graph/store.hpp"
#include "support/every_allocator.hpp"

#include <quarry/heap.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace quarry::apps::graph_test {
namespace {

using test_backend = default_backend;
constexpr bool on_gpu = !std::is_same_v<test_backend, cpu>;
constexpr unsigned scale = on_gpu ? 14 : QUARRY_TSAN ? 6 : 9;
constexpr std::uint32_t vertices = 1u << scale;

// ---- edges -------------------------------------------------------------------------------------

TEST(GraphBatch, IsSortedWithoutDuplicates) {
  const graph_batch b({{5, 9}, {2, 7}, {5, 1}, {2, 7}, {0, 3}});
  EXPECT_EQ(b.targets, (std::vector<std::uint32_t>{3, 7, 1, 9}));
  ASSERT_EQ(b.runs.size(), 3u);
  EXPECT_EQ(b.runs[2].vertex, 5u);
  EXPECT_EQ(b.runs[2].first, 2u);
  EXPECT_EQ(b.runs[2].count, 2u);
}

TEST(Rmat, GivesFewVerticesMostEdges) {
  const auto edges = make_rmat(10, 20'000, 1);
  std::vector<std::uint32_t> degree(1024);
  for (const graph_edge& e : edges) {
    ASSERT_LT(e.source, 1024u);
    ASSERT_LT(e.target, 1024u);
    ++degree[e.source];
  }
  std::sort(degree.begin(), degree.end(), std::greater<>());
  std::uint32_t tenth = 0;
  for (std::size_t i = 0; i < 102; ++i) tenth += degree[i];
  EXPECT_GT(tenth, 10'000u) << "a tenth of the vertices has at least half of the edges";
}

TEST(Rmat, DependsOnTheSeedOnly) {
  const auto a = make_rmat(12, 500, 3), b = make_rmat(12, 500, 3), c = make_rmat(12, 500, 4);
  unsigned same = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].source, b[i].source);
    EXPECT_EQ(a[i].target, b[i].target);
    same += a[i].source == c[i].source && a[i].target == c[i].target;
  }
  EXPECT_LT(same, 50u);
}

// ---- every allocator ---------------------------------------------------------------------------

template <class Allocator>
class Graph : public ::testing::Test {
 public:
  using store = graph_store<Allocator, test_backend>;

  /// Checks the invariants of the header: capacities are powers of two, and a list exists if and
  /// only if its capacity is not zero.
  static void expect_valid(const store& g) {
    for (const graph_vertex& v : g.vertices()) {
      ASSERT_LE(v.degree, v.capacity);
      ASSERT_EQ(v.capacity == 0, v.list == nullptr);
      ASSERT_TRUE(v.capacity == 0 || (v.capacity >= 4 && is_power_of_two(v.capacity)));
      if (!Allocator::can.frees_one) continue;
      ASSERT_EQ(v.degree == 0, v.list == nullptr);
      ASSERT_TRUE(v.capacity <= 4 || v.degree > v.capacity / 4);
    }
    EXPECT_EQ(g.memory().check_invariants(), "");
  }
  static std::uint64_t lists(const store& g) {
    std::uint64_t n = 0;
    for (const graph_vertex& v : g.vertices()) n += v.list != nullptr;
    return n;
  }
};
TYPED_TEST_SUITE(Graph, every_allocator, paper_name);

TYPED_TEST(Graph, EqualsTheGraphOfTheSequentialReference) {
  typename TestFixture::store g(vertices, 64_MiB);
  for (int pass = 0; pass < 2; ++pass) {
    graph_sequential expected(vertices);
    const graph_batch first(make_rmat(scale, 8 * vertices, 1));
    g.init(graph_device_batch<test_backend>(first));
    expected.insert(first);
    ASSERT_EQ(g.lists(), expected.lists());
    TestFixture::expect_valid(g);
    for (std::uint64_t round = 2; round < 6; ++round) {
      // Edges all over the graph, and many edges at few vertices.
      const graph_batch wide(make_rmat(scale, 4 * vertices, round));
      const graph_batch narrow(make_uniform(vertices / 2, 7, vertices, 2 * vertices, round));
      for (const graph_batch* b : {&wide, &narrow}) {
        g.insert(graph_device_batch<test_backend>(*b));
        expected.insert(*b);
        ASSERT_EQ(g.lists(), expected.lists());
      }
      TestFixture::expect_valid(g);
      // The edges that were just inserted, and many of the earlier ones.
      const graph_batch old(make_rmat(scale, 8 * vertices, round - 1));
      for (const graph_batch* b : {&narrow, &old}) {
        g.erase(graph_device_batch<test_backend>(*b));
        expected.erase(*b);
        ASSERT_EQ(g.lists(), expected.lists());
      }
      TestFixture::expect_valid(g);
    }
    EXPECT_GT(expected.edges(), 0u);
    if (TypeParam::can.frees_one && g.memory().statistics().live_blocks) {
      EXPECT_EQ(*g.memory().statistics().live_blocks, TestFixture::lists(g)) << "a list leaked";
    }
    g.clear();
    EXPECT_EQ(g.memory().statistics().live_blocks.value_or(0), 0u);
  }
}

TYPED_TEST(Graph, FreesAllListsWhenAllEdgesAreErased) {
  typename TestFixture::store g(vertices, 64_MiB);
  const graph_batch all(make_rmat(scale, 8 * vertices, 1));
  g.insert(graph_device_batch<test_backend>(all));  // without init: lists grow from capacity 0
  g.erase(graph_device_batch<test_backend>(all));
  for (const auto& list : g.lists()) ASSERT_TRUE(list.empty());
  if (TypeParam::can.frees_one) {
    EXPECT_EQ(TestFixture::lists(g), 0u);
    EXPECT_EQ(g.memory().statistics().live_blocks.value_or(0), 0u);
  }
  TestFixture::expect_valid(g);
}

TYPED_TEST(Graph, ReportsOutOfMemory) {
  if (on_gpu && !label_of<TypeParam>.trial.empty())
    GTEST_SKIP() << "on trial: " << label_of<TypeParam>.trial;
  if (!TypeParam::can.owns_pool || TypeParam::can.overwrites)
    GTEST_SKIP() << "the allocator never runs out of memory";
  constexpr std::uint32_t many = on_gpu ? 1u << 14 : 1u << 9;
  typename TestFixture::store g(many,
                                bytes(std::max<std::uint64_t>(many * 32, TypeParam::can.min_pool)));
  const graph_device_batch<test_backend> more(
      graph_batch(make_rmat(log2_floor(many), 64 * many, 1)));
  try {
    g.insert(more);
    FAIL() << "the heap was large enough";
  } catch (const out_of_memory& e) {
    EXPECT_NE(std::string(e.what()).find("had no room for the lists of"), std::string::npos);
  }
  g.clear();
  EXPECT_EQ(g.memory().check_invariants(), "");
  EXPECT_EQ(g.memory().statistics().live_blocks.value_or(0), 0u);
}

// ---- corner cases
// --------------------------------------------------------------------------------

using cfmalloc_graph = graph_store<cfmalloc, test_backend>;

TEST(GraphStore, IgnoresEdgesThatExistWhenInserting) {
  cfmalloc_graph g(100, 4_MiB);
  const graph_device_batch<test_backend> twice(graph_batch(make_uniform(3, 1, 100, 400, 9)));
  g.insert(twice);
  const auto once = g.lists();
  const std::uint64_t requested = g.requested().lists;
  g.insert(twice);
  EXPECT_EQ(g.lists(), once);
  EXPECT_EQ(g.requested().lists, requested) << "no list was reallocated";
}

TEST(GraphStore, IgnoresMissingEdgesWhenErasing) {
  cfmalloc_graph g(100, 4_MiB);
  g.erase(graph_device_batch<test_backend>(graph_batch(make_uniform(0, 100, 100, 400, 9))));
  for (const auto& list : g.lists()) EXPECT_TRUE(list.empty());
}

TEST(GraphStore, CountsRequestedListsAndBytes) {
  cfmalloc_graph g(8, 4_MiB);
  g.init(graph_device_batch<test_backend>(
      graph_batch({{1, 1}, {1, 2}, {1, 3}, {2, 4}})));  // two lists of 4
  EXPECT_EQ(g.requested().lists, 2u);
  EXPECT_EQ(g.requested().bytes, 32u);
  g.insert(graph_device_batch<test_backend>(graph_batch({{1, 5}, {1, 6}})));  // 5 edges: one of 8
  EXPECT_EQ(g.requested().lists, 3u);
  EXPECT_EQ(g.requested().bytes, 64u);
}

TEST(GraphStore, AcceptsAnEmptyBatch) {
  cfmalloc_graph g(8, 4_MiB);
  g.insert(graph_device_batch<test_backend>(graph_batch({})));
  EXPECT_EQ(g.requested().lists, 0u);
}

}  // namespace
}  // namespace quarry::apps::graph_test

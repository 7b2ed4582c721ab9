// SPDX-License-Identifier: Apache-2.0
#include "apps/delaunay/delaunay.hpp"
#include "apps/delaunay/local_store.hpp"

#include <quarry/cluster/simulation.hpp>

#include <gtest/gtest.h>

namespace delaunay_test {
namespace {

using namespace quarry;
using namespace quarry::apps;

struct outcome {
  delaunay_result first;  // result of worker 0
  delaunay_result sums;   // counts summed over all workers
  cluster::leaks left;
  bool all_agree = true;
};

outcome simulate(unsigned workers, const delaunay_options& options, std::uint64_t seed = 1,
                 bool leases = true) {
  cluster::simulation s({.workers = workers, .seed = seed, .worker = {.leases = leases}});
  outcome o;
  std::vector<delaunay_result> of(workers);
  o.left = s.run([&](cluster::worker& w) { of[w.number()] = run(w, options); }).left;
  for (const delaunay_result& r : of) {
    o.sums.added += r.added;
    o.sums.duplicates += r.duplicates;
    o.sums.postponed += r.postponed;
    o.sums.added_backwards += r.added_backwards;
    for (unsigned i = 0; i < 3; ++i) o.sums.added_after[i] += r.added_after[i];
    o.all_agree = o.all_agree && r.correct == of[0].correct && r.triangles == of[0].triangles;
  }
  o.first = std::move(of[0]);
  return o;
}

/// Returns the sequential triangulation of the points that the parallel program would insert.
std::vector<corners> build_sequentially(const delaunay_options& options, unsigned workers) {
  local_store store;
  mesh<local_store> m(store);
  m.make_square(1 << options.grid_bits);
  if (const unsigned each = options.border_points << quadrants(workers).leaf_level())
    for (const grid_point p : border_points(each, options.grid_bits)) m.add(p);
  auto points = random_points(options.points, options.grid_bits, options.seed);
  order_for_insertion(points);
  for (const grid_point p : points) m.add(p);
  return canonical(store.all());
}

TEST(Delaunay, EqualsTheSequentialMeshForAnyPowerOfFourOfWorkers) {
  const delaunay_options options{.points = 20'000, .keep = true};
  for (const unsigned workers : {1u, 4u, 16u, 64u}) {
    const outcome o = simulate(workers, options);
    EXPECT_EQ(o.first.fault, "");
    EXPECT_TRUE(o.first.correct);
    EXPECT_TRUE(o.all_agree);
    EXPECT_EQ(o.sums.added + o.sums.duplicates, options.points);
    EXPECT_TRUE(o.first.mesh == build_sequentially(options, workers));
    EXPECT_EQ(o.left.regions, 0u);
    EXPECT_EQ(o.left.objects, 0u);
  }
}

TEST(Delaunay, InsertsAllPostponedPointsDuringTheRotations) {
  const outcome o = simulate(16, {.points = 50'000});
  EXPECT_GT(o.sums.postponed, 0u);
  for (const std::uint64_t added : o.sums.added_after) EXPECT_GT(added, 0u);
  EXPECT_EQ(o.first.left_after_rotations, 0u);
}

/// Without border points, the triangles along the border span the whole square.
TEST(Delaunay, InsertsRemainingPointsInTheBackwardStages) {
  const delaunay_options options{.points = 20'000, .border_points = 0, .keep = true};
  const outcome o = simulate(16, options);
  EXPECT_GT(o.first.left_after_rotations, 0u);
  EXPECT_EQ(o.sums.added_backwards, o.first.left_after_rotations);
  EXPECT_EQ(o.first.fault, "");
  EXPECT_TRUE(o.first.mesh == build_sequentially(options, 16));
}

TEST(Delaunay, LeavesTheMeshDistributedWithoutCheck) {
  const outcome o = simulate(16, {.points = 20'000, .check = false});
  EXPECT_TRUE(o.first.correct);
  EXPECT_EQ(o.first.triangles, simulate(16, {.points = 20'000}).first.triangles);
}

TEST(Delaunay, AcceptsCocircularAndDuplicatePoints) {
  for (const unsigned bits : {7u, 8u}) {
    const outcome o = simulate(4, {.points = 30'000, .grid_bits = bits, .border_points = 4});
    EXPECT_EQ(o.first.fault, "");
    EXPECT_TRUE(o.first.correct);
    EXPECT_GT(o.sums.duplicates, 5000u);
  }
}

TEST(Delaunay, GivesTheSameMeshUnderAnyMessageOrder) {
  const delaunay_options options{
      .points = 3000, .points_per_leaf = 8, .border_points = 4, .keep = true};
  const std::vector<corners> alone = build_sequentially(options, 16);
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    EXPECT_TRUE(simulate(16, options, seed, seed % 2 == 0).first.mesh == alone);
}

TEST(Delaunay, WorksWithOwnershipTransfer) {
  const outcome o = simulate(16, {.points = 20'000, .hand_over = true});
  EXPECT_EQ(o.first.fault, "");
  EXPECT_TRUE(o.first.correct);
}

TEST(Delaunay, AcceptsVeryFewPoints) {
  for (const std::size_t points : {0u, 1u, 5u}) {
    const outcome o = simulate(16, {.points = points});
    EXPECT_EQ(o.first.fault, "");
    EXPECT_EQ(o.sums.added, points);
  }
}

TEST(Delaunay, RejectsInvalidOptions) {
  for (const unsigned workers : {2u, 4u}) {
    cluster::simulation s({.workers = workers});
    s.run([](cluster::worker& w) {
      if (w.count() == 2) {
        EXPECT_THROW(run(w, delaunay_options{}), error);
        return;
      }
      EXPECT_THROW(run(w, delaunay_options{.grid_bits = 31}), error);
      EXPECT_THROW(run(w, delaunay_options{.grid_bits = 5}), error);
      EXPECT_THROW(run(w, delaunay_options{.border_points = 3}), error);
    });
  }
}

}  // namespace
}  // namespace delaunay_test

// SPDX-License-Identifier: Apache-2.0
#include "apps/barnes_hut/barnes_hut.hpp"

#include <quarry/cluster/simulation.hpp>

#include <gtest/gtest.h>

namespace barnes_hut_test {
namespace {

using namespace quarry;
using namespace quarry::apps;

struct outcome {
  std::vector<barnes_hut_result> by_worker;
  cluster::leaks left;
  std::uint64_t own = 0, interactions = 0, sent = 0, built = 0;
};

outcome simulate(unsigned workers, const barnes_hut_options& options, std::uint64_t seed = 1) {
  cluster::simulation s({.workers = workers, .seed = seed});
  outcome all;
  all.by_worker.resize(workers);
  all.left = s.run([&](cluster::worker& w) { all.by_worker[w.number()] = run(w, options); }).left;
  for (const barnes_hut_result& r : all.by_worker) {
    all.own += r.own_bodies;
    all.interactions += r.interactions;
    all.sent += r.levels_sent;
    all.built += r.levels_built;
  }
  return all;
}

/// The same steps by direct summation.
std::vector<body> simulate_directly(const barnes_hut_options& options) {
  std::vector<body> bodies = plummer_sphere(options.bodies, options.seed);
  const auto accelerate = [&] {
    for (body& b : bodies)
      b.acceleration = direct_acceleration(b.position, bodies, options.softening);
  };
  const auto kick = [&] {
    for (body& b : bodies) b.velocity += (0.5 * options.time_step) * b.acceleration;
  };
  accelerate();
  for (unsigned i = 0; i < options.steps; ++i) {
    kick();
    for (body& b : bodies) b.position += options.time_step * b.velocity;
    accelerate();
    kick();
  }
  return bodies;
}

double max_distance(const std::vector<body>& a, const std::vector<body>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, length(a[i].position - b[i].position));
  return most;
}

TEST(BarnesHut, PassesItsChecksForAnyPowerOfTwoOfWorkers) {
  for (const unsigned workers : {1u, 2u, 4u, 16u}) {
    const outcome all = simulate(workers, {.bodies = 2000, .steps = 8});
    EXPECT_EQ(all.own, 2000u);
    EXPECT_EQ(all.left.regions, 0u);
    EXPECT_EQ(all.left.objects, 0u);
    for (const barnes_hut_result& r : all.by_worker) EXPECT_TRUE(r.correct);
  }
}

TEST(BarnesHut, EqualsDirectSummationWhenEveryCellIsOpened) {
  barnes_hut_options options{.bodies = 300, .steps = 5, .theta = 0, .keep = true};
  const std::vector<body> direct = simulate_directly(options);
  for (const unsigned workers : {1u, 4u, 16u}) {
    const outcome all = simulate(workers, options);
    EXPECT_EQ(all.interactions, 6u * 300 * 300);
    EXPECT_LT(max_distance(all.by_worker[workers - 1].bodies, direct), 1e-12);
  }
}

TEST(BarnesHut, StaysCloseToDirectSummation) {
  barnes_hut_options options{.bodies = 1000, .steps = 8, .theta = 0.5, .keep = true};
  const std::vector<body> direct = simulate_directly(options);
  for (const unsigned workers : {1u, 4u, 8u})
    EXPECT_LT(max_distance(simulate(workers, options).by_worker[0].bodies, direct), 1e-3);
}

TEST(BarnesHut, GivesTheSameResultUnderAnyMessageOrder) {
  const barnes_hut_options options{.bodies = 500, .steps = 3, .check = false, .keep = true};
  const std::vector<body> one = simulate(4, options, 1).by_worker[0].bodies;
  EXPECT_EQ(max_distance(simulate(4, options, 2).by_worker[3].bodies, one), 0);
}

TEST(BarnesHut, SendsFewerLevelsToDistantWorkers) {
  const outcome all = simulate(16, {.bodies = 4000, .steps = 1, .theta = 0.8, .check = false});
  EXPECT_LT(all.sent, all.built * 15 * 19 / 20);
}

TEST(BarnesHut, BalancesInteractionsBetweenWorkers) {
  const outcome all = simulate(8, {.bodies = 4000, .steps = 2});
  EXPECT_LT(all.by_worker[0].imbalance, 1.1);
}

TEST(BarnesHut, ComputesAsManyInteractionsWithManyWorkersAsWithOne) {
  const barnes_hut_options options{.bodies = 4000, .steps = 1, .check = false};
  const std::uint64_t one = simulate(1, options).interactions;
  for (const unsigned workers : {2u, 16u})
    EXPECT_LE(simulate(workers, options).interactions, one + one / 50) << workers << " workers";
}

TEST(BarnesHut, RunsWithMoreWorkersThanBodies) {
  const outcome all = simulate(16, {.bodies = 5, .steps = 2, .theta = 0.3});
  EXPECT_EQ(all.own, 5u);
  EXPECT_LT(all.by_worker[0].force_error, force_error_bound(0.3));
}

TEST(BarnesHut, RejectsInvalidWorkerCountsAndAngles) {
  for (const unsigned workers : {3u, 4u}) {
    cluster::simulation s({.workers = workers});
    s.run([](cluster::worker& w) {
      EXPECT_THROW(run(w, barnes_hut_options{.theta = w.count() == 3 ? 0.5 : 1.5}), error);
    });
  }
}

}  // namespace
}  // namespace barnes_hut_test

// SPDX-License-Identifier: Apache-2.0 The applications over MPI processes, where a worker can
// access only memory that it allocated or received. Runs with any number of workers; an application
// that needs a power of two or four is skipped for other numbers.
#include "apps/list_exchange/mpi.hpp"
#include "apps/barnes_hut/barnes_hut.hpp"
#include "apps/delaunay/delaunay.hpp"
#include "cluster/mpi/main.hpp"

namespace quarry::cluster::mpi_test {
namespace {

using Apps = Cluster;

bool is_power_of_four() {
  return std::has_single_bit(count()) && std::countr_zero(count()) % 2 == 0;
}

TEST_F(Apps, ExchangeListsAsRegions) {
  const auto r = apps::run(w(), apps::list_exchange_options{.nodes = 2000, .rounds = 2});
  EXPECT_TRUE(r.correct);
  EXPECT_EQ(r.nodes_changed, 2u * 2000 * (count() - 1));
}

TEST_F(Apps, ExchangeListsNodeByNode) {
  const apps::worker_communicator workers(w());
  for (const auto how : {apps::node_transport::one_sided, apps::node_transport::request_reply}) {
    const auto r = apps::run(workers, how, {.nodes = 100});
    EXPECT_TRUE(r.correct);
    EXPECT_EQ(r.nodes_changed, 100u * (count() - 1));
  }
}

TEST_F(Apps, MoveBodies) {
  if (!std::has_single_bit(count())) GTEST_SKIP() << "the number of workers is not a power of two";
  for (const double theta : {0.0, 0.7}) {
    const auto r =
        apps::run(w(), apps::barnes_hut_options{.bodies = 1000, .steps = 2, .theta = theta});
    EXPECT_TRUE(r.correct) << r.force_error << ' ' << r.energy_drift << ' ' << r.momentum_drift;
  }
}

TEST_F(Apps, TriangulatePoints) {
  if (!is_power_of_four()) GTEST_SKIP() << "the number of workers is not a power of four";
  for (const unsigned border : {16u, 0u})
    for (const bool hand_over : {false, true}) {
      const auto r =
          apps::run(w(), apps::delaunay_options{
                             .points = 20'000, .border_points = border, .hand_over = hand_over});
      EXPECT_EQ(r.fault, "") << (hand_over ? "ownership transfer" : "copy");
      EXPECT_TRUE(r.correct);
    }
}

}  // namespace
}  // namespace quarry::cluster::mpi_test

int main(int argc, char** argv) {
  using namespace quarry::cluster;
  ::testing::InitGoogleTest(&argc, argv);
  return run(argc, argv, options_of(argc, argv), run_tests);
}

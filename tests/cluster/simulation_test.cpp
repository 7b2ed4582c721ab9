// SPDX-License-Identifier: Apache-2.0
/// Random programs of all calls over the simulated network, checked by an oracle.

#include "random_run.hpp"

namespace quarry::cluster::testing::simulation_test {
namespace {

class RandomProgram : public ::testing::TestWithParam<setting> {};

TEST_P(RandomProgram, GetsTheResultsOfASingleAllocator) {
  std::uint64_t calls = 0;
  for (std::uint64_t seed = 1; calls < QUARRY_CLUSTER_CALLS && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    calls += run_random_program(GetParam(), seed, 60);
  }
  RecordProperty("calls", std::to_string(calls));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RandomProgram,
    ::testing::Values(setting{1, {}, true, 256u << 20}, setting{1, {}, false, 256u << 20},
                      setting{2, {}, true, 64u << 20}, setting{2, {}, false, 64u << 20},
                      setting{7, {2, 2}, true, 256u << 20}, setting{7, {2, 2}, false, 256u << 20},
                      setting{16, {4, 4}, true, 96u << 20}, setting{16, {4, 4}, false, 96u << 20},
                      setting{64, {4, 4}, true, 512u << 20},
                      setting{64, {4, 4}, false, 512u << 20}),
    [](const auto& which) {
      const setting& s = which.param;
      return std::to_string(s.workers) + "Workers" +
             std::to_string(shape::for_workers(s.workers, s.tree).levels()) + "Levels" +
             (s.leases ? "Leased" : "Asked");
    });

}  // namespace
}  // namespace quarry::cluster::testing::simulation_test

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One simulated cluster whose workers run a random program under the oracle.
#include "random_program.hpp"

#include <quarry/cluster/simulation.hpp>

namespace quarry::cluster::testing {

struct setting {
  unsigned workers;
  ratios tree;
  bool leases;
  std::uint64_t capacity;

  /// GoogleTest names the parameter in its output: without this, by the bytes of the object.
  friend void PrintTo(const setting& s, std::ostream* out) {
    *out << s.workers << " workers" << (s.leases ? ", leases, " : ", ") << s.capacity << " bytes";
  }
};

/// Runs a random program of `calls` calls per worker and round. Reports every deviation as a
/// GoogleTest failure. Returns the number of calls.
inline std::uint64_t run_random_program(const setting& s, std::uint64_t seed, unsigned calls,
                                        detail::fault fault = detail::fault::none,
                                        program_options program = {}) {
  simulation_options options;
  options.workers = s.workers;
  options.tree = s.tree;
  options.seed = seed;
  options.isolated = true;
  options.capacity = s.capacity;
  options.tuning.reserve_pages = 1 + seed % 8;
  options.tuning.low_pages = seed % 5;
  options.tuning.load_change = 1 + seed % 4;
  options.worker.leases = s.leases;
  options.jitter = seed % 3 == 0 ? 100e-6 : 2e-6;
  options.fault = fault;
  simulation sim(options);
  oracle o;
  program.seed = seed;
  program.calls = calls;
  program.leases = s.leases;
  program.capacity = s.capacity;
  const simulation_result r = sim.run([&](worker& w) { random_program(w, o, program).run(); });
  EXPECT_EQ(r.left.regions, 0u) << "regions are left";
  EXPECT_EQ(r.left.objects, 0u) << "objects are left";
  EXPECT_EQ(sim.check_invariants(), "");
  return o.calls;
}

}  // namespace quarry::cluster::testing

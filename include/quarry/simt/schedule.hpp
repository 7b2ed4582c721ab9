// SPDX-License-Identifier: Apache-2.0
#pragma once
/// schedule: one interleaving of the lanes of a grid, as a function of a seed.
///
/// strategy::random    At each scheduling point the explorer switches to a randomly drawn lane,
///                     with a probability that is drawn once per run.
/// strategy::pct       Probabilistic concurrency testing (Burckhardt et al. 2010). Lanes have
///                     random priorities, and the runnable lane with the highest priority runs. At
///                     `change_points` random steps the running lane drops to the lowest priority.
///                     The strategy finds bugs of small depth with few preemptions. A lane that
///                     spins drops to the lowest priority, too.
/// strategy::lockstep  A warp runs one lane until that lane waits in a collective or exits. Warps
///                     are drawn at random. active_mask() returns when all lanes of the warp wait.
///                     The lanes of a warp therefore stay converged where the code allows it, and a
///                     lane that spins blocks the rest of its warp. A GPU guarantees little more to
///                     diverged lanes.

#include <cstdint>

namespace quarry::simt {

enum class strategy : std::uint8_t { random, pct, lockstep };

/// Equal schedules of the same kernel give equal runs.
struct schedule {
  std::uint64_t seed = 1;
  strategy how = strategy::random;
  unsigned change_points = 3;            // pct: the number of priority changes
  std::uint64_t expected_steps = 1000;   // pct: the changes lie within this number of steps
  std::uint64_t step_limit = 1'000'000;  // a longer run fails
};

}  // namespace quarry::simt

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// minimise: reduces a failing trial to one that a person can read.
///
/// Delta debugging (Zeller and Hildebrandt 2002) over operations. The first step removes whole
/// lanes, then runs of operations of decreasing length, until no single operation can be removed. A
/// shorter script has other interleavings, so each candidate runs under several schedules, and the
/// first one that fails is kept. The last step selects the schedule with the fewest switches
/// between lanes. A limit on the number of runs bounds the effort.

#include <quarry/check/trial_runner.hpp>

#include <cstdint>

namespace quarry {

/// Requires: `t` fails.
/// Returns: a trial that fails too, in the same phase, and has no more operations.
trial minimise(trial_runner& runner, const trial& t, std::uint64_t runs = 20'000);

}  // namespace quarry

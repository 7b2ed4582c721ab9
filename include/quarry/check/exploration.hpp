// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The options and results of an exploration (explore_allocator.hpp), which do not depend on the
/// type of the allocator.

#include <quarry/check/script.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace quarry {

/// How schedules are drawn.
///   both         random for even seeds, pct for odd seeds
///   sequential   each lane runs to its end; the order of the lanes is random
///   random, pct, lockstep   as in simt::strategy
enum class exploration_strategy : std::uint8_t { both, random, pct, sequential, lockstep };

struct exploration_options {
  script_bounds bounds{};
  std::uint64_t pool_bytes = 1024;  // the largest pool; raised to the minimum of the allocator
  std::uint64_t schedules = 20'000;
  std::uint64_t first_seed = 1;
  exploration_strategy strategy = exploration_strategy::both;
  std::uint64_t step_limit = 50'000;  // a longer run fails
  double seconds = 0;                 // time limit; 0: none
  std::uint64_t refill_one_in = 8;    // one script in n is followed by a test for leaks; 0: none
  bool stop_at_failure = true;
  bool minimise = true;
  bool paint_hidden = false;  // race detectors ignore the accesses to user memory
};

struct exploration_failure {
  std::uint64_t seed = 0;
  std::string text;              // one sentence
  std::uint64_t steps = 0;       // of the failing run
  std::uint64_t operations = 0;  // of its script
  std::string token;             // reproduces the run
  std::string small_token;       // reproduces the minimised run; equal to token if there is none
  std::string small_text;
  std::string small_script;
  std::uint64_t small_operations = 0;
};

struct exploration {
  std::uint64_t schedules = 0;  // that were run
  std::uint64_t failures = 0;
  std::optional<exploration_failure> first;
  std::uint64_t steps = 0;  // scheduling points of all runs
  std::uint64_t served = 0, failed = 0, freed = 0;
  double seconds = 0;
  double per_second() const { return seconds > 0 ? static_cast<double>(schedules) / seconds : 0; }
};

struct replay_result {
  std::string failure;  // empty: the run succeeded
  std::uint64_t steps = 0;
  std::uint64_t trace_hash = 0;  // over all steps; equal runs have equal hashes
  bool ok() const { return failure.empty(); }
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// allocator_explorer: looks for a schedule under which an allocator breaks its contract.
///
///   quarry::allocator_explorer<quarry::wrap> explorer({.schedules = 100'000});
///   if (auto found = explorer.run(); found.first) {
///     std::puts(found.first->text.c_str());
///     explorer.replay(found.first->small_token, [](const std::string& line) { std::puts(line.c_str()); });
///   }
///
/// Each seed decides a script, a grid, a pool and a schedule; consecutive seeds are tried. The first
/// failure is made small (minimise.hpp) and written down as a token that runs it again, in any process.
/// Only sequentially consistent interleavings are seen.

#include <quarry/core/random.hpp>
#include <quarry/check/minimise.hpp>
#include <quarry/check/trial_runner.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace quarry {

/// How schedules are drawn. sequential: each lane runs to its end, in a random order of lanes. lockstep: the lanes
/// of a warp keep together, and one that spins stands in the way of the others.
enum class exploration_strategy : std::uint8_t { both, random, pct, sequential, lockstep };

struct exploration_options {
  script_bounds bounds{};           // lanes, blocks, operations a lane; at most
  std::uint64_t pool_bytes = 1024;  // at most; raised to what the allocator needs
  std::uint64_t schedules = 20'000;
  std::uint64_t first_seed = 1;
  exploration_strategy strategy = exploration_strategy::both;
  std::uint64_t step_limit = 50'000;  // of a run; past it the allocator counts as endless
  double seconds = 0;                 // stop after that long; 0: no limit
  std::uint64_t refill_one_in = 8;    // scripts followed by the test for lost memory; 0: none
  bool stop_at_failure = true;
  bool minimise = true;
  bool paint_hidden = false;  // race detectors do not see what lanes do to user memory
};

struct exploration_failure {
  std::uint64_t seed = 0;
  std::string text;              // what went wrong, one sentence
  std::uint64_t steps = 0;       // of the failing run
  std::uint64_t operations = 0;  // of its script
  std::string token;             // replays it
  std::string small_token;       // replays the minimised form; equal to token if there is none
  std::string small_text;
  std::string small_script;
  std::uint64_t small_operations = 0;
};

struct exploration {
  std::uint64_t schedules = 0;  // carried out
  std::uint64_t failures = 0;
  std::optional<exploration_failure> first;
  std::uint64_t steps = 0;  // shared accesses and meetings, all schedules together
  std::uint64_t served = 0, refused = 0, freed = 0;
  double seconds = 0;
  double per_second() const { return seconds > 0 ? static_cast<double>(schedules) / seconds : 0; }
};

struct replay_result {
  std::string failure;  // empty: the run went well
  std::uint64_t steps = 0;
  std::uint64_t trace_hash = 0;  // of every step; equal runs have equal ones
  bool ok() const { return failure.empty(); }
};

template <allocator A>
class allocator_explorer {
 public:
  explicit allocator_explorer(const exploration_options& options = {})
      : options_(options), runner_(options.paint_hidden) {
    calibrate();
  }

  exploration run();

  /// The trial of one seed under these options.
  trial trial_of(std::uint64_t seed) const;

  /// Runs a token or a trial again. With a listener, tells script, steps and outcome line by line.
  replay_result replay(std::string_view token, story::listener tell = {}) {
    return replay(trial::from_token(token), std::move(tell));
  }
  replay_result replay(const trial& t, story::listener tell = {});

 private:
  void calibrate();
  exploration_failure describe(const trial& t, const simt::outcome& result);

  exploration_options options_;
  trial_runner<A> runner_;
  std::uint64_t steps_per_operation_ = 8;
};

// ---- bodies ------------------------------------------------------------------------------------

template <allocator A>
trial allocator_explorer<A>::trial_of(std::uint64_t seed) const {
  using how = exploration_strategy;
  trial t;
  t.seed = seed;
  t.bounds = options_.bounds;
  t.pool_bytes = options_.pool_bytes;
  t.refill_one_in = options_.refill_one_in;
  const bool random =
      options_.strategy == how::random || (options_.strategy == how::both && seed % 2 == 0);
  t.schedule.seed = seed;
  t.schedule.how = random                               ? simt::strategy::random
                   : options_.strategy == how::lockstep ? simt::strategy::lockstep
                                                        : simt::strategy::pct;
  t.schedule.step_limit = options_.step_limit;
  if (t.schedule.how != simt::strategy::pct) return t;
  splitmix64 draw(seed ^ 0x5bd1e995u);
  const std::uint64_t operations = std::uint64_t{t.bounds.lanes} * t.bounds.operations;
  t.schedule.change_points = options_.strategy == how::sequential ? 0 : 1 + draw.below(4);
  // Scripts differ in length, and a change point past the end changes nothing.
  t.schedule.expected_steps =
      std::max<std::uint64_t>(operations * steps_per_operation_ >> draw.below(3), 8);
  return t;
}

// PCT places its change points in the expected length of a run. That is measured on fixed seeds, so that
// a seed means the same run wherever the exploration starts.
template <allocator A>
void allocator_explorer<A>::calibrate() {
  std::array<std::uint64_t, 15> samples{};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    trial t = trial_of(1'000'000 + i);
    t.schedule.how = simt::strategy::random;
    t.refill_one_in = 0;
    const simt::outcome result = runner_.run(t);
    samples[i] = result.steps / std::max<std::uint64_t>(runner_.script().size(), 1);
  }
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  steps_per_operation_ = std::clamp<std::uint64_t>(samples[samples.size() / 2], 1, 1000);
}

template <allocator A>
exploration allocator_explorer<A>::run() {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  exploration found;
  std::optional<std::pair<trial, simt::outcome>> first;
  while (found.schedules < options_.schedules) {
    const trial t = trial_of(options_.first_seed + found.schedules++);
    const simt::outcome result = runner_.run(t);
    found.steps += result.steps;
    found.served += runner_.shadow().served;
    found.refused += runner_.shadow().refused;
    found.freed += runner_.shadow().freed;
    if (!result.ok() && ++found.failures == 1) {
      first = {t, result};
      if (options_.stop_at_failure) break;
    }
    if (options_.seconds <= 0 || found.schedules % 64 != 0) continue;
    if (std::chrono::duration<double>(clock::now() - start).count() > options_.seconds) break;
  }
  found.seconds = std::chrono::duration<double>(clock::now() - start).count();
  if (first) found.first = describe(first->first, first->second);
  return found;
}

template <allocator A>
exploration_failure allocator_explorer<A>::describe(const trial& t, const simt::outcome& result) {
  exploration_failure f;
  f.seed = t.seed;
  f.text = result.failure;
  f.steps = result.steps;
  runner_.run(t);
  f.operations = runner_.script().kept_count();
  f.token = t.to_token();
  const trial small = options_.minimise ? minimiser<A>(runner_)(t) : t;
  f.small_text = runner_.run(small).failure;
  f.small_token = small.to_token();
  f.small_script = runner_.script().to_text();
  f.small_operations = runner_.script().kept_count();
  return f;
}

template <allocator A>
replay_result allocator_explorer<A>::replay(const trial& t, story::listener tell) {
  replay_result replayed;
  std::uint64_t hash = 0xcbf29ce484222325u;
  runner_.watch([&](const simt::step& s) {
    const memory_range pool = runner_.pool();
    const std::string name =
        pool.contains(s.where) ? place_in(pool, s.where) : runner_.metadata().name_of(s.where);
    const auto mix = [&](std::uint64_t v) { hash = (hash ^ v) * 0x100000001b3u; };
    for (const char c : name) mix(static_cast<unsigned char>(c));
    for (const char* c = s.what; *c != 0; ++c) mix(static_cast<unsigned char>(*c));
    for (const std::uint64_t v : {s.number, s.thread, s.before, s.after}) mix(v);
  });
  const simt::outcome result = runner_.run(t);
  runner_.watch({});
  replayed = {result.failure, result.steps, hash};
  if (tell) {
    story told(std::move(tell));
    runner_.run(t, &told);
  }
  return replayed;
}

}  // namespace quarry

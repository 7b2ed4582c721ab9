// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/explore_allocator.hpp>
#include <quarry/check/minimise.hpp>
#include <quarry/check/text.hpp>
#include <quarry/core/random.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

namespace quarry {

contract_explorer::contract_explorer(const sandbox_maker& subject,
                                     const exploration_options& options)
    : options_(options), runner_(subject, options.paint_hidden) {
  calibrate();
}

replay_result contract_explorer::replay(std::string_view token, trace::sink write) {
  return replay(trial::from_token(token), std::move(write));
}

trial contract_explorer::trial_of(std::uint64_t seed) const {
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
  // Scripts differ in length, and a change point behind the last step has no effect.
  t.schedule.expected_steps =
      std::max<std::uint64_t>(operations * steps_per_operation_ >> draw.below(3), 8);
  return t;
}

// PCT draws its change points from the expected length of a run, which is measured with fixed
// seeds. A seed therefore determines the same run, independent of the first seed of an exploration.
void contract_explorer::calibrate() {
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

exploration contract_explorer::run() {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  exploration found;
  std::optional<std::pair<trial, simt::outcome>> first;
  while (found.schedules < options_.schedules) {
    const trial t = trial_of(options_.first_seed + found.schedules++);
    const simt::outcome result = runner_.run(t);
    found.steps += result.steps;
    found.served += runner_.shadow().served;
    found.failed += runner_.shadow().failed;
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

exploration_failure contract_explorer::describe(const trial& t, const simt::outcome& result) {
  exploration_failure f;
  f.seed = t.seed;
  f.text = result.failure;
  f.steps = result.steps;
  runner_.run(t);
  f.operations = runner_.script().kept_count();
  f.token = t.to_token();
  const trial small = options_.minimise ? quarry::minimise(runner_, t) : t;
  f.small_text = runner_.run(small).failure;
  f.small_token = small.to_token();
  f.small_script = runner_.script().to_text();
  f.small_operations = runner_.script().kept_count();
  return f;
}

replay_result contract_explorer::replay(const trial& t, trace::sink write) {
  replay_result replayed;
  std::uint64_t hash = 0xcbf29ce484222325u;
  runner_.trace_steps([&](const simt::step& s) {
    const memory_range pool = runner_.pool();
    const std::string name =
        pool.contains(s.where) ? address_text(pool, s.where) : runner_.metadata().name_of(s.where);
    const auto mix = [&](std::uint64_t v) { hash = (hash ^ v) * 0x100000001b3u; };
    for (const char c : name) mix(static_cast<unsigned char>(c));
    for (const char* c = s.what; *c != 0; ++c) mix(static_cast<unsigned char>(*c));
    for (const std::uint64_t v : {s.number, s.thread, s.before, s.after}) mix(v);
  });
  const simt::outcome result = runner_.run(t);
  runner_.trace_steps({});
  replayed = {result.failure, result.steps, hash};
  if (write) {
    trace out(std::move(write));
    runner_.run(t, &out);
  }
  return replayed;
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explores one allocator in portions, so that somebody can watch. What a seed means does not
/// depend on where an exploration starts, so the portions add up to the whole.

#include <quarry/check/explore_allocator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace quarry::tool {

/// Called now and then with what was done so far.
using explore_listener = std::function<void(const exploration& so_far)>;

inline void add_to(exploration& sum, const exploration& part) {
  sum.schedules += part.schedules;
  sum.failures += part.failures;
  if (!sum.first) sum.first = part.first;
  sum.steps += part.steps;
  sum.served += part.served;
  sum.failed += part.failed;
  sum.freed += part.freed;
}

/// Where blocks are handed out again while others may use them, lanes race for user memory by
/// design: then race detectors do not see what lanes do there.
template <class Allocator>
exploration_options options_for(exploration_options options) {
  options.paint_hidden = options.paint_hidden || Allocator::can.overwrites;
  return options;
}

/// Until the first failure, the last schedule, or the end of the time.
template <class Allocator>
exploration explore_in_portions(const exploration_options& options,
                                const explore_listener& listen) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(clock::now() - start).count(); };
  constexpr double portion_seconds = 0.05;
  exploration sum;
  std::uint64_t portion = 64;
  while (sum.schedules < options.schedules && !sum.first) {
    if (options.seconds > 0 && elapsed() >= options.seconds) break;
    exploration_options now = options_for<Allocator>(options);
    now.first_seed = options.first_seed + sum.schedules;
    now.schedules = std::min(portion, options.schedules - sum.schedules);
    now.seconds = 0;
    const exploration part = allocator_explorer<Allocator>(now).run();
    add_to(sum, part);
    sum.seconds = elapsed();
    if (part.seconds < portion_seconds) portion *= 2;
    listen(sum);
  }
  return sum;
}

// For people (explore_text.cpp).
std::string outcome_text(std::string_view name, const exploration& done);
std::string failure_text(std::string_view name, const exploration_failure& failure);
std::string replay_command(std::string_view name, std::string_view token);

}  // namespace quarry::tool

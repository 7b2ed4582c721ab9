// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explores one allocator in portions, to report progress in between. The schedule of a seed does
/// not depend on the first seed of an exploration, so the portions add up to one exploration.

#include <quarry/check/explore_allocator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace quarry::tool {

/// Receives the accumulated result after each portion.
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

/// Returns the options for an allocator. If the allocator overwrites blocks in use, lanes race on
/// user memory by design, and the accesses to user memory are hidden from race detectors.
template <class Allocator>
exploration_options options_for(exploration_options options) {
  options.paint_hidden = options.paint_hidden || Allocator::can.overwrites;
  return options;
}

/// Explores until the first failure, the last schedule, or the time limit.
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

// Text output (text.cpp).
std::string outcome_text(std::string_view name, const exploration& done);
std::string failure_text(std::string_view name, const exploration_failure& failure);
std::string replay_command(std::string_view name, std::string_view token);

}  // namespace quarry::tool

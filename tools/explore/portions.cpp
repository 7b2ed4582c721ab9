// SPDX-License-Identifier: Apache-2.0
#include "explore/run.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace quarry::tool {
namespace {

void add_to(exploration& sum, const exploration& part) {
  sum.schedules += part.schedules;
  sum.failures += part.failures;
  if (!sum.first) sum.first = part.first;
  sum.steps += part.steps;
  sum.served += part.served;
  sum.failed += part.failed;
  sum.freed += part.freed;
}

}  // namespace

exploration explore_in_portions(const exploration_options& options, const explore_function& explore,
                                const explore_listener& listen) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(clock::now() - start).count(); };
  constexpr double portion_seconds = 0.05;
  exploration sum;
  std::uint64_t portion = 64;
  while (sum.schedules < options.schedules && !sum.first) {
    if (options.seconds > 0 && elapsed() >= options.seconds) break;
    exploration_options now = options;
    now.first_seed = options.first_seed + sum.schedules;
    now.schedules = std::min(portion, options.schedules - sum.schedules);
    now.seconds = 0;
    const exploration part = explore(now);
    add_to(sum, part);
    sum.seconds = elapsed();
    if (part.seconds < portion_seconds) portion *= 2;
    listen(sum);
  }
  return sum;
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explorations in portions, and the explorer of an allocator that is selected by name.

#include <quarry/check/exploration.hpp>
#include <quarry/check/trace.hpp>
#include <quarry/check/trial.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace quarry::tool {

/// Runs one exploration: allocator_explorer<A>::run for some allocator A.
using explore_function = std::function<exploration(const exploration_options&)>;
/// Receives the accumulated result after each portion.
using explore_listener = std::function<void(const exploration& so_far)>;

/// Explores until the first failure, the last schedule, or the time limit, and reports progress in
/// between. The schedule of a seed does not depend on the first seed of an exploration, so the
/// portions add up to one exploration.
exploration explore_in_portions(const exploration_options& options, const explore_function& explore,
                                const explore_listener& listen);

/// Returns the explorer of an allocator of the library. If the allocator overwrites blocks in use,
/// lanes race on user memory by design, and the accesses to user memory are hidden from race
/// detectors.
explore_function explorer_of(std::string_view allocator);
/// Replays a trial of an allocator of the library. `write` receives the trace line by line.
replay_result replay_trial(std::string_view allocator, const trial& t, const trace::sink& write);

// Text output (text.cpp).
std::string outcome_text(std::string_view name, const exploration& done);
std::string failure_text(std::string_view name, const exploration_failure& failure);
std::string replay_command(std::string_view name, std::string_view token);

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// allocator_explorer: searches for a schedule under which an allocator violates its contract.
///
///   quarry::allocator_explorer<quarry::wrap> explorer({.schedules = 100'000});
///   if (auto found = explorer.run(); found.first) {
///     std::puts(found.first->text.c_str());
///     explorer.replay(found.first->small_token,
///                     [](const std::string& line) { std::puts(line.c_str()); });
///   }
///
/// A seed determines a script, a grid, a pool and a schedule. The explorer runs consecutive seeds.
/// It minimises the first failure (minimise.hpp) and describes it by a token, which reproduces the
/// run in any process. The explorer covers sequentially consistent interleavings only.

#include <quarry/check/exploration.hpp>
#include <quarry/check/trial_runner.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace quarry {

class contract_explorer {
 public:
  explicit contract_explorer(const sandbox_maker& subject, const exploration_options& options = {});

  exploration run();

  /// Returns: the trial of a seed under these options.
  trial trial_of(std::uint64_t seed) const;

  /// Effects: runs a trial again. `write` receives script, steps and outcome line by line.
  replay_result replay(std::string_view token, trace::sink write = {});
  replay_result replay(const trial& t, trace::sink write = {});

 private:
  void calibrate();
  exploration_failure describe(const trial& t, const simt::outcome& result);

  exploration_options options_;
  trial_runner runner_;
  std::uint64_t steps_per_operation_ = 8;
};

/// contract_explorer for the allocator A.
template <allocator A>
class allocator_explorer : public contract_explorer {
 public:
  explicit allocator_explorer(const exploration_options& options = {})
      : contract_explorer(sandbox_maker::of<A>(), options) {}
};

}  // namespace quarry

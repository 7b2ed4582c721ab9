// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/minimise.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace quarry {
namespace {

class minimiser {
 public:
  minimiser(trial_runner& runner, std::uint64_t runs) : runner_(&runner), runs_left_(runs) {}

  trial operator()(trial t) {
    if (runner_->run(t).ok()) return t;
    in_script_ = runner_->failed_in_script();
    const allocation_script script = runner_->script();
    t.keep.resize(script.size(), true);
    for (bool smaller = true; smaller && runs_left_ != 0;) {
      smaller = drop_lanes(t, script);
      smaller |= drop_operations(t);
    }
    return with_fewest_switches(std::move(t));
  }

 private:
  static constexpr unsigned schedules_tried = 24;
  static constexpr unsigned schedules_compared = 400;

  bool drop_lanes(trial& t, const allocation_script& script) {
    bool smaller = false;
    const grid g = script.shape();
    for (std::uint64_t lane = 0; lane < std::uint64_t{g.blocks} * g.threads; ++lane)
      smaller |= drop(t, script.first_of(lane), script.last_of(lane));
    return smaller;
  }
  bool drop_operations(trial& t) {
    bool smaller = false;
    const std::size_t n = t.keep.size();
    for (std::size_t length = std::max<std::size_t>(n / 2, 1);; length /= 2) {
      for (std::size_t first = 0; first < n; first += length)
        smaller |= drop(t, first, std::min(first + length, n));
      if (length == 1) return smaller;
    }
  }

  bool drop(trial& t, std::size_t first, std::size_t last) {
    trial shorter = t;
    bool any = false;
    for (std::size_t i = first; i < last; ++i) {
      any = any || shorter.keep[i];
      shorter.keep[i] = false;
    }
    if (!any || !fails_under_any_schedule(shorter)) return false;
    t = std::move(shorter);
    return true;
  }

  bool fails_under_any_schedule(trial& t) {
    const simt::schedule first = t.schedule;
    for (unsigned i = 0; i < schedules_tried && runs_left_ != 0; ++i) {
      if (i != 0) t.schedule = other_schedule(first, i);
      if (fails(t)) return true;
    }
    return false;
  }
  bool fails(const trial& t) {
    if (runs_left_ == 0) return false;
    --runs_left_;
    return fails_in_same_phase(runner_->run(t));
  }
  bool fails_in_same_phase(const simt::outcome& result) const {
    return !result.ok() && runner_->failed_in_script() == in_script_;
  }

  static simt::schedule other_schedule(const simt::schedule& like, unsigned number) {
    simt::schedule s = like;
    s.seed = like.seed + number;
    if (like.how == simt::strategy::pct && like.change_points == 0)
      return s;  // the lanes run one after the other, in another order
    if (like.how == simt::strategy::lockstep) return s;
    s.how = number % 2 != 0 ? simt::strategy::pct : simt::strategy::random;
    s.change_points = 1 + number / 2 % 3;
    s.expected_steps = std::max<std::uint64_t>(like.expected_steps >> (number % 4), 8);
    return s;
  }

  // Returns: the trial with the schedule that has the fewest switches, then the fewest steps.
  trial with_fewest_switches(trial t) {
    const trial start = t;
    std::uint64_t switches = 0, last_lane = 0;
    runner_->trace_steps([&](const simt::step& s) {
      switches += s.thread != last_lane;
      last_lane = s.thread;
    });
    const auto switches_and_steps = [&](const trial& candidate) {
      switches = 0;
      const auto result = runner_->run(candidate);
      return fails_in_same_phase(result) ? std::pair{switches, result.steps} : worst;
    };
    auto best = switches_and_steps(t);
    for (unsigned i = 1; i < schedules_compared && runs_left_ != 0; ++i, --runs_left_) {
      trial candidate = start;
      candidate.schedule = other_schedule(start.schedule, i);
      const auto now = switches_and_steps(candidate);
      if (now >= best) continue;
      best = now;
      t = std::move(candidate);
    }
    runner_->trace_steps({});
    return t;
  }
  static constexpr std::pair<std::uint64_t, std::uint64_t> worst{~std::uint64_t{0},
                                                                 ~std::uint64_t{0}};

  trial_runner* runner_;
  std::uint64_t runs_left_;
  bool in_script_ = true;  // whether the original failure occurs in the script or after it
};

}  // namespace

trial minimise(trial_runner& runner, const trial& t, std::uint64_t runs) {
  return minimiser(runner, runs)(t);
}

}  // namespace quarry

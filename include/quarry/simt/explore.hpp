// SPDX-License-Identifier: Apache-2.0
#pragma once
/// explorer: runs a small grid on one OS thread under a chosen schedule, as often as you like.
///
/// Lanes switch at every atomic, the seed decides to whom, equal schedules give equal runs. What an
/// oracle finds it reports with fail(); deadlocks, bad masks and endless runs report themselves. The
/// strategy `lockstep` shows lanes that wait for a lane of their own warp without letting it run. Only
/// sequentially consistent interleavings are seen: a missing acquire or release is for a race
/// detector or the GPU to find.
///
///   simt::explorer e;
///   for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
///     reset_state();
///     if (auto result = e.run({.seed = seed}, {1, 3}, kernel); !result.ok()) report(seed, result.failure);
///   }

#include <quarry/simt/collective.hpp>
#include <quarry/simt/executor/executor.hpp>
#include <quarry/simt/launch.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace quarry::simt {

struct outcome {
  std::string failure;  // empty: the run went well
  std::uint64_t steps = 0;
  bool ok() const { return failure.empty(); }
};

class explorer {
 public:
  /// The whole grid under one schedule. A failure is in the outcome; what the kernel itself throws
  /// comes through.
  template <class Kernel>
  outcome run(const schedule& how, const grid& g, const Kernel& kernel) {
    check_grid(g);
    executor_.watch(tracer_ ? &tracer_ : nullptr);
    outcome result;
    try {
      executor_.run_schedule(make_job(g, kernel), how);
    } catch (const kernel_error& e) {
      result.failure = e.what();
    }
    result.steps = executor_.steps();
    return result;
  }

  /// Every shared access from now on is shown to `tracer`; an empty one stops that.
  void trace(std::function<void(const step&)> tracer) { tracer_ = std::move(tracer); }

  /// What all runs so far did.
  const cost_counts& counts() { return executor_.counts(); }

 private:
  exec::executor executor_;
  std::function<void(const step&)> tracer_;
};

/// From a lane: the run has failed, and this is why. Never returns there.
[[noreturn]] inline void fail(std::string why) {
  if (exec::executor* e = exec::executor::here()) {
    exec::unseen guard;
    e->fail(std::move(why));
  }
  throw kernel_error(why);
}

/// In a lane: code of the test itself, hidden from race detectors. No yield point may lie inside.
using host_section = exec::unseen;

/// Memory round trips on the longest path that leads to this point of the lane, through other lanes of
/// the warp too: each load or read-modify-write whose result is wanted is one.
inline std::uint64_t round_trips() {
  return exec::ask([](exec::executor& e) { return e.current().depth; }, 0);
}

/// What the lanes of this thread's executor did since it was made.
inline const cost_counts& counts_here() { return exec::worker_pool::mine().counts(); }

}  // namespace quarry::simt

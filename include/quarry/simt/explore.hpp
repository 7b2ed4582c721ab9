// SPDX-License-Identifier: Apache-2.0
#pragma once
/// explorer: runs a small grid on one OS thread under a chosen schedule, any number of times.
///
/// Lanes may switch at every access to shared memory. The seed of the schedule determines all
/// switches, so that equal schedules give equal runs. An oracle reports a violation with fail().
/// Deadlocks, invalid masks and runs without an end are detected by the executor. The strategy
/// `lockstep` detects a lane that waits for another lane of its warp without letting it run.
///
/// The explorer covers sequentially consistent interleavings only. A missing acquire or release is
/// detected by a race detector or on a GPU.
///
///   simt::explorer e;
///   for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
///     reset_state();
///     const simt::outcome result = e.run({.seed = seed}, {1, 3}, kernel);
///     if (!result.ok()) report(seed, result.failure);
///   }
///
/// Programs that use this header link quarry::cpu.

#include <quarry/core/error.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/detail/cpu_library.hpp>
#include <quarry/simt/launch.hpp>
#include <quarry/simt/schedule.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace quarry::simt {

struct outcome {
  std::string failure;  // empty: the run succeeded
  std::uint64_t steps = 0;
  bool ok() const { return failure.empty(); }
};

class explorer {
 public:
  /// Effects: runs the grid under one schedule, with all blocks resident.
  /// Returns: the failure, if any. Throws: the exception of the kernel, if a lane throws.
  template <class Kernel>
  outcome run(const schedule& how, const grid& g, const Kernel& kernel) {
    check_grid(g);
    executor_->set_tracer(tracer_ ? &tracer_ : nullptr);
    outcome result;
    try {
      executor_->run_schedule(make_job(g, kernel), how);
    } catch (const kernel_error& e) {
      result.failure = e.what();
    }
    result.steps = executor_->steps();
    return result;
  }

  /// Effects: later runs call `tracer` after each access to shared memory. An empty function ends
  /// it.
  void trace(std::function<void(const step&)> tracer) { tracer_ = std::move(tracer); }

  /// Returns: the operations of all runs so far.
  const cost_counts& counts() { return executor_->counts(); }

 private:
  std::unique_ptr<detail::executor_interface> executor_ = needs_quarry_cpu::make_executor();
  std::function<void(const step&)> tracer_;
};

/// Effects: fails the run of the calling lane with a message. The call does not return.
[[noreturn]] inline void fail(std::string why) {
  if (detail::executor_interface* e = detail::executor_interface::current()) {
    detail::tsan_ignore guard;
    e->fail(std::move(why));
  }
  throw kernel_error(why);
}

/// A scope in a kernel with code of the test itself. Race detectors ignore its accesses. The scope
/// must contain no scheduling point.
using host_section = detail::tsan_ignore;

/// Returns: the number of dependent round trips to memory on the longest path to this point of the
/// lane. The path may lead through other lanes of the warp. Each load, and each read-modify-write
/// operation with a result, is a round trip.
inline std::uint64_t round_trips() {
  return detail::read_executor(
      [](detail::executor_interface& e) { return e.running().round_trips; }, 0);
}

/// Returns: the operations of all lanes that ran on the calling thread in launch<cpu>.
inline const cost_counts& counts_of_this_thread() {
  return needs_quarry_cpu::counts_of_this_thread();
}

}  // namespace quarry::simt

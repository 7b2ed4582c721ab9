// SPDX-License-Identifier: Apache-2.0
#pragma once
/// executor_interface: how device code on the CPU backend reaches the executor that runs it.
///
/// The headers of simt/ depend on this interface and not on the executor, which is compiled into
/// quarry::cpu. A program that runs no CPU kernel therefore needs neither that library nor Boost:
/// executor_interface::current() is null, and the calling host thread counts as a grid of one lane.
///
/// The operations that lanes execute most often, accesses to shared memory, are inline. They call a
/// virtual function only where the executor may switch to another lane.

#include <quarry/core/config.hpp>
#include <quarry/simt/bits.hpp>
#include <quarry/simt/cost_counts.hpp>
#include <quarry/simt/detail/sanitizer.hpp>
#include <quarry/simt/schedule.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace quarry::simt::detail {

enum class access : std::uint8_t { load, store, atomic, posted_atomic };

/// A kernel and its grid.
struct job {
  void (*body)(const void* kernel) = nullptr;
  const void* kernel = nullptr;
  std::uint32_t blocks = 0;
  std::uint32_t threads = 0;  // per block
};

/// The state of a lane that is accessed without a call to the executor.
struct lane_state {
  std::uint32_t index = 0;  // in the warp
  std::uint32_t thread_in_block = 0;
  std::uint32_t block = 0;
  std::int32_t quantum = 0;       // accesses that are left before the lane is preempted
  std::uint64_t round_trips = 0;  // dependent round trips on the longest path to this point
};

/// What a lane contributes to a collective, and what it receives.
struct lane_operand {
  std::uint64_t value = 0;
  std::uint32_t source = 0;  // shuffle: the lane to read from
  std::uint64_t result = 0;
  std::uint64_t second_result = 0;  // scans have two results
};

/// A collective. The lane that arrives last calls `finish` on behalf of all lanes in `present`.
struct collective_kind {
  const char* name;
  void (*finish)(lane_operand* lanes, lane_mask present);
};

struct collective_result {
  std::uint64_t first;
  std::uint64_t second;
};

template <class Visit>
void for_each_lane(lane_mask mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(lowest_bit(mask));
}

class executor_interface {
 public:
  executor_interface(const executor_interface&) = delete;
  executor_interface& operator=(const executor_interface&) = delete;
  virtual ~executor_interface() = default;

  /// The executor whose lane runs on this thread; null outside kernels.
  QUARRY_NO_TSAN static executor_interface*& current() { return current_; }

  // ---- called by lanes, each time with a `tsan_ignore` in scope ---------------------------------

  lane_state& running() { return *running_; }
  const job& work() const { return work_; }

  /// A scheduling point: the executor may switch to another lane before an access.
  void before_access() {
    if (exploring_) return explore_before_access();
    if (--running_->quantum < 0) [[unlikely]]
      yield();
  }
  /// Counts an access and reports it to the tracer.
  void after_access(access kind, const char* what, const void* where, std::uint64_t before,
                    std::uint64_t after) {
    switch (kind) {
      case access::load:
        ++counts_.loads;
        ++running_->round_trips;
        break;
      case access::store: ++counts_.stores; break;
      case access::atomic:
        ++counts_.atomics;
        ++running_->round_trips;
        break;
      case access::posted_atomic: ++counts_.atomics; break;
    }
    if (tracer_ != nullptr && *tracer_) [[unlikely]]
      (*tracer_)({steps(), running_thread(), what, where, before, after});
  }

  virtual collective_result run_collective(const collective_kind& kind, lane_mask mask,
                                           std::uint64_t value, std::uint32_t source) = 0;
  virtual lane_mask active_mask(const char* file, unsigned line) = 0;
  virtual void sync_warp(lane_mask mask) = 0;
  virtual void sync_block() = 0;
  virtual void spin() = 0;
  /// Effects: ends the run with a kernel_error. The call does not return to the lane.
  [[noreturn]] virtual void fail(std::string why) = 0;

  /// A number that grows while lanes run. In explore mode it starts at 0 with each run.
  std::uint64_t ticks() const { return exploring_ ? steps() : counts_.atomics + counts_.loads; }

  // ---- called by the host -----------------------------------------------------------------------

  /// Effects: runs the grid under one schedule, with all blocks resident.
  /// Throws: kernel_error if the run fails; the exception of the kernel if a lane throws.
  virtual void run_schedule(const job& work, const schedule& how) = 0;
  /// Returns: the number of scheduling points of the last run.
  virtual std::uint64_t steps() const = 0;

  const cost_counts& counts() const { return counts_; }
  void set_tracer(const std::function<void(const step&)>* tracer) { tracer_ = tracer; }

 protected:
  executor_interface() = default;

  virtual void yield() = 0;
  virtual void explore_before_access() = 0;

  std::uint64_t running_thread() const {
    return std::uint64_t{running_->block} * work_.threads + running_->thread_in_block;
  }

  lane_state* running_ = nullptr;
  job work_{};
  cost_counts counts_;
  bool exploring_ = false;

 private:
  static inline constinit thread_local executor_interface* current_ = nullptr;

  const std::function<void(const step&)>* tracer_ = nullptr;
};

/// Returns: read(executor) inside a kernel, `outside` on a plain host thread.
template <class Read>
auto read_executor(Read&& read, decltype(read(std::declval<executor_interface&>())) outside) {
  executor_interface* e = executor_interface::current();
  if (e == nullptr) return outside;
  tsan_ignore guard;
  return read(*e);
}

}  // namespace quarry::simt::detail

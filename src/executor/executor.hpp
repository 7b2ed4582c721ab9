// SPDX-License-Identifier: Apache-2.0
#pragma once
/// executor: runs the lanes of one or more blocks on the calling thread.
///
/// Fast mode runs one block at a time.
///   - A warp runs until each of its lanes waits, spins or has exited.
///   - Then the largest group of lanes that wait in active_mask() on the same source line
///     continues.
///   - If there is no such group, the next warp runs, and the spinning lanes of this warp become
///     ready again.
///   - Lanes are preempted at accesses to shared memory only, after `quantum` of them. Spin loops
///     without a call of spin() therefore end.
/// Explore mode keeps the whole grid resident. A lane_scheduler chooses the next lane at every
/// access. CUDA does not guarantee which lanes are converged, so active_mask() returns a random
/// subset of the waiting lanes.
///
/// Masked collectives match on (kind, mask). A collective completes when every lane of its mask
/// that has not exited has arrived. The last lane computes the results of all lanes and continues.
///
/// A run fails with a message if a lane is not in its own mask, if a mask names lanes that do not
/// exist, if no lane can make progress, or if the run exceeds its step limit. The executor then
/// abandons the fibers of the run, and is ready for the next run.

#include "executor/fiber_switch.hpp"
#include "executor/lane_scheduler.hpp"
#include "executor/warp.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace quarry::simt::detail {

class executor final : public executor_interface {
 public:
  executor() {
    running_ = &root_;
    root_.context.adopt_thread();
  }

  /// Fast mode. Effects: runs one block to its end.
  /// Throws: kernel_error if the run fails; the exception of the kernel if a lane throws.
  void run_block(const job& work, std::uint32_t block, std::uint64_t step_limit,
                 const std::atomic<bool>* stop);
  /// Explore mode.
  void run_schedule(const job& work, const schedule& how) override;

  collective_result run_collective(const collective_kind& kind, lane_mask mask, std::uint64_t value,
                                   std::uint32_t source) override;
  lane_mask active_mask(const char* file, unsigned line) override;
  void sync_warp(lane_mask mask) override;
  void sync_block() override;
  void spin() override;
  [[noreturn]] void fail(std::string why) override;
  std::uint64_t steps() const override { return exploring_ ? scheduler_.steps() : steps_; }

 private:
  static constexpr std::int32_t quantum = 256;
  static constexpr collective_kind active_mask_kind{"active_mask", nullptr};

  lane& current() { return static_cast<lane&>(*running_); }

  // Functions on the path of a switch are `inline`, see fiber_switch.hpp. executor.cpp defines
  // them.
  void run(const job& work, std::uint32_t first_block, std::uint32_t blocks);
  void prepare(std::uint32_t first_block, std::uint32_t blocks);
  [[noreturn]] static void lane_main();
  inline void run_kernel() noexcept;
  inline lane& retire(lane& l);

  void yield() override;
  void explore_before_access() override { switch_unless_running(scheduler_.at_access(current())); }
  void switch_unless_running(lane& next) {
    check_step_limit();
    if (&next != running_) switch_to(next);
  }

  lane& next_lane();
  inline lane& next_fast();
  lane& next_explored();

  // A lane that has to wait calls stop_running(), may be released by itself or by another lane, and
  // then calls wait().
  static void stop_running(lane& l) {
    l.home->ready &= ~l.bit();
    l.home->turn = nullptr;
  }
  [[gnu::always_inline]] void wait() {
    running_->quantum = quantum;
    lane& next = next_lane();
    if (&next != running_) switch_to(next);
  }
  void check_step_limit() {
    if (scheduler_.past_limit()) [[unlikely]]
      fail(step_limit_message(scheduler_.steps()));
  }
  // The sanitizer ignores nothing on a suspended fiber, so that the fiber can be abandoned.
  QUARRY_NO_TSAN void switch_to(lane& next) {
    lane& self = current();
    running_ = &next;
    tsan_ignore::end();
    fiber_switch::jump(self.context, next.context, false);
    tsan_ignore::begin();
  }

  void make_ready(warp& w, lane_mask lanes) {
    w.ready |= lanes;
    if (exploring_) for_each_lane(lanes, [&](unsigned i) { scheduler_.add(w.lanes[i]); });
  }
  [[noreturn]] void reject_mask(const collective_kind& kind, lane_mask mask);
  void complete(warp& w, pending_collective& p, lane_mask running) {
    const pending_collective done = p;
    w.remove(p);
    done.kind->finish(w.operands.data(), done.arrived);
    std::uint64_t longest = 0;
    for_each_lane(done.arrived,
                  [&](unsigned i) { longest = std::max(longest, w.lanes[i].round_trips); });
    for_each_lane(done.arrived, [&](unsigned i) { w.lanes[i].round_trips = longest; });
    make_ready(w, done.arrived & ~running);
  }
  inline void release_group(warp& w, pending_collective& p, lane_mask group);
  static inline pending_collective* largest_group(warp& w);
  bool release_random_group();
  void release_groups_of_waiting_warps();
  inline void open_barriers();

  std::string deadlock_message() const;
  static std::string step_limit_message(std::uint64_t steps);

  lane root_;  // the thread that runs the grid
  std::vector<std::unique_ptr<warp>> warps_;
  unsigned active_warps_ = 0;
  unsigned warps_per_block_ = 1;
  unsigned turn_ = 0;
  std::uint64_t lanes_left_ = 0;
  lane_scheduler scheduler_;
  std::uint64_t step_limit_ = 0;
  std::uint64_t steps_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
  bool failed_ = false;
  std::string failure_;
  std::exception_ptr exception_;
  char started_ = 0, ended_ = 0;  // keys of tsan_release: the start and the end of a kernel
};

}  // namespace quarry::simt::detail

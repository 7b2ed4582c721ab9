// SPDX-License-Identifier: Apache-2.0
#pragma once
/// executor: runs the lanes of some blocks on the calling thread.
///
/// Fast mode: one block at a time. A warp runs until every lane of it waits, spins or is gone; then
/// the largest group that waits for company at one place is let go; only then the next warp has its
/// turn, and this warp's spinners may try again. Lanes are preempted at atomics only, after `quantum`
/// of them, so that naked spin loops end.
/// Explore mode: the whole grid is resident and a chooser decides at every atomic. CUDA promises no
/// grouping, so a request for company is answered with a random part of those who wait.
///
/// Masked collectives match on (kind, mask) and complete when every lane of the mask that is not gone
/// has arrived; the last one computes for all and goes on. A lane outside its own mask, a mask with
/// lanes that do not exist, no lane that can go on, too many steps: the run ends with a message, its
/// fibers are abandoned, and the executor is fit for the next run.

#include <quarry/simt/executor/schedule.hpp>
#include <quarry/simt/executor/warp.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace quarry::simt {

/// What lanes did to shared memory and to each other; exact.
struct cost_counts {
  std::uint64_t loads = 0;
  std::uint64_t stores = 0;
  std::uint64_t atomics = 0;      // read-modify-write operations
  std::uint64_t collectives = 0;  // counted once per lane that takes part
};

/// One shared access of a lane, for those who watch.
struct step {
  std::uint64_t number;
  std::uint64_t thread;  // in the grid
  const char* what;      // "fetch_add", "load", ...
  const void* where;
  std::uint64_t before;
  std::uint64_t after;
};

namespace exec {

enum class access : std::uint8_t { load, store, atomic, posted_atomic };

struct job {
  void (*body)(const void* kernel);
  const void* kernel;
  std::uint32_t blocks;
  std::uint32_t threads;
};

class executor {
 public:
  executor() { root_.thread.adopt_thread(); }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// The executor whose lane is running on this thread; nullptr outside kernels.
  QUARRY_UNSEEN static executor*& here() { return here_; }

  // Fast mode: one block, to its end. Throws kernel_error, or what the kernel threw.
  void run_block(const job& work, std::uint32_t block, std::uint64_t step_limit,
                 const std::atomic<bool>* stop) {
    chooser_ = nullptr;
    step_limit_ = step_limit;
    stop_ = stop;
    run(work, block, 1);
  }
  // Explore mode: the whole grid, under one schedule.
  void run_schedule(const job& work, const schedule& how) {
    exploring_.begin(how);
    chooser_ = &exploring_;
    stop_ = nullptr;
    run(work, 0, work.blocks);
  }

  // What lanes call; each inside an `unseen` scope.
  void point() {
    if (chooser_ == nullptr) {
      if (--current_->quantum < 0) [[unlikely]]
        give_way();
      return;
    }
    lane& next = chooser_->at_point(*current_);
    check_limit();
    if (&next != current_) switch_to(next);
  }
  void spin() {
    if (chooser_ == nullptr) return give_way();
    if (chooser_->ends_wait_of_others()) (void)release_some_company();
    lane& next = chooser_->at_spin(*current_);
    check_limit();
    if (&next != current_) switch_to(next);
  }
  std::uint64_t meet(const collective_kind& kind, lane_mask mask, std::uint64_t value,
                     std::uint32_t source);
  lane_mask find_company(const char* file, unsigned line);
  void block_barrier();
  void note(access kind, const char* what, const void* where, std::uint64_t before,
            std::uint64_t after) {
    switch (kind) {
      case access::load:
        ++counts_.loads;
        ++current_->depth;
        break;
      case access::store: ++counts_.stores; break;
      case access::atomic:
        ++counts_.atomics;
        ++current_->depth;
        break;
      case access::posted_atomic: ++counts_.atomics; break;
    }
    if (tracer_ && *tracer_) [[unlikely]]
      (*tracer_)({steps(), thread_number(*current_), what, where, before, after});
  }
  [[noreturn]] void fail(std::string why);

  lane& current() { return *current_; }
  const job& work() const { return work_; }
  std::uint64_t thread_number(const lane& l) const {
    return std::uint64_t{l.block} * work_.threads + l.thread_in_block;
  }
  std::uint64_t steps() const { return chooser_ != nullptr ? chooser_->steps() : steps_; }
  /// Something that advances; under the explorer it starts anew with each run.
  std::uint64_t ticks() const {
    return chooser_ != nullptr ? chooser_->steps() : counts_.atomics + counts_.loads;
  }
  cost_counts& counts() { return counts_; }
  void watch(const std::function<void(const step&)>* tracer) { tracer_ = tracer; }

 private:
  static constexpr std::int32_t quantum = 256;
  static constexpr collective_kind company{"coalesced", nullptr};

  void run(const job& work, std::uint32_t first_block, std::uint32_t blocks);
  void prepare(std::uint32_t first_block, std::uint32_t blocks);
  [[noreturn]] static void lane_main(fiber::transfer back);
  void run_kernel() noexcept;
  lane& leave(lane& l);

  lane& pick() { return chooser_ != nullptr ? pick_explored() : pick_fast(); }
  lane& pick_fast();
  lane& pick_explored();
  void give_way();
  // A lane that waits is first unready, then made ready again by whoever lets it go (perhaps itself,
  // in between), and parked meanwhile.
  void unready(lane& l) {
    l.home->ready &= ~(lane_mask{1} << l.index);
    l.home->turn = nullptr;
  }
  void park() {
    current_->quantum = quantum;
    lane& next = pick();
    if (&next != current_) switch_to(next);
  }
  void check_limit() {
    if (chooser_->past_limit()) [[unlikely]]
      fail(step_limit_text(chooser_->steps()));
  }
  // The parked fiber is left with nothing hidden, so that it may be abandoned.
  QUARRY_UNSEEN void switch_to(lane& next) {
    lane& self = *current_;
    current_ = &next;
    unseen::end();
    fiber::jump(self.thread, next.thread);
    unseen::begin();
  }

  void make_ready(warp& w, lane_mask lanes) {
    w.ready |= lanes;
    if (chooser_ != nullptr) for_each_lane(lanes, [&](unsigned i) { chooser_->add(w.lanes[i]); });
  }
  void complete(warp& w, rendezvous& r, lane_mask running);
  void release_company(warp& w, rendezvous& r, lane_mask group);
  rendezvous* largest_company(warp& w);
  bool release_some_company();
  void release_waiting_warps();
  void open_barriers();

  std::string stuck_text() const;
  static std::string step_limit_text(std::uint64_t steps) {
    return "step limit: no end after " + std::to_string(steps) + " steps";
  }

  static inline constinit thread_local executor* here_ = nullptr;

  lane root_;
  lane* current_ = &root_;
  std::vector<std::unique_ptr<warp>> warps_;
  unsigned active_warps_ = 0;
  unsigned warps_per_block_ = 1;
  unsigned turn_ = 0;
  std::uint64_t lanes_left_ = 0;
  job work_{};
  chooser* chooser_ = nullptr;
  chooser exploring_;
  std::uint64_t step_limit_ = 0;
  std::uint64_t steps_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
  bool failed_ = false;
  std::string failure_;
  std::exception_ptr exception_;
  cost_counts counts_;
  const std::function<void(const step&)>* tracer_ = nullptr;
  char started_ = 0, ended_ = 0;  // addresses that stand for a kernel's beginning and end
};

}  // namespace exec
}  // namespace quarry::simt

#include <quarry/simt/executor/executor_impl.hpp>

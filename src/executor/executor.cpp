// SPDX-License-Identifier: Apache-2.0
#include "executor/executor.hpp"

#include <quarry/simt/detail/collective_kinds.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace quarry::simt::detail {

// ---- a run -------------------------------------------------------------------------------------

void executor::run_block(const job& work, std::uint32_t block, std::uint64_t step_limit,
                         const std::atomic<bool>* stop) {
  exploring_ = false;
  step_limit_ = step_limit;
  stop_ = stop;
  run(work, block, 1);
}

void executor::run_schedule(const job& work, const schedule& how) {
  scheduler_.begin(how);
  exploring_ = true;
  stop_ = nullptr;
  run(work, 0, work.blocks);
}

void executor::run(const job& work, std::uint32_t first_block, std::uint32_t blocks) {
  if (executor_interface::current() != nullptr)
    throw kernel_error("a lane can not launch a kernel");
  work_ = work;
  failed_ = false;
  failure_.clear();
  exception_ = nullptr;
  {
    tsan_ignore guard;
    tsan_release(&started_);
    prepare(first_block, blocks);
    executor_interface::current() = this;
    running_ = &root_;
    switch_to(next_lane());
    executor_interface::current() = nullptr;
    tsan_acquire(&ended_);
  }
  if (!failed_) return;
  for (auto& w : warps_)
    for (lane& l : w->lanes) l.context.forget();
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
  throw kernel_error(failure_);
}

void executor::prepare(std::uint32_t first_block, std::uint32_t blocks) {
  warps_per_block_ = (work_.threads + warp_size - 1) / warp_size;
  active_warps_ = warps_per_block_ * blocks;
  lanes_left_ = std::uint64_t{work_.threads} * blocks;
  turn_ = 0;
  steps_ = 0;
  while (warps_.size() < active_warps_) warps_.push_back(std::make_unique<warp>());
  for (unsigned i = 0; i < active_warps_; ++i) {
    warp& w = *warps_[i];
    const unsigned first_thread = i % warps_per_block_ * warp_size;
    const unsigned lanes = std::min(warp_size, work_.threads - first_thread);
    w.alive = lanes == warp_size ? full_warp : (lane_mask{1} << lanes) - 1;
    w.existing = w.alive;
    w.ready = w.alive;
    w.first_of_block = warps_[i - i % warps_per_block_].get();
    w.spinning = w.at_barrier = 0;
    w.turn = nullptr;
    w.pending_count = 0;
    for (unsigned k = 0; k < lanes; ++k) {
      lane& l = w.lanes[k];
      l.home = &w;
      l.index = k;
      l.thread_in_block = first_thread + k;
      l.block = first_block + i / warps_per_block_;
      l.quantum = quantum;
      l.round_trips = 0;
      if (!l.context.made()) l.context.make(w.memory.bottom(k), k, &lane_main);
      if (exploring_) scheduler_.add_new(l);
    }
  }
}

QUARRY_NO_TSAN void executor::lane_main() {
  tsan_ignore::begin();
  auto& e = static_cast<executor&>(*executor_interface::current());
  lane& self = e.current();
  for (;;) {
    tsan_acquire(&e.started_);
    tsan_ignore::end();
    e.run_kernel();
    tsan_ignore::begin();
    tsan_release(&e.ended_);
    e.switch_to(e.failed_ ? e.root_ : e.retire(self));
  }
}

void executor::run_kernel() noexcept {
  try {
    work_.body(work_.kernel);
    return;
  } catch (...) {
    tsan_ignore guard;
    exception_ = std::current_exception();
    failed_ = true;
  }
}

void executor::fail(std::string why) {
  failure_.swap(why);
  std::string().swap(why);  // the fiber is abandoned: no destructor of this frame runs
  failed_ = true;
  switch_to(root_);
  std::terminate();  // unreachable: an abandoned fiber is never resumed
}

/// A lane has exited: completes the collectives and barriers that waited for it only.
lane& executor::retire(lane& l) {
  warp& w = *l.home;
  w.alive &= ~l.bit();
  stop_running(l);
  for (unsigned k = 0; k < w.pending_count;) {
    pending_collective& p = w.pending[k];
    if (p.kind != &active_mask_kind && p.arrived == (p.mask & w.alive)) {
      complete(w, p, 0);
    } else {
      ++k;
    }
  }
  open_barriers();
  return --lanes_left_ == 0 ? root_ : next_lane();
}

// ---- collectives -------------------------------------------------------------------------------

void executor::reject_mask(const collective_kind& kind, lane_mask mask) {
  const lane& l = current();
  fail(std::string(kind.name) + ": thread " + std::to_string(running_thread()) + " (lane " +
       std::to_string(l.index) + ") passed the mask " + std::to_string(mask) +
       ((mask & l.bit()) == 0 ? ", which does not contain it"
                              : ", which names lanes that do not exist"));
}

collective_result executor::run_collective(const collective_kind& kind, lane_mask mask,
                                           std::uint64_t value, std::uint32_t source) {
  lane& l = current();
  warp& w = *l.home;
  if ((mask & l.bit()) == 0 || (mask & ~w.existing) != 0) [[unlikely]]
    reject_mask(kind, mask);
  ++counts_.collectives;
  lane_operand& operand = w.operands[l.index];
  operand.value = value;
  operand.source = source;
  pending_collective& p = w.find_or_add({&kind, mask, 0, nullptr, 0});
  p.arrived |= l.bit();
  if (p.arrived == (mask & w.alive)) {
    complete(w, p, l.bit());
    l.quantum = quantum;
    if (exploring_) explore_before_access();
  } else {
    stop_running(l);
    wait();
  }
  return {operand.result, operand.second_result};
}

lane_mask executor::active_mask(const char* file, unsigned line) {
  lane& l = current();
  warp& w = *l.home;
  ++counts_.collectives;
  pending_collective& p = w.find_or_add({&active_mask_kind, 0, 0, file, line});
  p.arrived |= l.bit();
  stop_running(l);
  if (exploring_) {
    scheduler_.count_step();
    check_step_limit();
    // Otherwise the lane waits until another lane releases the group, or no other lane can run. A
    // lane does not wait for lanes of other warps, which can not join the group.
    if (w.ready == 0 || scheduler_.releases_group_early())
      release_group(w, p, scheduler_.random_lanes() | l.bit());
  }
  wait();
  return static_cast<lane_mask>(w.operands[l.index].result);
}

void executor::release_group(warp& w, pending_collective& p, lane_mask group) {
  group &= p.arrived;
  p.arrived &= ~group;
  for_each_lane(group, [&](unsigned i) { w.operands[i].result = group; });
  if (p.arrived == 0) w.remove(p);
  make_ready(w, group);
}

void executor::sync_warp(lane_mask mask) {
  warp* key = current().home;
  tsan_release(key);
  (void)run_collective(sync_kind, mask, 0, 0);
  tsan_acquire(key);
}

void executor::sync_block() {
  lane& l = current();
  warp* key = l.home->first_of_block;
  tsan_release(key);
  ++counts_.collectives;
  l.home->at_barrier |= l.bit();
  stop_running(l);
  open_barriers();
  wait();
  tsan_acquire(key);
}

/// Releases the lanes of each block whose lanes have all arrived at the barrier or exited.
void executor::open_barriers() {
  for (unsigned first = 0; first < active_warps_; first += warps_per_block_) {
    bool complete = true;
    bool occupied = false;
    for (unsigned i = first; i < first + warps_per_block_; ++i) {
      complete = complete && warps_[i]->at_barrier == warps_[i]->alive;
      occupied = occupied || warps_[i]->at_barrier != 0;
    }
    if (!complete || !occupied) continue;
    for (unsigned i = first; i < first + warps_per_block_; ++i)
      make_ready(*warps_[i], std::exchange(warps_[i]->at_barrier, 0));
  }
}

// ---- choosing the next lane ---------------------------------------------------------------------

lane& executor::next_lane() { return exploring_ ? next_explored() : next_fast(); }

void executor::spin() {
  if (!exploring_) return yield();
  if (scheduler_.releases_group_at_spin()) (void)release_random_group();
  switch_unless_running(scheduler_.at_spin(current()));
}

void executor::yield() {
  lane& l = current();
  steps_ += static_cast<std::uint64_t>(quantum - l.quantum);
  if (step_limit_ != 0 && steps_ > step_limit_) fail(step_limit_message(steps_));
  if (stop_ != nullptr && stop_->load(std::memory_order_relaxed))
    fail("stopped: another block failed");
  l.home->spinning |= l.bit();
  stop_running(l);
  wait();
}

lane& executor::next_fast() {
  for (unsigned idle = 0; idle <= active_warps_;) {
    warp& w = *warps_[turn_];
    if (w.ready != 0) return w.lanes[lowest_bit(w.ready)];
    if (pending_collective* p = largest_group(w)) {
      release_group(w, *p, p->arrived);
      continue;
    }
    if (w.spinning != 0) {
      idle = 0;
      // The lanes may spin for a lane of a block that another worker runs.
      if (active_warps_ == 1) std::this_thread::yield();
    } else {
      ++idle;
    }
    w.ready = std::exchange(w.spinning, 0);
    turn_ = turn_ + 1 == active_warps_ ? 0 : turn_ + 1;
  }
  fail(deadlock_message());
}

pending_collective* executor::largest_group(warp& w) {
  pending_collective* best = nullptr;
  for (unsigned k = 0; k < w.pending_count; ++k) {
    pending_collective& p = w.pending[k];
    if (p.kind != &active_mask_kind) continue;
    if (best == nullptr || popc(p.arrived) > popc(best->arrived)) best = &p;
  }
  return best;
}

lane& executor::next_explored() {
  if (scheduler_.lockstep()) release_groups_of_waiting_warps();
  while (scheduler_.empty())
    if (!release_random_group()) fail(deadlock_message());
  return scheduler_.extract();
}

void executor::release_groups_of_waiting_warps() {
  for (unsigned i = 0; i < active_warps_; ++i) {
    warp& w = *warps_[i];
    if (w.ready != 0) continue;
    if (pending_collective* p = largest_group(w)) release_group(w, *p, p->arrived);
  }
}

/// Returns: whether any lane waited in active_mask().
bool executor::release_random_group() {
  unsigned groups = 0;
  for (unsigned i = 0; i < active_warps_; ++i)
    for (unsigned k = 0; k < warps_[i]->pending_count; ++k)
      groups += warps_[i]->pending[k].kind == &active_mask_kind;
  if (groups == 0) return false;
  unsigned choice = scheduler_.below(groups);
  for (unsigned i = 0; i < active_warps_; ++i) {
    for (unsigned k = 0; k < warps_[i]->pending_count; ++k) {
      pending_collective& p = warps_[i]->pending[k];
      if (p.kind != &active_mask_kind || choice-- != 0) continue;
      const lane_mask lanes = scheduler_.random_lanes();
      release_group(*warps_[i], p, (lanes & p.arrived) != 0 ? lanes : full_warp);
      return true;
    }
  }
  return false;
}

// ---- messages ----------------------------------------------------------------------------------

std::string executor::step_limit_message(std::uint64_t steps) {
  return "step limit: the kernel has not ended after " + std::to_string(steps) + " steps";
}

std::string executor::deadlock_message() const {
  std::string text = "deadlock: no lane can make progress";
  for (unsigned i = 0; i < active_warps_; ++i) {
    const warp& w = *warps_[i];
    const auto append = [&](lane_mask lanes, const std::string& where) {
      if (lanes == 0) return;
      text += "; block " + std::to_string(w.lanes[0].block) + ", threads";
      for_each_lane(lanes,
                    [&](unsigned k) { text += ' ' + std::to_string(w.lanes[k].thread_in_block); });
      text += " wait " + where;
    };
    append(w.at_barrier, "at the block barrier");
    for (unsigned k = 0; k < w.pending_count; ++k)
      append(w.pending[k].arrived, std::string("in ") + w.pending[k].kind->name + " with mask " +
                                       std::to_string(w.pending[k].mask));
  }
  return text;
}

}  // namespace quarry::simt::detail

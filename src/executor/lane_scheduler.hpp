// SPDX-License-Identifier: Apache-2.0
#pragma once
/// lane_scheduler: chooses the next lane in explore mode, following a schedule (simt/schedule.hpp).
///
/// The set holds the runnable lanes except for the running one. For PCT it is a heap ordered by
/// priority.

#include "executor/warp.hpp"

#include <quarry/core/random.hpp>
#include <quarry/simt/schedule.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace quarry::simt::detail {

class lane_scheduler {
 public:
  void begin(const schedule& how) {
    schedule_ = how;
    random_ = splitmix64(how.seed * 0x2545f4914f6cdd1du + 0x9e3779b9u);
    set_.clear();
    steps_ = 0;
    lowest_ = first_priority;
    change_at_.clear();
    next_change_ = 0;
    switch_one_in_ = 1 + random_.below(4);
    large_groups_ = random_.below(2) == 0;
    if (!pct()) return;
    const auto span =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(how.expected_steps, 1, 0xffffffffu));
    for (unsigned i = 0; i < how.change_points; ++i) change_at_.push_back(random_.below(span));
    std::sort(change_at_.begin(), change_at_.end());
  }

  void add_new(lane& l) {
    l.priority = first_priority + 1 + (random_.next() >> 8);
    add(l);
  }
  void add(lane& l) {
    set_.push_back(&l);
    if (pct()) std::push_heap(set_.begin(), set_.end(), lower);
  }
  bool empty() const { return set_.empty(); }

  /// Removes and returns the next lane, after the running lane has stopped.
  lane& extract() {
    if (pct()) {
      std::pop_heap(set_.begin(), set_.end(), lower);
    } else {
      std::swap(set_[draw()], set_.back());
      if (lockstep()) prefer_turn();
    }
    lane* l = set_.back();
    set_.pop_back();
    return *l;
  }

  /// Returns the lane that runs after a scheduling point of `running`; it may be `running` itself.
  lane& at_access(lane& running) {
    ++steps_;
    if (pct()) {
      bool drop = false;
      for (; next_change_ < change_at_.size() && change_at_[next_change_] < steps_; ++next_change_)
        drop = true;
      if (--running.quantum < 0) {
        running.quantum = spin_threshold;
        drop = true;
      }
      if (drop) running.priority = --lowest_;
      return higher_priority(running);
    }
    if (switch_one_in_ > 1 && random_.below(switch_one_in_) != 0) return running;
    if (lockstep()) return add(running), extract();
    const auto n = static_cast<std::uint32_t>(set_.size());
    const std::uint32_t choice = random_.below(n + 1);
    if (choice == n) return running;
    lane* next = set_[choice];
    set_[choice] = &running;
    return *next;
  }

  /// Returns the lane that runs after `running` has called spin().
  lane& at_spin(lane& running) {
    ++steps_;
    if (set_.empty()) return running;
    if (pct()) {
      running.priority = --lowest_;
      return higher_priority(running);
    }
    if (lockstep()) return add(running), extract();
    lane& next = extract();
    add(running);
    return next;
  }

  /// Whether a call of active_mask() returns at once. In half of the runs it never does: the lanes
  /// wait as long as any lane can run, so that large groups form.
  bool releases_group_early() { return !large_groups_ && !lockstep() && random_.below(4) == 0; }
  /// Whether a call of spin() releases a group: the spinning lane may depend on a lane that waits
  /// in active_mask().
  bool releases_group_at_spin() { return !lockstep() && random_.below(8) == 0; }
  /// Returns all lanes, or a random subset.
  lane_mask random_lanes() {
    return lockstep() || random_.below(2) == 0 ? full_warp : static_cast<lane_mask>(random_.next());
  }
  std::uint32_t below(std::uint32_t n) { return random_.below(n); }
  bool lockstep() const { return schedule_.how == strategy::lockstep; }

  std::uint64_t steps() const { return steps_; }
  void count_step() { ++steps_; }
  bool past_limit() const { return steps_ > schedule_.step_limit; }

 private:
  static constexpr std::uint64_t first_priority = std::uint64_t{1} << 40;
  /// PCT treats a lane as spinning after this number of consecutive accesses.
  static constexpr std::int32_t spin_threshold = 256;

  static bool lower(const lane* a, const lane* b) { return a->priority < b->priority; }
  bool pct() const { return schedule_.how == strategy::pct; }
  std::uint32_t draw() { return random_.below(static_cast<std::uint32_t>(set_.size())); }

  /// Lockstep: moves the lane that has the turn of its warp to the back of the set. If the warp of
  /// the lane at the back has no such lane, the lane at the back gets the turn.
  void prefer_turn() {
    lane*& turn = set_.back()->home->turn;
    if (turn == nullptr) turn = set_.back();
    std::swap(*std::find(set_.begin(), set_.end(), turn), set_.back());
  }

  lane& higher_priority(lane& running) {
    if (set_.empty() || set_.front()->priority < running.priority) return running;
    std::pop_heap(set_.begin(), set_.end(), lower);
    lane* next = std::exchange(set_.back(), &running);
    std::push_heap(set_.begin(), set_.end(), lower);
    return *next;
  }

  schedule schedule_{};
  splitmix64 random_;
  std::vector<lane*> set_;
  std::uint64_t steps_ = 0;
  std::uint64_t lowest_ = first_priority;
  std::vector<std::uint32_t> change_at_;
  std::size_t next_change_ = 0;
  std::uint32_t switch_one_in_ = 1;
  bool large_groups_ = false;
};

}  // namespace quarry::simt::detail

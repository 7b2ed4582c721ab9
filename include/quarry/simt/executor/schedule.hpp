// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Who runs next when schedules are explored. A seed decides everything, so that it replays exactly.
///
/// random    at a yield point, with a probability drawn per run, go on with a lane drawn at random.
/// pct       Burckhardt et al. (2010): lanes have random priorities, the highest runs; at a few points
///           drawn from the expected length of the run, the running lane falls to the bottom. It needs
///           few preemptions to find bugs that few preemptions expose. A lane that only spins falls too.
/// lockstep  a warp goes on with one lane until that meets others, waits for company or is gone; warps
///           are drawn at random. Company is whoever has asked for it when all lanes of the warp wait. So
///           lanes of a warp keep together where the code lets them, and a lane that spins stands in the
///           way of its warp: a GPU promises little more to lanes that went different ways.
///
/// The set holds the runnable lanes other than the one that runs.

#include <quarry/simt/executor/warp.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace quarry::simt {

enum class strategy : std::uint8_t { random, pct, lockstep };

/// One schedule of a kernel; equal schedules give equal runs.
struct schedule {
  std::uint64_t seed = 1;
  strategy how = strategy::random;
  unsigned change_points = 3;            // pct: how often the running lane is demoted
  std::uint64_t expected_steps = 1000;   // pct: where those points may lie
  std::uint64_t step_limit = 1'000'000;  // past it the run has failed
};

namespace exec {

/// splitmix64: small, and good enough to draw schedules.
class random_source {
 public:
  explicit random_source(std::uint64_t seed = 0) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

class chooser {
 public:
  void begin(const schedule& how) {
    schedule_ = how;
    random_ = random_source(how.seed * 0x2545f4914f6cdd1du + 0x9e3779b9u);
    set_.clear();
    steps_ = 0;
    bottom_ = first_priority;
    change_at_.clear();
    next_change_ = 0;
    switch_one_in_ = 1 + random_.below(4);
    patient_ = random_.below(2) == 0;
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

  /// The next lane, when the running one has stopped.
  lane& take() {
    if (pct()) {
      std::pop_heap(set_.begin(), set_.end(), lower);
    } else {
      std::swap(set_[draw()], set_.back());
      if (lockstep()) take_turn();
    }
    lane* l = set_.back();
    set_.pop_back();
    return *l;
  }

  /// A yield point of the running lane: who goes on?
  lane& at_point(lane& running) {
    ++steps_;
    if (pct()) {
      bool fall = false;
      for (; next_change_ < change_at_.size() && change_at_[next_change_] < steps_; ++next_change_)
        fall = true;
      if (--running.quantum < 0) {
        running.quantum = patience;
        fall = true;
      }
      if (fall) running.priority = --bottom_;
      return prefer(running);
    }
    if (switch_one_in_ > 1 && random_.below(switch_one_in_) != 0) return running;
    if (lockstep()) return add(running), take();
    const auto n = static_cast<std::uint32_t>(set_.size());
    const std::uint32_t choice = random_.below(n + 1);
    if (choice == n) return running;
    lane* next = set_[choice];
    set_[choice] = &running;
    return *next;
  }

  /// The running lane says that it waits for somebody.
  lane& at_spin(lane& running) {
    ++steps_;
    if (set_.empty()) return running;
    if (pct()) {
      running.priority = --bottom_;
      return prefer(running);
    }
    if (lockstep()) return add(running), take();
    lane& next = take();
    add(running);
    return next;
  }

  /// Requests for company. In half of the runs lanes wait as long as anybody else can run, so that
  /// large groups form; in the others they are let go early. Who goes is everybody or a random part.
  bool ends_wait() { return !patient_ && !lockstep() && random_.below(4) == 0; }
  /// A lane that spins may be waiting for one that waits for company.
  bool ends_wait_of_others() { return !lockstep() && random_.below(8) == 0; }
  lane_mask some_lanes() {
    return lockstep() || random_.below(2) == 0 ? full_warp : static_cast<lane_mask>(random_.next());
  }
  std::uint32_t below(std::uint32_t n) { return random_.below(n); }
  bool lockstep() const { return schedule_.how == strategy::lockstep; }

  std::uint64_t steps() const { return steps_; }
  void count_step() { ++steps_; }
  bool past_limit() const { return steps_ > schedule_.step_limit; }

 private:
  static constexpr std::uint64_t first_priority = std::uint64_t{1} << 40;
  static constexpr std::int32_t patience =
      256;  // atomics in a row before a lane counts as spinning

  static bool lower(const lane* a, const lane* b) { return a->priority < b->priority; }
  bool pct() const { return schedule_.how == strategy::pct; }
  std::uint32_t draw() { return random_.below(static_cast<std::uint32_t>(set_.size())); }

  /// lockstep: the lane at the back of the set makes room for the one that has its warp's turn, or has it now.
  void take_turn() {
    lane*& turn = set_.back()->home->turn;
    if (turn == nullptr) turn = set_.back();
    std::swap(*std::find(set_.begin(), set_.end(), turn), set_.back());
  }

  lane& prefer(lane& running) {
    if (set_.empty() || set_.front()->priority < running.priority) return running;
    std::pop_heap(set_.begin(), set_.end(), lower);
    lane* next = std::exchange(set_.back(), &running);
    std::push_heap(set_.begin(), set_.end(), lower);
    return *next;
  }

  schedule schedule_{};
  random_source random_;
  std::vector<lane*> set_;
  std::uint64_t steps_ = 0;
  std::uint64_t bottom_ = first_priority;
  std::vector<std::uint32_t> change_at_;
  std::size_t next_change_ = 0;
  std::uint32_t switch_one_in_ = 1;
  bool patient_ = false;
};

}  // namespace exec
}  // namespace quarry::simt

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The longer bodies of the executor: a run from beginning to end, meeting, choosing who is next.

#include <quarry/simt/executor/executor.hpp>

#include <algorithm>

namespace quarry::simt::exec {

// ---- a run -------------------------------------------------------------------------------------

inline void executor::run(const job& work, std::uint32_t first_block, std::uint32_t blocks) {
  if (here_ != nullptr) throw kernel_error("a kernel can not be launched from a lane");
  work_ = work;
  failed_ = false;
  failure_.clear();
  exception_ = nullptr;
  {
    unseen guard;
    publish(&started_);
    prepare(first_block, blocks);
    here_ = this;
    current_ = &root_;
    switch_to(pick());
    here_ = nullptr;
    join(&ended_);
  }
  if (!failed_) return;
  for (auto& w : warps_)
    for (lane& l : w->lanes) l.thread.forget();
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
  throw kernel_error(failure_);
}

inline void executor::prepare(std::uint32_t first_block, std::uint32_t blocks) {
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
      l.depth = 0;
      if (!l.thread.made()) l.thread.make(w.memory.bottom(k), k, &lane_main);
      if (chooser_ != nullptr) chooser_->add_new(l);
    }
  }
}

inline QUARRY_UNSEEN void executor::lane_main(fiber::transfer back) {
  fiber::arrive(back);
  unseen::begin();
  executor& e = *here();
  lane& self = *e.current_;
  for (;;) {
    join(&e.started_);
    unseen::end();
    e.run_kernel();
    unseen::begin();
    publish(&e.ended_);
    e.switch_to(e.failed_ ? e.root_ : e.leave(self));
  }
}

inline void executor::run_kernel() noexcept {
  try {
    work_.body(work_.kernel);
    return;
  } catch (...) {
    unseen guard;
    exception_ = std::current_exception();
    failed_ = true;
  }
}

inline void executor::fail(std::string why) {
  failure_.swap(why);
  std::string().swap(why);  // no destructor of this frame runs any more
  failed_ = true;
  switch_to(root_);
  std::terminate();  // an abandoned fiber is never resumed
}

inline lane& executor::leave(lane& l) {
  warp& w = *l.home;
  const lane_mask gone = ~(lane_mask{1} << l.index);
  w.alive &= gone;
  unready(l);
  for (unsigned k = 0; k < w.pending_count;) {  // those who waited for this lane wait no more
    rendezvous& r = w.pending[k];
    if (r.kind != &company && r.arrived == (r.mask & w.alive)) {
      complete(w, r, 0);
    } else {
      ++k;
    }
  }
  open_barriers();
  return --lanes_left_ == 0 ? root_ : pick();
}

// ---- meeting -----------------------------------------------------------------------------------

inline std::uint64_t executor::meet(const collective_kind& kind, lane_mask mask,
                                    std::uint64_t value, std::uint32_t source) {
  lane& l = *current_;
  warp& w = *l.home;
  const lane_mask self = lane_mask{1} << l.index;
  const unsigned first = l.thread_in_block - l.index;
  const unsigned lanes = std::min(warp_size, work_.threads - first);
  if ((mask & self) == 0 || (lanes < warp_size && (mask >> lanes) != 0)) [[unlikely]]
    fail(std::string(kind.name) + ": thread " + std::to_string(thread_number(l)) + " (lane " +
         std::to_string(l.index) + ") passed the mask " + std::to_string(mask) +
         ((mask & self) == 0 ? ", which does not contain it"
                             : ", which names lanes that do not exist"));
  ++counts_.collectives;
  l.value = value;
  l.source = source;
  rendezvous& r = w.find_or_add({&kind, mask, 0, nullptr, 0});
  r.arrived |= self;
  if (r.arrived == (mask & w.alive)) {
    complete(w, r, self);
    l.quantum = quantum;
    if (chooser_ != nullptr) point();
  } else {
    unready(l);
    park();
  }
  return l.result;
}

inline void executor::complete(warp& w, rendezvous& r, lane_mask running) {
  const rendezvous done = r;
  w.remove(r);
  done.kind->finish(w.lanes.data(), done.arrived);
  std::uint64_t depth = 0;
  for_each_lane(done.arrived, [&](unsigned i) { depth = std::max(depth, w.lanes[i].depth); });
  for_each_lane(done.arrived, [&](unsigned i) { w.lanes[i].depth = depth; });
  make_ready(w, done.arrived & ~running);
}

inline lane_mask executor::find_company(const char* file, unsigned line) {
  lane& l = *current_;
  warp& w = *l.home;
  ++counts_.collectives;
  rendezvous& r = w.find_or_add({&company, 0, 0, file, line});
  r.arrived |= lane_mask{1} << l.index;
  unready(l);
  if (chooser_ != nullptr) {
    chooser_->count_step();
    check_limit();
    // Else the lane waits until another one lets it go, or nobody else can run.
    if (chooser_->ends_wait())
      release_company(w, r, chooser_->some_lanes() | lane_mask{1} << l.index);
  }
  park();
  return static_cast<lane_mask>(l.result);
}

inline void executor::release_company(warp& w, rendezvous& r, lane_mask group) {
  group &= r.arrived;
  r.arrived &= ~group;
  for_each_lane(group, [&](unsigned i) { w.lanes[i].result = group; });
  if (r.arrived == 0) w.remove(r);
  make_ready(w, group);
}

inline void executor::block_barrier() {
  lane& l = *current_;
  warp* key = l.home->first_of_block;
  publish(key);
  ++counts_.collectives;
  l.home->at_barrier |= lane_mask{1} << l.index;
  unready(l);
  open_barriers();
  park();
  join(key);
}

inline void executor::open_barriers() {
  for (unsigned first = 0; first < active_warps_; first += warps_per_block_) {
    bool all = true;
    bool some = false;
    for (unsigned i = first; i < first + warps_per_block_; ++i) {
      all = all && warps_[i]->at_barrier == warps_[i]->alive;
      some = some || warps_[i]->at_barrier != 0;
    }
    if (!all || !some) continue;
    for (unsigned i = first; i < first + warps_per_block_; ++i)
      make_ready(*warps_[i], std::exchange(warps_[i]->at_barrier, 0));
  }
}

// ---- who is next -------------------------------------------------------------------------------

inline void executor::give_way() {
  lane& l = *current_;
  steps_ += static_cast<std::uint64_t>(quantum - l.quantum);
  if (step_limit_ != 0 && steps_ > step_limit_) fail(step_limit_text(steps_));
  if (stop_ != nullptr && stop_->load(std::memory_order_relaxed))
    fail("stopped: another block failed");
  l.home->spinning |= lane_mask{1} << l.index;
  unready(l);
  park();
}

inline lane& executor::pick_fast() {
  for (unsigned idle = 0; idle <= active_warps_;) {
    warp& w = *warps_[turn_];
    if (w.ready != 0) return w.lanes[lowest_bit(w.ready)];
    if (rendezvous* r = largest_company(w)) {
      release_company(w, *r, r->arrived);
      continue;
    }
    if (w.spinning != 0) {
      idle = 0;
      if (active_warps_ == 1)
        std::this_thread::yield();  // whom they wait for may be on another worker
    } else {
      ++idle;
    }
    w.ready = std::exchange(w.spinning, 0);
    turn_ = turn_ + 1 == active_warps_ ? 0 : turn_ + 1;
  }
  fail(stuck_text());
}

inline rendezvous* executor::largest_company(warp& w) {
  rendezvous* best = nullptr;
  for (unsigned k = 0; k < w.pending_count; ++k) {
    rendezvous& r = w.pending[k];
    if (r.kind == &company && (best == nullptr || popc(r.arrived) > popc(best->arrived))) best = &r;
  }
  return best;
}

inline lane& executor::pick_explored() {
  if (chooser_->lockstep()) release_waiting_warps();
  while (chooser_->empty())
    if (!release_some_company()) fail(stuck_text());
  return chooser_->take();
}

inline void executor::release_waiting_warps() {
  for (unsigned i = 0; i < active_warps_; ++i) {
    warp& w = *warps_[i];
    if (w.ready != 0) continue;
    if (rendezvous* r = largest_company(w)) release_company(w, *r, r->arrived);
  }
}

inline bool executor::release_some_company() {
  unsigned groups = 0;
  for (unsigned i = 0; i < active_warps_; ++i)
    for (unsigned k = 0; k < warps_[i]->pending_count; ++k)
      groups += warps_[i]->pending[k].kind == &company;
  if (groups == 0) return false;
  unsigned choice = chooser_->below(groups);
  for (unsigned i = 0; i < active_warps_; ++i) {
    for (unsigned k = 0; k < warps_[i]->pending_count; ++k) {
      rendezvous& r = warps_[i]->pending[k];
      if (r.kind != &company || choice-- != 0) continue;
      const lane_mask some = chooser_->some_lanes();
      release_company(*warps_[i], r, (some & r.arrived) != 0 ? some : full_warp);
      return true;
    }
  }
  return false;
}

inline std::string executor::stuck_text() const {
  std::string text = "deadlock: no lane can go on";
  for (unsigned i = 0; i < active_warps_; ++i) {
    const warp& w = *warps_[i];
    const auto say = [&](lane_mask lanes, const std::string& where) {
      if (lanes == 0) return;
      text += "; block " + std::to_string(w.lanes[0].block) + ", threads";
      for_each_lane(lanes,
                    [&](unsigned k) { text += ' ' + std::to_string(w.lanes[k].thread_in_block); });
      text += " wait " + where;
    };
    say(w.at_barrier, "at the block barrier");
    for (unsigned k = 0; k < w.pending_count; ++k)
      say(w.pending[k].arrived, std::string("in ") + w.pending[k].kind->name + " with mask " +
                                    std::to_string(w.pending[k].mask));
  }
  return text;
}

}  // namespace quarry::simt::exec

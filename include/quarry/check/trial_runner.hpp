// SPDX-License-Identifier: Apache-2.0
#pragma once
/// trial_runner: runs trials of one allocator, each in a sandbox in its initial state, and checks
/// them.
///
///   reset → warm-up (allocators that overwrite) → script under the explorer → guards, invariants
///         → free the live blocks, drain → invariants, statistics → refill (one script in n)
///
/// The refill detects leaks. After all blocks are freed, the pool must serve as many blocks of the
/// smallest size as in its initial state, at distinct addresses. All device code runs under the
/// explorer with a step limit, so that a trial always ends; the phases outside the script run as a
/// grid of one lane. Layers that retain freed blocks (`drain`) release them before the refill:
/// blocks that are allocated around retained ones may fragment the pool, and blocks of the system
/// heap would leak when the sandbox is reset.

#include <quarry/check/oracle.hpp>
#include <quarry/check/sandbox.hpp>
#include <quarry/check/script_kernel.hpp>
#include <quarry/check/trace.hpp>
#include <quarry/check/trial.hpp>
#include <quarry/core/random.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quarry {

template <allocator A>
class trial_runner {
 public:
  /// `paint_hidden`: see shadow_heap.
  explicit trial_runner(bool paint_hidden = false) : paint_hidden_(paint_hidden) {}

  simt::outcome run(const trial& t, trace* out = nullptr);

  /// Effects: later scripts call `tracer` after each access to shared memory.
  void trace_steps(std::function<void(const simt::step&)> tracer) { tracer_ = std::move(tracer); }

  // The state of the last trial.
  bool failed_in_script() const { return failed_in_script_; }  // not in the phases around it
  const allocation_script& script() const { return script_; }
  const shadow_heap& shadow() const { return shadow_; }
  memory_range pool() const { return current_->sandbox.pool(); }
  const carve& metadata() const { return current_->sandbox.metadata(); }

 private:
  struct sized_sandbox {
    explicit sized_sandbox(std::uint64_t pool_bytes) : sandbox(pool_bytes) {}
    allocator_sandbox<A> sandbox;
    std::optional<std::uint64_t> initial_capacity;  // in blocks of the smallest size
  };
  static constexpr std::uint64_t refill_limit = 2048;  // blocks; larger pools are refilled in part

  void make_sandboxes(std::uint64_t pool_bytes);
  void prepare(const trial& t, trace* out);
  simt::outcome run_script(const trial& t, trace* out);
  simt::outcome run_sequentially(const trial& t, const script_kernel<A>& kernel);
  std::string check_after_script(const trial& t, trace* out);
  std::string check_integrity(const char* when) const;
  std::string check_statistics() const;
  std::string refill(const trial& t);
  template <class Work>
  std::string run_one_lane(const trial& t, const char* what, const Work& work);
  std::uint64_t fill();
  std::string check_refill();

  std::vector<sized_sandbox> sandboxes_;
  std::uint64_t largest_pool_ = 0;
  sized_sandbox* current_ = nullptr;  // of the last trial
  allocation_script script_;
  shadow_heap shadow_;
  simt::explorer explorer_;
  std::function<void(const simt::step&)> tracer_;
  bool paint_hidden_;
  bool failed_in_script_ = false;
  std::vector<std::uint32_t> order_;
  std::vector<const std::byte*> refilled_;
};

// ---- a trial -----------------------------------------------------------------------------------

template <allocator A>
template <class Work>
std::string trial_runner<A>::run_one_lane(const trial& t, const char* what, const Work& work) {
  const auto result =
      explorer_.run({.seed = t.seed, .step_limit = t.schedule.step_limit}, {1, 1}, work);
  return result.ok() ? std::string{} : what + (": " + result.failure);
}

template <allocator A>
void trial_runner<A>::make_sandboxes(std::uint64_t pool_bytes) {
  if (pool_bytes < trial::min_pool_bytes)
    throw error("an explored pool has at least " + std::to_string(trial::min_pool_bytes) +
                " bytes, not " + std::to_string(pool_bytes));
  // Four sizes, one of which is not a multiple of a power of two above 8.
  const std::array<std::uint64_t, 4> sizes = {pool_bytes, pool_bytes / 2, pool_bytes / 4 * 3 + 8,
                                              pool_bytes / 4};
  sandboxes_.clear();
  sandboxes_.reserve(sizes.size());
  for (const std::uint64_t size : sizes)
    sandboxes_.emplace_back(std::max<std::uint64_t>(size, A::can.min_pool));
  largest_pool_ = pool_bytes;
}

template <allocator A>
simt::outcome trial_runner<A>::run(const trial& t, trace* out) {
  const simt::host_section hidden;  // race detectors still observe the lanes
  prepare(t, out);
  failed_in_script_ = false;
  simt::outcome result;
  if constexpr (A::can.overwrites) {
    result.failure = run_one_lane(t, "warm-up", [&] {
      for (std::uint64_t left = script_.warm_up(); left != 0;) {
        const std::uint64_t n = std::min<std::uint64_t>(left, 64);
        (void)current_->sandbox.heap().malloc(n);
        left -= n;
      }
    });
    if (!result.ok()) return result;
  }
  result = run_script(t, out);
  failed_in_script_ = !result.ok();
  if (result.ok()) result.failure = check_after_script(t, out);
  if (out) out->write(result.ok() ? "no failure" : "failure: " + result.failure);
  return result;
}

template <allocator A>
void trial_runner<A>::prepare(const trial& t, trace* out) {
  if (sandboxes_.empty() || t.pool_bytes != largest_pool_) make_sandboxes(t.pool_bytes);
  splitmix64 draw(t.seed);
  current_ = &sandboxes_[draw.below(static_cast<std::uint32_t>(sandboxes_.size()))];
  script_.generate(t.seed, t.bounds, pool().size, A::can);
  script_.keep(t.keep);
  const grid g = script_.shape();
  shadow_.begin(pool(), A::can, t.seed, script_.size(), std::uint64_t{g.blocks} * g.threads,
                paint_hidden_);
  current_->sandbox.reset(1 + draw.below(3));
  if (!out) return;
  out->begin(metadata(), pool());
  out->write(script_.to_text());
}

template <allocator A>
simt::outcome trial_runner<A>::run_script(const trial& t, trace* out) {
  if (out || tracer_ || A::can.overwrites)
    explorer_.trace([this, out](const simt::step& s) {
      if (out) out->step(s);
      if (tracer_) tracer_(s);
      if (A::can.overwrites) shadow_.accessed(s.thread, s.where);
    });
  const script_kernel<A> kernel{current_->sandbox.heap(), &script_, &shadow_, out};
  auto result = t.sequential() ? run_sequentially(t, kernel)
                               : explorer_.run(t.schedule, script_.shape(), kernel);
  explorer_.trace({});
  return result;
}

// Runs each lane to its end before the next starts, in a random order that the seed determines.
template <allocator A>
simt::outcome trial_runner<A>::run_sequentially(const trial& t, const script_kernel<A>& kernel) {
  const grid g = script_.shape();
  order_.resize(std::size_t{g.blocks} * g.threads);
  std::iota(order_.begin(), order_.end(), 0u);
  splitmix64 draw(t.schedule.seed);
  for (auto left = static_cast<std::uint32_t>(order_.size()); left > 1; --left)
    std::swap(order_[left - 1], order_[draw.below(left)]);
  simt::outcome all;
  for (const std::uint32_t lane : order_) {
    if (script_.first_of(lane) == script_.last_of(lane)) continue;
    const auto one = explorer_.run(t.schedule, g, [&] {
      if (simt::global_thread() == lane) kernel();
    });
    all.steps += one.steps;
    all.failure = one.failure;
    if (!all.ok()) break;
  }
  return all;
}

// The checks after the script. No lane is running.
template <allocator A>
std::string trial_runner<A>::check_after_script(const trial& t, trace* out) {
  if (auto text = check_integrity("after the script"); !text.empty()) return text;
  const bool thorough = t.refill_one_in != 0 && splitmix64(~t.seed).next() % t.refill_one_in == 0;
  if constexpr (A::can.frees_one) {
    if (out) out->write("after the script: the live blocks are freed");
    const script_kernel<A> kernel{current_->sandbox.heap(), &script_, &shadow_, nullptr};
    auto text = run_one_lane(t, "freeing the live blocks", [&] {
      while (shadow_.live_count() != 0) kernel.release(shadow_.any_live(), 0);
    });
    if constexpr (requires(const A a) { a.drain(); })
      if (text.empty()) text = run_one_lane(t, "drain", [&] { current_->sandbox.heap().drain(); });
    if (text.empty()) text = check_integrity("after all blocks were freed");
    if (!text.empty() || !thorough) return text;
    text = check_statistics();
    if (!text.empty() || !A::can.reuses || !A::can.owns_pool) return text;
    return refill(t);
  } else {
    return {};
  }
}

template <allocator A>
std::string trial_runner<A>::check_integrity(const char* when) const {
  if constexpr (requires(const A a) { a.inspect(0, 1); }) current_->sandbox.heap().inspect(0, 1);
  std::string text = current_->sandbox.check_guards();
  if (text.empty()) text = current_->sandbox.heap().check_invariants();
  return text.empty() ? text : when + (": " + text);
}

template <allocator A>
std::string trial_runner<A>::check_statistics() const {
  const heap_statistics s = current_->sandbox.heap().statistics();
  if (s.live_blocks.value_or(0) != 0)
    return "all blocks were freed, but the statistics count " + std::to_string(*s.live_blocks) +
           " live blocks";
  if (s.live_bytes.value_or(0) != 0)
    return "all blocks were freed, but the statistics count " + std::to_string(*s.live_bytes) +
           " live bytes";
  return {};
}

// ---- leaks ------------------------------------------------------------------------------------

template <allocator A>
std::string trial_runner<A>::refill(const trial& t) {
  std::uint64_t served = 0;
  if (auto text = run_one_lane(t, "refill", [&] { served = fill(); }); !text.empty()) return text;
  if (auto text = check_refill(); !text.empty()) return text;
  if (!current_->initial_capacity) {
    current_->sandbox.reset();
    std::uint64_t initial = 0;
    if (auto text = run_one_lane(t, "first fill", [&] { initial = fill(); }); !text.empty())
      return text;
    current_->initial_capacity = initial;
  }
  if (served >= *current_->initial_capacity) return {};
  return "leak: the pool served " + std::to_string(*current_->initial_capacity) +
         " blocks of the smallest size in its initial state, and " + std::to_string(served) +
         " after all blocks were freed";
}

template <allocator A>
std::uint64_t trial_runner<A>::fill() {
  refilled_.clear();
  while (refilled_.size() < refill_limit) {
    const void* const p = current_->sandbox.heap().malloc(1);
    if (p == nullptr) break;
    refilled_.push_back(static_cast<const std::byte*>(p));
  }
  return refilled_.size();
}

template <allocator A>
std::string trial_runner<A>::check_refill() {
  std::sort(refilled_.begin(), refilled_.end());
  const auto twice = std::adjacent_find(refilled_.begin(), refilled_.end());
  if (twice != refilled_.end())
    return "the refilled pool returned " + address_text(pool(), *twice) + " twice";
  return {};
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#include "check/script_kernel.hpp"

#include <quarry/check/text.hpp>
#include <quarry/check/trial_runner.hpp>
#include <quarry/core/random.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace quarry {

void trial_runner::trace_steps(std::function<void(const simt::step&)> tracer) {
  tracer_ = std::move(tracer);
}

// ---- a trial -----------------------------------------------------------------------------------

template <class Work>
std::string trial_runner::run_one_lane(const trial& t, const char* what, const Work& work) {
  const auto result =
      explorer_.run({.seed = t.seed, .step_limit = t.schedule.step_limit}, {1, 1}, work);
  return result.ok() ? std::string{} : what + (": " + result.failure);
}

void trial_runner::make_sandboxes(std::uint64_t pool_bytes) {
  if (pool_bytes < trial::min_pool_bytes)
    throw error("an explored pool has at least " + std::to_string(trial::min_pool_bytes) +
                " bytes, not " + std::to_string(pool_bytes));
  // Four sizes, one of which is not a multiple of a power of two above 8.
  const std::array<std::uint64_t, 4> sizes = {pool_bytes, pool_bytes / 2, pool_bytes / 4 * 3 + 8,
                                              pool_bytes / 4};
  sandboxes_.clear();
  sandboxes_.reserve(sizes.size());
  for (const std::uint64_t size : sizes)
    sandboxes_.push_back({subject_.make(std::max(size, subject_.can.min_pool)), {}});
  largest_pool_ = pool_bytes;
}

simt::outcome trial_runner::run(const trial& t, trace* out) {
  const simt::host_section hidden;  // race detectors still observe the lanes
  prepare(t, out);
  failed_in_script_ = false;
  simt::outcome result;
  if (subject_.can.overwrites) {
    result.failure = run_one_lane(t, "warm-up", [&] {
      for (std::uint64_t left = script_.warm_up(); left != 0;) {
        const std::uint64_t n = std::min<std::uint64_t>(left, 64);
        (void)current_->memory->malloc(n);
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

void trial_runner::prepare(const trial& t, trace* out) {
  if (sandboxes_.empty() || t.pool_bytes != largest_pool_) make_sandboxes(t.pool_bytes);
  splitmix64 draw(t.seed);
  current_ = &sandboxes_[draw.below(static_cast<std::uint32_t>(sandboxes_.size()))];
  script_.generate(t.seed, t.bounds, pool().size, subject_.can);
  script_.keep(t.keep);
  const grid g = script_.shape();
  shadow_.begin(pool(), subject_.can, t.seed, script_.size(), std::uint64_t{g.blocks} * g.threads,
                paint_hidden_);
  current_->memory->reset(1 + draw.below(3));
  if (!out) return;
  out->begin(metadata(), pool());
  out->write(script_.to_text());
}

simt::outcome trial_runner::run_script(const trial& t, trace* out) {
  if (out || tracer_ || subject_.can.overwrites)
    explorer_.trace([this, out](const simt::step& s) {
      if (out) out->step(s);
      if (tracer_) tracer_(s);
      if (subject_.can.overwrites) shadow_.accessed(s.thread, s.where);
    });
  const script_kernel kernel{current_->memory.get(), &script_, &shadow_, out};
  auto result = t.sequential() ? run_sequentially(t, kernel)
                               : explorer_.run(t.schedule, script_.shape(), kernel);
  explorer_.trace({});
  return result;
}

// Runs each lane to its end before the next starts, in a random order that the seed determines.
simt::outcome trial_runner::run_sequentially(const trial& t, const script_kernel& kernel) {
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
std::string trial_runner::check_after_script(const trial& t, trace* out) {
  if (auto text = check_integrity("after the script"); !text.empty()) return text;
  const bool thorough = t.refill_one_in != 0 && splitmix64(~t.seed).next() % t.refill_one_in == 0;
  if (!subject_.can.frees_one) return {};
  if (out) out->write("after the script: the live blocks are freed");
  const script_kernel kernel{current_->memory.get(), &script_, &shadow_, nullptr};
  auto text = run_one_lane(t, "freeing the live blocks", [&] {
    while (shadow_.live_count() != 0) kernel.release(shadow_.any_live(), 0);
    current_->memory->drain();
  });
  if (text.empty()) text = check_integrity("after all blocks were freed");
  if (!text.empty() || !thorough) return text;
  text = check_statistics();
  if (!text.empty() || !subject_.can.reuses || !subject_.can.owns_pool) return text;
  return refill(t);
}

std::string trial_runner::check_integrity(const char* when) const {
  current_->memory->inspect();
  std::string text = current_->memory->check_guards();
  if (text.empty()) text = current_->memory->check_invariants();
  return text.empty() ? text : when + (": " + text);
}

std::string trial_runner::check_statistics() const {
  const heap_statistics s = current_->memory->statistics();
  if (s.live_blocks.value_or(0) != 0)
    return "all blocks were freed, but the statistics count " + std::to_string(*s.live_blocks) +
           " live blocks";
  if (s.live_bytes.value_or(0) != 0)
    return "all blocks were freed, but the statistics count " + std::to_string(*s.live_bytes) +
           " live bytes";
  return {};
}

// ---- leaks ------------------------------------------------------------------------------------

std::string trial_runner::refill(const trial& t) {
  std::uint64_t served = 0;
  if (auto text = run_one_lane(t, "refill", [&] { served = fill(); }); !text.empty()) return text;
  if (auto text = check_refill(); !text.empty()) return text;
  if (!current_->initial_capacity) {
    current_->memory->reset();
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

std::uint64_t trial_runner::fill() {
  refilled_.clear();
  while (refilled_.size() < refill_limit) {
    const void* const p = current_->memory->malloc(1);
    if (p == nullptr) break;
    refilled_.push_back(static_cast<const std::byte*>(p));
  }
  return refilled_.size();
}

std::string trial_runner::check_refill() {
  std::sort(refilled_.begin(), refilled_.end());
  const auto twice = std::adjacent_find(refilled_.begin(), refilled_.end());
  if (twice != refilled_.end())
    return "the refilled pool returned " + address_text(pool(), *twice) + " twice";
  return {};
}

}  // namespace quarry

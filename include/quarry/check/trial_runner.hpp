// SPDX-License-Identifier: Apache-2.0
#pragma once
/// trial_runner: carries out trials of one allocator, each on a pool made new, and judges them.
///
///   renew → warm up (allocators that overwrite) → the script, explored → guards, invariants
///         → free what is left, drain → invariants, statistics → refill (one script in some)
///
/// The refill is the test for lost memory: with everything freed, the pool must serve as many smallest
/// blocks as it served when new, each in a place of its own. Everything a lane does runs under the
/// explorer with a step limit, the quiet phases as a grid of one lane, so that nothing can hang.
/// Layers that keep freed blocks (`drain`) give them back before that: what is handed out around kept
/// blocks may lie badly, and over the system's heap they would be lost when the pool is made new.

#include <quarry/core/random.hpp>
#include <quarry/check/oracle.hpp>
#include <quarry/check/sandbox.hpp>
#include <quarry/check/script_kernel.hpp>
#include <quarry/check/story.hpp>
#include <quarry/check/trial.hpp>

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

  simt::outcome run(const trial& t, story* told = nullptr);

  /// Every shared access of later scripts is shown to `watcher`.
  void watch(std::function<void(const simt::step&)> watcher) { watcher_ = std::move(watcher); }

  // Of the last trial:
  bool failed_in_script() const { return failed_in_script_; }  // not before, not after
  const allocation_script& script() const { return script_; }
  const shadow_heap& shadow() const { return shadow_; }
  memory_range pool() const { return here_->site.pool(); }
  const carve& metadata() const { return here_->site.metadata(); }

 private:
  struct place {
    explicit place(std::uint64_t pool_bytes) : site(pool_bytes) {}
    allocator_sandbox<A> site;
    std::optional<std::uint64_t> blocks_when_new;
  };
  static constexpr std::uint64_t refill_limit = 2048;  // blocks; larger pools are refilled in part

  void make_places(std::uint64_t pool_bytes);
  void prepare(const trial& t, story* told);
  simt::outcome run_script(const trial& t, story* told);
  simt::outcome run_in_turn(const trial& t, const script_kernel<A>& kernel);
  std::string settle(const trial& t, story* told);
  std::string check_structure(const char* when) const;
  std::string check_statistics() const;
  std::string refill(const trial& t);
  template <class Work>
  std::string quietly(const trial& t, const char* what, const Work& work);
  std::uint64_t fill();
  std::string check_refill();

  std::vector<place> places_;
  std::uint64_t largest_pool_ = 0;
  place* here_ = nullptr;  // of the last trial
  allocation_script script_;
  shadow_heap shadow_;
  simt::explorer explorer_;
  std::function<void(const simt::step&)> watcher_;
  bool paint_hidden_;
  bool failed_in_script_ = false;
  std::vector<std::uint32_t> turns_;
  std::vector<const std::byte*> refilled_;
};

// ---- a trial -----------------------------------------------------------------------------------

template <allocator A>
template <class Work>
std::string trial_runner<A>::quietly(const trial& t, const char* what, const Work& work) {
  const auto result =
      explorer_.run({.seed = t.seed, .step_limit = t.schedule.step_limit}, {1, 1}, work);
  return result.ok() ? std::string{} : what + (": " + result.failure);
}

template <allocator A>
void trial_runner<A>::make_places(std::uint64_t pool_bytes) {
  // Four sizes, one of them no multiple of anything.
  const std::array<std::uint64_t, 4> sizes = {pool_bytes, pool_bytes / 2, pool_bytes / 4 * 3 + 8,
                                              pool_bytes / 4};
  places_.clear();
  places_.reserve(sizes.size());
  for (const std::uint64_t size : sizes)
    places_.emplace_back(std::max<std::uint64_t>(size, A::can.min_pool));
  largest_pool_ = pool_bytes;
}

template <allocator A>
simt::outcome trial_runner<A>::run(const trial& t, story* told) {
  const simt::host_section hidden;  // lanes are seen all the same
  prepare(t, told);
  failed_in_script_ = false;
  simt::outcome result;
  if constexpr (A::can.overwrites) {
    result.failure = quietly(t, "warm-up", [&] {
      for (std::uint64_t left = script_.warm_up(); left != 0;) {
        const std::uint64_t n = std::min<std::uint64_t>(left, 64);
        (void)here_->site.heap().malloc(n);
        left -= n;
      }
    });
    if (!result.ok()) return result;
  }
  result = run_script(t, told);
  failed_in_script_ = !result.ok();
  if (result.ok()) result.failure = settle(t, told);
  if (told) told->say(result.ok() ? "no failure" : "failure: " + result.failure);
  return result;
}

template <allocator A>
void trial_runner<A>::prepare(const trial& t, story* told) {
  if (t.pool_bytes != largest_pool_) make_places(t.pool_bytes);
  splitmix64 draw(t.seed);
  here_ = &places_[draw.below(static_cast<std::uint32_t>(places_.size()))];
  script_.generate(t.seed, t.bounds, pool().size, A::can);
  script_.keep(t.keep);
  const grid g = script_.shape();
  shadow_.begin(pool(), A::can, t.seed, script_.size(), std::uint64_t{g.blocks} * g.threads,
                paint_hidden_);
  here_->site.renew(1 + draw.below(3));
  if (!told) return;
  told->begin(metadata(), pool());
  told->say(script_.to_text());
}

template <allocator A>
simt::outcome trial_runner<A>::run_script(const trial& t, story* told) {
  if (told || watcher_ || A::can.overwrites)
    explorer_.trace([this, told](const simt::step& s) {
      if (told) told->step(s);
      if (watcher_) watcher_(s);
      if (A::can.overwrites) shadow_.accessed(s.thread, s.where);
    });
  const script_kernel<A> kernel{here_->site.heap(), &script_, &shadow_, told};
  const auto result =
      t.sequential() ? run_in_turn(t, kernel) : explorer_.run(t.schedule, script_.shape(), kernel);
  explorer_.trace({});
  return result;
}

// Each lane to its end before the next begins, in an order drawn from the seed.
template <allocator A>
simt::outcome trial_runner<A>::run_in_turn(const trial& t, const script_kernel<A>& kernel) {
  const grid g = script_.shape();
  turns_.resize(std::size_t{g.blocks} * g.threads);
  std::iota(turns_.begin(), turns_.end(), 0u);
  splitmix64 draw(t.schedule.seed);
  for (auto left = static_cast<std::uint32_t>(turns_.size()); left > 1; --left)
    std::swap(turns_[left - 1], turns_[draw.below(left)]);
  simt::outcome all;
  for (const std::uint32_t lane : turns_) {
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

// Everything after the script, when no lane runs.
template <allocator A>
std::string trial_runner<A>::settle(const trial& t, story* told) {
  if (auto text = check_structure("after the script"); !text.empty()) return text;
  const bool thorough =
      t.refill_one_in != 0 && splitmix64(~t.seed).next() % t.refill_one_in == 0;
  if constexpr (A::can.frees_one) {
    if (told) told->say("after the script: what is left is freed");
    const script_kernel<A> kernel{here_->site.heap(), &script_, &shadow_, nullptr};
    auto text = quietly(t, "freeing what is left", [&] {
      while (shadow_.live_count() != 0) kernel.release(shadow_.any_live(), 0);
    });
    if constexpr (requires(const A a) { a.drain(); })
      if (text.empty()) text = quietly(t, "drain", [&] { here_->site.heap().drain(); });
    if (text.empty()) text = check_structure("after everything was freed");
    if (!text.empty() || !thorough) return text;
    text = check_statistics();
    if (!text.empty() || !A::can.reuses || !A::can.owns_pool) return text;
    return refill(t);
  } else {
    return {};
  }
}

template <allocator A>
std::string trial_runner<A>::check_structure(const char* when) const {
  if constexpr (requires(const A a) { a.inspect(0, 1); }) here_->site.heap().inspect(0, 1);
  std::string text = here_->site.check_guards();
  if (text.empty()) text = here_->site.heap().check_invariants();
  return text.empty() ? text : when + (": " + text);
}

template <allocator A>
std::string trial_runner<A>::check_statistics() const {
  const heap_statistics s = here_->site.heap().statistics();
  if (s.live_blocks.value_or(0) != 0)
    return "everything was freed, but the statistics count " + std::to_string(*s.live_blocks) +
           " live blocks";
  if (s.live_bytes.value_or(0) != 0)
    return "everything was freed, but the statistics count " + std::to_string(*s.live_bytes) +
           " live bytes";
  return {};
}

// ---- lost memory -------------------------------------------------------------------------------

template <allocator A>
std::string trial_runner<A>::refill(const trial& t) {
  std::uint64_t served = 0;
  if (auto text = quietly(t, "refill", [&] { served = fill(); }); !text.empty()) return text;
  if (auto text = check_refill(); !text.empty()) return text;
  if (!here_->blocks_when_new) {
    here_->site.renew();
    std::uint64_t when_new = 0;
    if (auto text = quietly(t, "first filling", [&] { when_new = fill(); }); !text.empty())
      return text;
    here_->blocks_when_new = when_new;
  }
  if (served >= *here_->blocks_when_new) return {};
  return "lost memory: the pool served " + std::to_string(*here_->blocks_when_new) +
         " smallest blocks when new, and " + std::to_string(served) + " after everything was freed";
}

template <allocator A>
std::uint64_t trial_runner<A>::fill() {
  refilled_.clear();
  while (refilled_.size() < refill_limit) {
    const void* const p = here_->site.heap().malloc(1);
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
    return "the refilled pool handed out " + place_in(pool(), *twice) + " twice";
  return {};
}

}  // namespace quarry

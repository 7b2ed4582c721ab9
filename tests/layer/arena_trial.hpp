// SPDX-License-Identifier: Apache-2.0
#pragma once
/// arena_trial: lanes use warp arenas independently under explored schedules, with an oracle.
///
/// Each lane of a small grid draws a script from the seed: start (optional), then allocs and
/// tidy_ups, and then one of three: end; keep, and a second kernel that resumes, allocates and
/// ends; or neither, which leaves the arena open. Some lanes call alloc without start. A block must
/// keep the bytes of its lane until that lane calls tidy_up or end, and overlap no other block. If
/// all lanes have called end, no arena may be open and the upstream must have no live block;
/// otherwise an arena must be open.

#include <quarry/check/oracle.hpp>
#include <quarry/check/sandbox.hpp>
#include <quarry/layer/warp_arena.hpp>
#include <quarry/simt/explore.hpp>
#include <quarry/simt/random.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace quarry::testing {

struct arena_bounds {
  std::uint32_t lanes = 8;
  std::uint32_t blocks = 2;
  std::uint32_t operations = 6;
  std::uint64_t pool_bytes = 2048;
};

template <class Arena>
class arena_trial {
 public:
  explicit arena_trial(const arena_bounds& b) : bounds_(b), sandbox_(b.pool_bytes) {}

  /// Returns the failure under this seed, or "".
  std::string run(std::uint64_t seed) {
    splitmix64 draw(seed);
    const std::uint32_t blocks = 1 + draw.below(bounds_.blocks);
    const grid shape{blocks, 1 + draw.below(bounds_.lanes), 1, 0};
    const std::uint64_t lanes = std::uint64_t{blocks} * shape.threads;
    const simt::host_section hidden;
    sandbox_.reset();
    shadow_.begin(sandbox_.pool(), Arena::can, seed, static_cast<std::uint32_t>(lanes) * max_allocs,
                  lanes, false);
    kept_.assign(lanes, nullptr);
    first_of_second_.assign(lanes, 0);
    fate_.assign(lanes, fate::never_started);
    const simt::schedule how{.seed = seed,
                             .how = seed % 2 == 0 ? simt::strategy::random : simt::strategy::pct,
                             .change_points = 1 + draw.below(4),
                             .expected_steps = lanes * bounds_.operations * 8,
                             .step_limit = 400'000};
    std::string problem = explorer_.run(how, shape, first_kernel{this, seed}).failure;
    if (problem.empty()) problem = explorer_.run(how, shape, second_kernel{this, seed}).failure;
    if (problem.empty()) problem = check_end_state();
    return problem;
  }
  std::uint64_t served = 0, failed = 0;

 private:
  static constexpr std::uint32_t max_allocs = 32;
  enum class fate : std::uint8_t { never_started, ended, not_ended };
  using warp = typename Arena::warp;

  struct lane_script {
    arena_trial& t;
    simt::lane_random draw;
    std::uint32_t lane;
    warp handle;
    std::uint32_t first = 0;  // this lane owns the blocks [first, next)
    std::uint32_t next = 0;

    void alloc() {
      if (next == max_allocs) return;
      const std::uint32_t kind = draw.below(16);
      std::uint64_t n = 1 + draw.below(64);
      if (kind == 0) n = draw.below(static_cast<std::uint32_t>(t.bounds_.pool_bytes));
      if (kind == 1) n = 0;
      if (kind == 2) n = ~std::uint64_t{0} - draw.below(64);
      const std::uint32_t number = lane * max_allocs + next;
      t.shadow_.malloc_called(lane, n);
      const bool has_arena = static_cast<bool>(handle);
      void* const p = handle.alloc(n);
      if (!has_arena && p != nullptr) simt::fail("alloc without an arena returned memory");
      if (!t.shadow_.malloc_returned(number, lane, p, n)) simt::fail(t.shadow_.violation());
      ++next;
    }
    /// Checks and gives up all blocks of this lane.
    void release_blocks() {
      for (; first < next; ++first) {
        const std::uint32_t number = lane * max_allocs + first;
        const shadow_heap::block b = t.shadow_.remove(number);
        if (b.begin != nullptr && !t.shadow_.still_painted(b, number, lane))
          simt::fail(t.shadow_.violation());
      }
    }
    void run_operations(std::uint32_t operations) {
      for (std::uint32_t i = 0; i < operations; ++i) {
        if (draw.below(4) != 0) {
          alloc();
        } else {
          release_blocks();
          handle.tidy_up();
        }
      }
    }
    void end() {
      release_blocks();
      handle.end();
      if (handle.alloc(16) != nullptr) simt::fail("alloc after end returned memory");
    }
  };

  struct first_kernel {
    arena_trial* t;
    std::uint64_t seed;
    void operator()() const {
      const auto lane = static_cast<std::uint32_t>(simt::global_thread());
      lane_script script{*t, simt::lane_random(seed * 4096 + lane), lane, {}};
      for (std::uint32_t arenas = script.draw.below(3); arenas != 0; --arenas) {
        script.handle = Arena(t->sandbox_.heap()).start();
        script.run_operations(1 + script.draw.below(t->bounds_.operations));
        script.end();
      }
      if (script.draw.below(8) != 0) script.handle = Arena(t->sandbox_.heap()).start();
      const bool started = static_cast<bool>(script.handle);
      script.run_operations(script.draw.below(t->bounds_.operations + 1));
      const std::uint32_t ending = script.draw.below(8);
      if (ending < 5) {
        script.end();
      } else if (ending < 7) {
        // The blocks stay live, and the second kernel checks them.
        void* const kept = script.handle.keep();
        const simt::host_section bookkeeping;
        t->kept_[lane] = kept;
      }
      const simt::host_section bookkeeping;
      t->first_of_second_[lane] = script.next;
      if (started) t->fate_[lane] = ending < 5 ? fate::ended : fate::not_ended;
    }
  };
  struct second_kernel {
    arena_trial* t;
    std::uint64_t seed;
    void operator()() const {
      const auto lane = static_cast<std::uint32_t>(simt::global_thread());
      void* kept = nullptr;
      {
        const simt::host_section bookkeeping;
        kept = t->kept_[lane];
      }
      if (kept == nullptr) return;
      lane_script script{
          *t,   simt::lane_random(seed * 8192 + lane),
          lane, Arena(t->sandbox_.heap()).resume(kept),
          0,    t->first_of_second_[lane]};  // the lane owns its blocks of the first kernel
      script.run_operations(script.draw.below(t->bounds_.operations / 2 + 1));
      script.end();
      const simt::host_section bookkeeping;
      t->fate_[lane] = fate::ended;
    }
  };

  std::string check_end_state() {
    served += shadow_.served;
    failed += shadow_.failed;
    if (std::string problem = sandbox_.check_guards(); !problem.empty()) return problem;
    if (std::string problem = sandbox_.heap().check_invariants(); !problem.empty()) return problem;
    const heap_statistics s = sandbox_.heap().statistics();
    bool open = false;
    for (const fate f : fate_) open |= f == fate::not_ended;
    if (!open && arenas_open(s) != 0)
      return "all lanes have called end, but " + std::to_string(arenas_open(s)) +
             " arenas are open";
    if (open && arenas_open(s) == 0) return "a lane has not called end, but no arena is open";
    if (!open && s.live_blocks.value_or(0) != 0)
      return "all lanes have called end, but the upstream has " + std::to_string(*s.live_blocks) +
             " live blocks";
    if (open && s.live_blocks.value_or(1) == 0)
      return "a lane has not called end, but its memory was freed";
    return {};
  }

  arena_bounds bounds_;
  allocator_sandbox<Arena> sandbox_;
  shadow_heap shadow_;
  simt::explorer explorer_;
  std::vector<void*> kept_;
  std::vector<std::uint32_t> first_of_second_;
  std::vector<fate> fate_;
};

}  // namespace quarry::testing

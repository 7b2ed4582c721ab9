// SPDX-License-Identifier: Apache-2.0
#pragma once
/// arena_trial: lanes use warp arenas at their own pace, under explored schedules, beside an oracle.
///
/// Each lane of a small grid draws a script from the seed: perhaps start, then allocs and tidy_ups, then end;
/// or keep, and a second kernel that resumes, allocs and ends; or nothing, which leaves the arena open. Some
/// lanes never start and ask all the same. A block must stay as its lane painted it until that lane says
/// tidy_up or end, and overlap no other. When all lanes ended, no arena may be open and the upstream must have
/// everything back; when one did not, an arena must be open.

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
  explicit arena_trial(const arena_bounds& b) : bounds_(b), site_(b.pool_bytes) {}

  /// What went wrong under this seed; empty: nothing.
  std::string run(std::uint64_t seed) {
    splitmix64 draw(seed);
    const std::uint32_t blocks = 1 + draw.below(bounds_.blocks);
    const grid shape{blocks, 1 + draw.below(bounds_.lanes), 1, 0};
    const std::uint64_t lanes = std::uint64_t{blocks} * shape.threads;
    const simt::host_section hidden;
    site_.renew();
    shadow_.begin(site_.pool(), Arena::can, seed, static_cast<std::uint32_t>(lanes) * most_allocs,
                  lanes, false);
    kept_.assign(lanes, nullptr);
    first_of_second_.assign(lanes, 0);
    fate_.assign(lanes, fate::stranger);
    const simt::schedule how{.seed = seed,
                             .how = seed % 2 == 0 ? simt::strategy::random : simt::strategy::pct,
                             .change_points = 1 + draw.below(4),
                             .expected_steps = lanes * bounds_.operations * 8,
                             .step_limit = 400'000};
    std::string problem = explorer_.run(how, shape, first_kernel{this, seed}).failure;
    if (problem.empty()) problem = explorer_.run(how, shape, second_kernel{this, seed}).failure;
    if (problem.empty()) problem = judge();
    return problem;
  }
  std::uint64_t served = 0, refused = 0;

 private:
  static constexpr std::uint32_t most_allocs = 32;
  enum class fate : std::uint8_t { stranger, ended, forgot };
  using warp = typename Arena::warp;

  struct lane_play {
    arena_trial& t;
    simt::lane_random draw;
    std::uint32_t lane;
    warp handle;
    std::uint32_t first = 0;  // blocks [first, next) are this lane's
    std::uint32_t next = 0;

    void alloc() {
      if (next == most_allocs) return;
      const std::uint32_t mood = draw.below(16);
      std::uint64_t n = 1 + draw.below(64);
      if (mood == 0) n = draw.below(static_cast<std::uint32_t>(t.bounds_.pool_bytes));
      if (mood == 1) n = 0;
      if (mood == 2) n = ~std::uint64_t{0} - draw.below(64);
      const std::uint32_t number = lane * most_allocs + next;
      t.shadow_.asked(lane, n);
      const bool stranger = !handle;
      void* const p = handle.alloc(n);
      if (stranger && p != nullptr) simt::fail("a lane without an arena got memory");
      if (!t.shadow_.received(number, lane, p, n)) simt::fail(t.shadow_.complaint());
      ++next;
    }
    /// Checks what this lane holds; it is no longer the lane's.
    void let_go() {
      for (; first < next; ++first) {
        const std::uint32_t number = lane * most_allocs + first;
        const shadow_heap::block b = t.shadow_.take(number);
        if (b.begin != nullptr && !t.shadow_.still_painted(b, number, lane))
          simt::fail(t.shadow_.complaint());
      }
    }
    void wander(std::uint32_t operations) {
      for (std::uint32_t i = 0; i < operations; ++i) {
        if (draw.below(4) != 0) {
          alloc();
        } else {
          let_go();
          handle.tidy_up();
        }
      }
    }
    void end() {
      let_go();
      handle.end();
      if (handle.alloc(16) != nullptr) simt::fail("a lane got memory after its end");
    }
  };

  struct first_kernel {
    arena_trial* t;
    std::uint64_t seed;
    void operator()() const {
      const auto lane = static_cast<std::uint32_t>(simt::global_thread());
      lane_play play{*t, simt::lane_random(seed * 4096 + lane), lane, {}};
      for (std::uint32_t visits = play.draw.below(3); visits != 0; --visits) {
        play.handle = Arena(t->site_.heap()).start();
        play.wander(1 + play.draw.below(t->bounds_.operations));
        play.end();
      }
      if (play.draw.below(8) != 0) play.handle = Arena(t->site_.heap()).start();
      const bool started = static_cast<bool>(play.handle);
      play.wander(play.draw.below(t->bounds_.operations + 1));
      const std::uint32_t way = play.draw.below(8);
      if (way < 5) {
        play.end();
      } else if (way < 7) {
        // The blocks stay, and the second kernel looks at them.
        void* const kept = play.handle.keep();
        const simt::host_section bookkeeping;
        t->kept_[lane] = kept;
      }
      const simt::host_section bookkeeping;
      t->first_of_second_[lane] = play.next;
      if (started) t->fate_[lane] = way < 5 ? fate::ended : fate::forgot;
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
      lane_play play{*t,   simt::lane_random(seed * 8192 + lane),
                     lane, Arena(t->site_.heap()).resume(kept),
                     0,    t->first_of_second_[lane]};  // what the first kernel left is this lane's
      play.wander(play.draw.below(t->bounds_.operations / 2 + 1));
      play.end();
      const simt::host_section bookkeeping;
      t->fate_[lane] = fate::ended;
    }
  };

  std::string judge() {
    served += shadow_.served;
    refused += shadow_.refused;
    if (std::string problem = site_.check_guards(); !problem.empty()) return problem;
    if (std::string problem = site_.heap().check_invariants(); !problem.empty()) return problem;
    const heap_statistics s = site_.heap().statistics();
    bool forgotten = false;
    for (const fate f : fate_) forgotten |= f == fate::forgot;
    if (!forgotten && arenas_open(s) != 0)
      return "all lanes ended, but " + std::to_string(arenas_open(s)) + " arenas are open";
    if (forgotten && arenas_open(s) == 0) return "a lane never ended, but no arena is open";
    if (!forgotten && s.live_blocks.value_or(0) != 0)
      return "all lanes ended, but the upstream has " + std::to_string(*s.live_blocks) +
             " live blocks";
    if (forgotten && s.live_blocks.value_or(1) == 0)
      return "a lane never ended, but its memory is gone";
    return {};
  }

  arena_bounds bounds_;
  allocator_sandbox<Arena> site_;
  shadow_heap shadow_;
  simt::explorer explorer_;
  std::vector<void*> kept_;
  std::vector<std::uint32_t> first_of_second_;
  std::vector<fate> fate_;
};

}  // namespace quarry::testing

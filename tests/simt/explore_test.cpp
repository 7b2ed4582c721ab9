// SPDX-License-Identifier: Apache-2.0
/// The explorer: runs are reproducible, bugs of small depth are found, and failures are reported.

#include <quarry/simt/explore.hpp>
#include <quarry/simt/simt.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace quarry::simt::explore_test {
namespace {

using ::testing::IsSubstring;

/// An increment that loses updates: a load, then a store.
struct lossy_increment {
  std::uint32_t* word;
  QUARRY_DEVICE void operator()() const {
    atomic_ref<std::uint32_t> a(*word);
    const std::uint32_t v = a.load(relaxed);
    a.store(v + 1, relaxed);
  }
};

unsigned lost_updates(strategy how, unsigned schedules) {
  explorer e;
  unsigned lost = 0;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    std::uint32_t word = 0;
    const outcome result =
        e.run({.seed = seed, .how = how, .expected_steps = 6}, {1, 3}, lossy_increment{&word});
    EXPECT_TRUE(result.ok()) << result.failure;
    lost += word != 3;
  }
  return lost;
}

TEST(Explorer, FindsALostUpdate) {
  EXPECT_GT(lost_updates(strategy::random, 1000), 300u);
  EXPECT_GT(lost_updates(strategy::pct, 1000), 300u);
}

TEST(Explorer, AlsoRunsLanesOneAfterTheOther) {
  EXPECT_LT(lost_updates(strategy::random, 1000), 1000u);
  EXPECT_LT(lost_updates(strategy::pct, 1000), 1000u);
}

/// All steps of a run as numbers.
std::vector<std::uint64_t> history(const schedule& how) {
  static std::uint32_t words[2];
  words[0] = words[1] = 0;
  std::vector<std::uint64_t> seen;
  explorer e;
  e.trace([&](const step& s) { seen.insert(seen.end(), {s.number, s.thread, s.before, s.after}); });
  e.run(how, {2, 33}, [] {
    const lane_mask group = active_mask();
    atomic_ref<std::uint32_t>(words[0]).fetch_add(popc(group), relaxed);
    for (unsigned i = 0; i < 3; ++i)
      atomic_ref<std::uint32_t>(words[1]).fetch_xor(lane_id() << i, relaxed);
  });
  return seen;
}

TEST(Explorer, EqualSeedsGiveEqualRunsAndOthersDiffer) {
  for (strategy how : {strategy::random, strategy::pct, strategy::lockstep}) {
    const auto first = history({.seed = 7, .how = how});
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(first, history({.seed = 7, .how = how}));
    EXPECT_NE(first, history({.seed = 8, .how = how}));
  }
}

TEST(Explorer, ReturnsActiveMasksOfDifferentSizes) {
  explorer e;
  std::vector<unsigned> sizes(33);
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    e.run({.seed = seed}, {1, 32}, [&] {
      const lane_mask group = active_mask();
      host_section guard;
      ++sizes[popc(group)];
    });
  EXPECT_GT(sizes[1], 0u);
  EXPECT_GT(sizes[32], 0u);
  unsigned different = 0;
  for (unsigned n : sizes) different += n != 0;
  EXPECT_GT(different, 16u);
}

TEST(Explorer, ReportsDeadlocksStepLimitsAndFailuresOfOracles) {
  explorer e;
  std::uint32_t word = 0;
  const auto call_different_collectives = [] {
    if (lane_id() == 0) {
      ballot(3, true);
    } else {
      sync_warp(3);
    }
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "deadlock",
                      e.run({}, {1, 2}, call_different_collectives).failure);
  for (strategy how : {strategy::random, strategy::pct})
    EXPECT_PRED_FORMAT2(IsSubstring, "step limit",
                        e.run({.how = how, .step_limit = 1000}, {1, 2}, [&word] {
                           while (atomic_ref<std::uint32_t>(word).load(relaxed) == 0) {
                           }
                         }).failure);
  EXPECT_EQ(e.run({}, {1, 2}, [] { fail("the oracle says no"); }).failure, "the oracle says no");
  EXPECT_TRUE(e.run({}, {1, 2}, [] {}).ok());
}

TEST(Explorer, SpinLocksTerminateUnderBothStrategies) {
  explorer e;
  for (strategy how : {strategy::random, strategy::pct}) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      std::uint32_t lock = 0;
      std::uint32_t count = 0;
      const outcome result = e.run({.seed = seed, .how = how, .expected_steps = 100}, {2, 8}, [&] {
        for (;;) {
          std::uint32_t open = 0;
          if (atomic_ref<std::uint32_t>(lock).compare_exchange(open, 1, acquire)) break;
        }
        {
          host_section guard;
          ++count;
        }
        atomic_ref<std::uint32_t>(lock).store(0, release);
      });
      ASSERT_TRUE(result.ok()) << result.failure;
      ASSERT_EQ(count, 16u);
    }
  }
}

/// Both lanes spin. Lane 1 waits for a store that lane 0 executes after its loop.
struct store_after_the_loop {
  std::uint32_t* words;
  QUARRY_DEVICE void operator()() const {
    const atomic_ref<std::uint32_t> mine(words[lane_id()]);
    while (mine.load(acquire) == 0) spin();
    if (lane_id() == 0) atomic_ref<std::uint32_t>(words[1]).store(1, release);
  }
};
/// The same with the store inside the loop, which both lanes leave by a vote.
struct store_inside_the_loop {
  std::uint32_t* words;
  QUARRY_DEVICE void operator()() const {
    for (bool done = false;; spin()) {
      done = done || atomic_ref<std::uint32_t>(words[lane_id()]).load(acquire) != 0;
      if (done && lane_id() == 0) atomic_ref<std::uint32_t>(words[1]).store(1, release);
      if (all(3, done)) return;
    }
  }
};

template <class Kernel>
unsigned runs_without_end(strategy how) {
  explorer e;
  unsigned endless = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::uint32_t words[2] = {1, 0};
    const outcome result =
        e.run({.seed = seed, .how = how, .step_limit = 2000}, {1, 2}, Kernel{words});
    endless += result.failure.find("step limit") != std::string::npos;
  }
  return endless;
}

TEST(Explorer, DetectsInLockstepALaneThatWaitsForItsOwnWarp) {
  EXPECT_EQ(runs_without_end<store_after_the_loop>(strategy::random), 0u);
  EXPECT_EQ(runs_without_end<store_after_the_loop>(strategy::pct), 0u);
  EXPECT_GT(runs_without_end<store_after_the_loop>(strategy::lockstep), 50u);
  EXPECT_EQ(runs_without_end<store_inside_the_loop>(strategy::lockstep), 0u);
}

TEST(Explorer, KeepsTheLanesOfAWarpConvergedInLockstep) {
  explorer e;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::uint32_t word = 0;
    const outcome result = e.run({.seed = seed, .how = strategy::lockstep}, {2, 40}, [&word] {
      atomic_ref<std::uint32_t>(word).add(1, relaxed);
      const unsigned alive = warp_id() == 0 ? 32 : 8;
      if (popc(active_mask()) != alive) fail("a lane was left behind");
    });
    ASSERT_TRUE(result.ok()) << result.failure;
  }
}

TEST(Explorer, KeepsTheBarriersOfBlocksSeparate) {
  explorer e;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<std::uint32_t> arrived(3);
    const outcome result = e.run({.seed = seed}, {3, 40}, [&] {
      atomic_ref<std::uint32_t>(arrived[block_id()]).add(1, relaxed);
      sync_block();
      if (atomic_ref<std::uint32_t>(arrived[block_id()]).load(relaxed) != 40)
        fail("the barrier opened early");
    });
    ASSERT_TRUE(result.ok()) << result.failure;
  }
}

}  // namespace
}  // namespace quarry::simt::explore_test

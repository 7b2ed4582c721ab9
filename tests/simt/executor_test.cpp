// SPDX-License-Identifier: Apache-2.0
/// The executor of the CPU backend: its error reports, its counters, and its state after a failure.

#include <quarry/simt/explore.hpp>
#include <quarry/simt/simt.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace quarry::simt::executor_test {
namespace {

using ::testing::IsSubstring;

template <class Kernel>
std::string failure_of(const grid& g, const Kernel& kernel) {
  try {
    launch<cpu>(g, kernel);
  } catch (const kernel_error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Executor, ReportsALaneOutsideItsOwnMask) {
  const auto text = failure_of({1, 32}, [] { ballot(0xfffffffeu, true); });
  EXPECT_PRED_FORMAT2(IsSubstring, "ballot", text);
  EXPECT_PRED_FORMAT2(IsSubstring, "does not contain it", text);
}

TEST(Executor, ReportsAMaskWithLanesThatDoNotExist) {
  EXPECT_PRED_FORMAT2(IsSubstring, "do not exist",
                      failure_of({1, 8}, [] { sync_warp(full_warp); }));
}

TEST(Executor, ReportsADeadlockAndWhereLanesWait) {
  const auto text = failure_of({1, 32}, [] {
    if (lane_id() < 16) {
      ballot(full_warp, true);
    } else {
      reduce_add(full_warp, 1u);
    }
  });
  EXPECT_PRED_FORMAT2(IsSubstring, "deadlock", text);
  EXPECT_PRED_FORMAT2(IsSubstring, "in ballot", text);
  EXPECT_PRED_FORMAT2(IsSubstring, "in reduce_add", text);
}

TEST(Executor, ReportsABarrierThatNotAllLanesReach) {
  std::uint32_t dummy = 0;
  const auto text = failure_of({1, 64}, [&dummy] {
    if (thread_id() == 5) {
      ballot(lane_mask{0x60}, true);  // thread 6 never calls it
    } else {
      sync_block();
    }
    (void)dummy;
  });
  EXPECT_PRED_FORMAT2(IsSubstring, "at the block barrier", text);
}

TEST(Executor, ReportsAnEndlessLoopThroughTheStepLimit) {
  std::uint32_t word = 0;
  const auto text =
      failure_of({.blocks = 1, .threads = 32, .workers = 1, .step_limit = 100'000}, [&word] {
        while (atomic_ref<std::uint32_t>(word).load(relaxed) == 0) spin();
      });
  EXPECT_PRED_FORMAT2(IsSubstring, "step limit", text);
}

TEST(Executor, RethrowsTheExceptionOfAKernel) {
  EXPECT_THROW(launch<cpu>({4, 32},
                           [] {
                             if (global_thread() == 77) throw std::out_of_range("x");
                           }),
               std::out_of_range);
}

TEST(Executor, StopsTheOtherBlocksWhenOneFails) {
  std::uint32_t never = 0;
  const auto text = failure_of({.blocks = 2, .threads = 32, .workers = 2}, [&never] {
    if (block_id() == 0) ballot(2, lane_id() == 0);  // lane 0 is not in the mask
    while (atomic_ref<std::uint32_t>(never).load(relaxed) == 0) spin();
  });
  EXPECT_NE(text, "no error");
}

TEST(Executor, RejectsALaunchFromALane) {
  EXPECT_PRED_FORMAT2(IsSubstring, "a lane can not launch a kernel", failure_of({1, 1}, [] {
                        launch<cpu>({1, 1}, [] {});
                      }));
}

TEST(Executor, RejectsEmptyAndOversizedGrids) {
  EXPECT_THROW(launch<cpu>({0, 32}, [] {}), error);
  EXPECT_THROW(launch<cpu>({1, 0}, [] {}), error);
  EXPECT_THROW(launch<cpu>({1, 1025}, [] {}), error);
}

TEST(Executor, RunsTheNextKernelAfterAFailure) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_NE(failure_of({2, 64},
                         [] {
                           if (lane_id() == 3) ballot(1, true);
                         }),
              "no error");
    std::uint32_t sum = 0;
    launch<cpu>({8, 64}, [&sum] { atomic_ref<std::uint32_t>(sum).add(1, relaxed); });
    EXPECT_EQ(sum, 512u);
  }
}

TEST(Executor, CollectivesCompleteWithoutLanesThatHaveExited) {
  std::uint32_t votes = 0;
  launch<cpu>({1, 32}, [&votes] {
    if (lane_id() % 2 == 1) return;
    const lane_mask b = ballot(full_warp, true);
    if (lane_id() == 0) votes = b;
  });
  EXPECT_EQ(votes, 0x55555555u);
}

TEST(Executor, ReturnsTheWholeWarpAsActiveMaskInFastMode) {
  std::uint32_t smallest = 32;
  launch<cpu>({8, 128}, [&smallest] {
    const std::uint32_t n = popc(active_mask());
    atomic_ref<std::uint32_t>(smallest).fetch_min(n, relaxed);
  });
  EXPECT_EQ(smallest, 32u);
}

TEST(Executor, ServesLaunchesFromSeveralHostThreads) {
  std::vector<std::uint32_t> sums(4);
  std::vector<std::thread> hosts;
  for (std::uint32_t& sum : sums)
    hosts.emplace_back([&sum] {
      for (int i = 0; i < 20; ++i)
        launch<cpu>({4, 64}, [&sum] { atomic_ref<std::uint32_t>(sum).add(1, relaxed); });
    });
  for (std::thread& t : hosts) t.join();
  for (std::uint32_t sum : sums) EXPECT_EQ(sum, 20u * 256);
}

TEST(Executor, CountsOperationsOfLanes) {
  const cost_counts before = counts_of_this_thread();
  std::uint32_t word = 0;
  launch<cpu>({.blocks = 1, .threads = 32, .workers = 1}, [&word] {
    atomic_ref<std::uint32_t> a(word);
    a.load(relaxed);
    a.store(1, relaxed);
    a.fetch_add(1, relaxed);
    a.add(1, relaxed);
    ballot(full_warp, true);
  });
  const cost_counts after = counts_of_this_thread();
  EXPECT_EQ(after.loads - before.loads, 32u);
  EXPECT_EQ(after.stores - before.stores, 32u);
  EXPECT_EQ(after.atomics - before.atomics, 64u);
  EXPECT_EQ(after.collectives - before.collectives, 32u);
}

TEST(Executor, MeasuresTheLongestChainOfRoundTripsThroughOtherLanes) {
  std::uint64_t chain = 0;
  std::uint32_t word = 0;
  launch<cpu>({.blocks = 1, .threads = 32, .workers = 1}, [&] {
    atomic_ref<std::uint32_t> a(word);
    for (unsigned i = 0; i < lane_id(); ++i) a.load(relaxed);  // lane 31: 31 round trips
    a.store(1, relaxed);                                       // no lane waits for a store
    shuffle(full_warp, 1u, 0);
    a.fetch_add(1, relaxed);
    if (lane_id() == 0) chain = round_trips();
  });
  EXPECT_EQ(chain, 32u);
}

}  // namespace
}  // namespace quarry::simt::executor_test

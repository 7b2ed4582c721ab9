// SPDX-License-Identifier: Apache-2.0
/// scatter under explored schedules, in pools that a few operations fill; and step counts that only
/// the executor provides.

#include <quarry/check/explore_allocator.hpp>
#include <quarry/pool/scatter/scatter.hpp>
#include <quarry/simt/random.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace quarry::scatter_explore_test {
namespace {

using simt::global_thread;

template <class Allocator>
void explore(std::uint64_t pool, const script_bounds& bounds) {
  constexpr std::uint64_t effort = QUARRY_TSAN ? 100 : QUARRY_ASAN ? 1'000 : 10'000;
  allocator_explorer<Allocator> explorer(
      {.bounds = bounds, .pool_bytes = pool, .schedules = effort});
  const exploration found = explorer.run();
  EXPECT_FALSE(found.first) << found.first->text << "\n"
                            << found.first->small_token << "\n"
                            << found.first->small_script;
  EXPECT_GT(found.served, found.schedules);
}

TEST(ScatterExplored, WithPagesOfFourChunks) { explore<scatter<64>>(1024, {.lanes = 8}); }
TEST(ScatterExplored, WithPagesOfEightChunks) { explore<scatter<128>>(1024, {.lanes = 8}); }
TEST(ScatterExplored, WithTwoPages) { explore<scatter<64>>(128, {.lanes = 5, .operations = 6}); }
TEST(ScatterExplored, WithSeveralGroupsOfPages) { explore<scatter<64>>(8192, {.lanes = 8}); }
TEST(ScatterExplored, WithAFullWarp) { explore<scatter<128>>(2048, {.lanes = 32}); }
TEST(ScatterExplored, WithChunksInSeveralWords) { explore<scatter<1024>>(4096, {.lanes = 16}); }

/// Each lane holds up to three blocks, none larger than a page. The pool always has empty pages, so
/// no allocation may fail under any schedule.
struct modest_lane {
  scatter<128> heap;
  std::uint64_t seed;
  void operator()() const {
    simt::lane_random draw(seed * 64 + global_thread());
    void* held[3] = {};
    for (int i = 0; i < 8; ++i) {
      void*& mine = held[draw.below(3)];
      heap.free(mine);
      mine = heap.malloc(1 + draw.below(draw.below(3) == 0 ? 128 : 64));
      if (mine == nullptr) simt::fail("an allocation failed while pages are empty");
    }
    for (void* p : held) heap.free(p);
  }
};

TEST(ScatterExplored, ServesAllRequestsWhileThereAreEmptyPages) {
  constexpr std::uint64_t effort = QUARRY_TSAN ? 100 : QUARRY_ASAN ? 500 : 5'000;
  for (const std::uint64_t pages :
       {48u, 96u}) {  // 16 lanes with three blocks each use at most 48 pages
    const allocator_sandbox<scatter<128>> sandbox((pages + 1) * 128);
    simt::explorer explorer;
    for (std::uint64_t seed = 1; seed <= effort; ++seed) {
      sandbox.reset();
      const simt::outcome end = explorer.run({.seed = seed, .step_limit = 200'000}, {2, 8},
                                             modest_lane{sandbox.heap(), seed});
      ASSERT_TRUE(end.ok()) << "seed " << seed << ": " << end.failure;
      ASSERT_EQ(sandbox.heap().check_invariants(), "") << "seed " << seed;
    }
  }
}

/// Lanes allocate until an allocation fails; the lanes of a warp leave the loop one by one.
TEST(ScatterExplored, CountsOnlyAllocatedChunksWhenWarpsFillThePool) {
  constexpr std::uint64_t effort = QUARRY_TSAN ? 10 : QUARRY_ASAN ? 50 : 300;
  const allocator_sandbox<scatter<256>> sandbox(100 * 256);
  simt::explorer explorer;
  for (std::uint64_t seed = 1; seed <= effort; ++seed) {
    sandbox.reset();
    std::uint64_t served = 0;
    const simt::schedule how = {.seed = seed,
                                .how = static_cast<simt::strategy>(seed % 3),
                                .expected_steps = 20'000,
                                .step_limit = 4'000'000};
    const simt::outcome end = explorer.run(how, {2, 64}, [&] {
      simt::lane_random draw(seed * 128 + global_thread());
      while (sandbox.heap().malloc(seed % 2 == 0 ? 16 : 1 + draw.below(128)) != nullptr)
        simt::atomic_ref<std::uint64_t>(served).add(1, simt::relaxed);
    });
    ASSERT_TRUE(end.ok()) << "seed " << seed << ": " << end.failure;
    ASSERT_EQ(sandbox.heap().check_invariants(), "") << "seed " << seed;
    ASSERT_EQ(sandbox.heap().statistics().live_blocks, served) << "seed " << seed;
  }
}

/// The pool is full. All lanes try to allocate, then lanes with an even number free some blocks.
struct allocate_then_free {
  scatter<64> heap;
  std::uint64_t seed;
  void* const* blocks;
  std::uint64_t count;
  void operator()() const {
    simt::lane_random draw(seed * 64 + global_thread());
    constexpr std::size_t sizes[] = {16, 32, 64, 128, 192};
    for (std::uint32_t i = draw.below(4); i != 0; --i) heap.free(heap.malloc(sizes[draw.below(5)]));
    if (global_thread() % 2 != 0) return;
    for (std::uint64_t i = global_thread() / 2; i < count; i += simt::grid_threads() / 2)
      heap.free(blocks[i]);
  }
};

TEST(ScatterExplored, ServesBlocksFreedDuringFailedAllocations) {
  constexpr std::uint64_t effort = QUARRY_TSAN ? 200 : QUARRY_ASAN ? 2'000 : 20'000;
  const allocator_sandbox<scatter<64>> sandbox(70 * 64);  // three groups of pages
  simt::explorer explorer;
  for (std::uint64_t seed = 1; seed <= effort; ++seed) {
    sandbox.reset();
    simt::lane_random draw(seed);
    const std::size_t size = std::size_t{16} << draw.below(3);
    std::vector<void*> blocks(70 * 64 / size);
    for (void*& p : blocks) ASSERT_NE(p = sandbox.heap().malloc(size), nullptr);
    const std::uint32_t freed = 1 + draw.below(3);
    for (std::uint32_t i = 0; i < freed; ++i)
      std::swap(blocks[i], blocks[draw.below(static_cast<std::uint32_t>(blocks.size()))]);
    const simt::schedule how = {.seed = seed,
                                .how = seed % 2 == 0 ? simt::strategy::random : simt::strategy::pct,
                                .change_points = 3,
                                .expected_steps = 200,
                                .step_limit = 200'000};
    const simt::outcome end =
        explorer.run(how, {1 + draw.below(2), 2 + 2 * draw.below(3)},
                     allocate_then_free{sandbox.heap(), seed, blocks.data(), freed});
    ASSERT_TRUE(end.ok()) << "seed " << seed << ": " << end.failure;
    for (std::uint32_t i = 0; i < freed; ++i)
      ASSERT_NE(sandbox.heap().malloc(size), nullptr)
          << "seed " << seed << ", " << size << " bytes";
    ASSERT_EQ(sandbox.heap().malloc(size), nullptr) << "seed " << seed;
  }
}

/// A malloc that must fail; the test counts its steps.
struct expect_failed_malloc {
  scatter<64> heap;
  std::size_t size;
  void operator()() const {
    if (heap.malloc(size) != nullptr) simt::fail("served");
  }
};
struct fill_pool {
  scatter<64> heap;
  void operator()() const {
    while (heap.malloc(64) != nullptr) {
    }
  }
};

TEST(ScatterExplored, FailsWithoutASearchAfterAFailedSearch) {
  const allocator_sandbox<scatter<64>> sandbox(8192 * 64);  // 256 groups of pages
  simt::explorer explorer;
  sandbox.reset();
  ASSERT_TRUE(explorer.run({.step_limit = 10'000'000}, {1, 1}, fill_pool{sandbox.heap()}).ok());
  for (const std::size_t size : {16u, 64u, 65u, 200u}) {
    const simt::outcome first =
        explorer.run({}, {1, 1}, expect_failed_malloc{sandbox.heap(), size});
    const simt::outcome second =
        explorer.run({}, {1, 1}, expect_failed_malloc{sandbox.heap(), size});
    EXPECT_EQ(first.failure + second.failure, "");
    EXPECT_LT(second.steps, 100u) << size;
  }
  const simt::outcome new_size = explorer.run({}, {1, 1}, expect_failed_malloc{sandbox.heap(), 20});
  EXPECT_GT(new_size.steps, 256u) << "a search loads the full bits of each group";
}

}  // namespace
}  // namespace quarry::scatter_explore_test

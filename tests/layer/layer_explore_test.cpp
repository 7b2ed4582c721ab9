// SPDX-License-Identifier: Apache-2.0
/// The layers under explored schedules. FIFOs, superblocks and lists are so small that a few
/// operations fill them.
#include "check/effort.hpp"
#include "layer/arena_trial.hpp"
#include "layer/instrumented.hpp"
#include "layer/word_pool.hpp"

#include <quarry/layer/arena_per_warp.hpp>
#include <quarry/layer/buffer.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/layer/xmalloc.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace layer_explore_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

using word_32 = word_pool<32>;
using word_64 = word_pool<64>;

/// Explores grids of 3, 8 and 32 lanes.
template <allocator A>
void explore(std::uint64_t pool, std::uint64_t refill_one_in = 4) {
  for (const std::uint32_t lanes : {3u, 8u, 32u})
    expect_survival<A>({.bounds = {.lanes = lanes},
                        .pool_bytes = pool,
                        .schedules = scaled(lanes == 32 ? 1500 : 6000),
                        .step_limit = 400'000,
                        .refill_one_in = refill_one_in});
}

TEST(ExploreLayers, WarpAggregatedOverCircular) { explore<warp_aggregated<cfmalloc>>(2048); }
TEST(ExploreLayers, WarpAggregatedForSmallRequestsOnly) {
  explore<warp_aggregated<cfmalloc, 64>>(2048);
}
TEST(ExploreLayers, WarpAggregatedOverWordPool) { explore<warp_aggregated<word_32>>(2048); }
TEST(ExploreLayers, WarpAggregatedOverBump) { explore<warp_aggregated<bump>>(2048); }
TEST(ExploreLayers, WarpAggregatedOverWarpBump) { explore<warp_aggregated<warp_bump>>(2048); }
TEST(ExploreLayers, BufferOverCircular) { explore<buffer<cfmalloc, 2, 512>>(2048); }
TEST(ExploreLayers, BufferOverWordPool) { explore<buffer<word_32, 2, 512>>(2048); }
TEST(ExploreLayers, BufferWithFullFifos) { explore<buffer<word_32, 1, 512, 2>>(2048); }
TEST(ExploreLayers, BufferOverSystemHeap) { explore<buffer<system_heap, 2, 512>>(4096); }
TEST(ExploreLayers, AggregatedBufferOverWordPool) {
  explore<warp_aggregated<buffer<word_64, 2, 512>>>(4096);
}
TEST(ExploreLayers, AggregatedBufferWithFullFifos) {
  explore<warp_aggregated<buffer<word_64, 2, 256, 2>>>(4096);
}
// A circular pool may fragment, so the number of blocks after a refill is not checked.
TEST(ExploreLayers, AggregatedBufferOverCircular) {
  explore<warp_aggregated<buffer<cfmalloc, 2, 512>>>(2048, 0);
}
TEST(ExploreLayers, Xmalloc) { explore<xmalloc>(4096); }
TEST(ExploreLayers, ArenaPerWarp) { explore<arena_per_warp<cfmalloc, 256, 16, 2>>(2048); }
TEST(ExploreLayers, ArenaPerWarpWithoutSuperblocks) {
  explore<arena_per_warp<cfmalloc, 0, 16, 2>>(2048);
}

template <class Arena>
void explore_arena(std::uint64_t pool) {
  for (const std::uint32_t lanes : {2u, 5u, 16u}) {
    arena_trial<Arena> trial({.lanes = lanes, .pool_bytes = pool});
    const std::uint64_t trials = scaled(lanes == 16 ? 1500 : 6000);
    for (std::uint64_t seed = 1; seed <= trials; ++seed)
      ASSERT_EQ(trial.run(seed), "") << "seed " << seed << ", " << lanes << " lanes";
    EXPECT_GT(trial.served, trials);
  }
}

TEST(ExploreArena, OverCircular) { explore_arena<warp_arena<cfmalloc, 256, 16, 2>>(2048); }
TEST(ExploreArena, OverWordPool) { explore_arena<warp_arena<word_32, 256, 16, 2>>(2048); }
TEST(ExploreArena, InAnExhaustedPool) { explore_arena<warp_arena<cfmalloc, 256, 16, 2>>(1024); }
TEST(ExploreArena, WithoutSuperblocks) { explore_arena<warp_arena<cfmalloc, 0, 16, 2>>(2048); }
TEST(ExploreArena, WithLargeBlocks) { explore_arena<warp_arena<cfmalloc, 320, 64, 8>>(4096); }
TEST(ExploreArena, OverBuffer) {
  explore_arena<warp_arena<buffer<cfmalloc, 2, 512>, 256, 16, 2>>(4096);
}

using shared_arenas = arena_per_warp<instrumented<cfmalloc>, 256, 16, 2>;

/// Each lane allocates twelve blocks.
struct twelve_blocks {
  shared_arenas heap;
  void operator()() const {
    for (int i = 0; i < 12; ++i)
      if (heap.malloc(32) == nullptr) simt::fail("malloc returned nullptr");
  }
};

// Sixteen warps of one lane share four arenas. The blocks of an arena fill the first superblock,
// which has room for five, and seven more. A warp that finds the next superblock full, too,
// allocates one without waiting: hence the two superblocks of slack. Without the bit `refilling`,
// warps that find the same superblock full allocate one each: 45 in all, on average.
TEST(ExploreArena, WarpsThatShareAnArenaAllocateOneSuperblockForAll) {
  const allocator_sandbox<shared_arenas> sandbox(std::uint64_t{32} * 1024);
  simt::explorer explorer;
  std::uint64_t superblocks = 0;
  const std::uint64_t runs = scaled(2'000);
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    sandbox.reset();
    const simt::outcome result =
        explorer.run({.seed = seed}, {16, 1}, twelve_blocks{sandbox.heap()});
    ASSERT_EQ(result.failure, "") << "seed " << seed;
    const call_counts calls = calls_of(sandbox.statistics());
    superblocks += calls.mallocs - calls.frees;
  }
  EXPECT_LE(superblocks, runs * (4 * 8 + 2));
}

}  // namespace
}  // namespace layer_explore_test

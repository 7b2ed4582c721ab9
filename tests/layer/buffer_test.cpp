// SPDX-License-Identifier: Apache-2.0
#include "layer/instrumented.hpp"
#include "layer/kernels.hpp"

#include <quarry/layer/buffer.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/layer/xmalloc.hpp>
#include <quarry/pool/circular/circular.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace buffer_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

static_assert(freeing_allocator<buffer<cfmalloc>> &&
              freeing_allocator<warp_aggregated<buffer<cfmalloc>>>);
// As in the paper: 256 blocks per class.
static_assert(buffer<cfmalloc, 16>::fifo::capacity == 16);
static_assert(buffer<cfmalloc, 16>::max_cached_bytes(1u << 30) < 64u << 20);
// Derived from the pool: less than half of it, except for small pools.
static_assert(buffer<cfmalloc>::fifo::capacity == 64);
static_assert(buffer<cfmalloc>::max_cached_bytes(1u << 10) < 16u << 20);
static_assert(buffer<cfmalloc>::max_cached_bytes(1u << 30) < 1u << 29);
static_assert(buffer<cfmalloc>::max_cached_bytes(1u << 29) > 8448 * 640);

using one_fifo = heap<buffer<instrumented<cfmalloc>, 1>, here>;

TEST(Buffer, ReusesAFreedBlockWithoutCallingTheUpstream) {
  const one_fifo h(bytes(1u << 20));
  void* const p = h.allocate(100);
  h.deallocate(p);
  EXPECT_EQ(h.allocate(110), p) << "the same class";
  EXPECT_EQ(calls_of(h.statistics()).mallocs, 1u);
  EXPECT_EQ(calls_of(h.statistics()).frees, 0u);
  EXPECT_NE(h.allocate(100), p);
}

TEST(Buffer, ReusesBlocksOnlyWithinTheirClass) {
  const one_fifo h(bytes(1u << 20));
  void* const p = h.allocate(100);
  h.deallocate(p);
  EXPECT_NE(h.allocate(1000), p);
  EXPECT_NE(h.allocate(40), p);
  EXPECT_EQ(h.allocate(100), p);
}

TEST(Buffer, ForwardsLargeRequestsToTheUpstream) {
  const one_fifo h(bytes(1u << 20));
  void* const p = h.allocate(41'000);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(calls_of(h.statistics()).last_size, 41'016u);
  h.deallocate(p);
  EXPECT_EQ(calls_of(h.statistics()).frees, 1u);
}

TEST(Buffer, FreesBlocksThatDoNotFitIntoItsFifo) {
  const heap<buffer<instrumented<cfmalloc>, 1, 512, 2>, here> h(bytes(1u << 20));
  std::vector<void*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(h.allocate(64));
  for (void* p : blocks) h.deallocate(p);
  EXPECT_EQ(calls_of(h.statistics()).frees, 1u);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(Buffer, TriesOtherFifosBeforeTheUpstream) {
  // Four FIFOs of one block. Without further attempts the upstream would free 1.5 of 4 blocks on
  // average.
  const heap<buffer<instrumented<cfmalloc>, 4, 512, 4>, here> h(bytes(1u << 20));
  constexpr std::uint32_t rounds = 200;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const auto got = malloc_by_block(h, {64, 64, 64, 64});
    free_by_block(h, got, 0, got.size());
  }
  EXPECT_LT(calls_of(h.statistics()).frees, rounds);
  EXPECT_LT(calls_of(h.statistics()).mallocs, rounds + 4);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(Buffer, CountsCachedBlocksAsFree) {
  const one_fifo h(bytes(1u << 20));
  void* const p = h.allocate(64);
  void* const q = h.allocate(64);
  EXPECT_EQ(h.statistics().live_blocks, 2u);
  h.deallocate(p);
  EXPECT_EQ(h.statistics().live_blocks, 1u);
  h.deallocate(q);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
  EXPECT_EQ(h.statistics().free_bytes, h.statistics().pool_bytes);
}

TEST(Buffer, FreesAllCachedBlocksWhenTheUpstreamIsExhausted) {
  const heap<buffer<cfmalloc>, here> h(bytes(64u << 10));
  const auto small = malloc_by_block(h, std::vector<std::uint64_t>(256, 100));
  void* const large = h.allocate(60'000);
  EXPECT_EQ(large, nullptr) << "the blocks are live";
  free_by_block(h, small, 0, 256);
  void* const again = h.allocate(60'000);
  EXPECT_NE(again, nullptr) << "all blocks are cached, none is live";
  h.deallocate(again);
  EXPECT_NE(h.allocate(64'000), nullptr);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(Buffer, TriesAllFifosOfTheClassBeforeItFails) {
  const heap<buffer<cfmalloc, 64>, here> h(bytes(64u << 10));
  std::vector<void*> blocks;
  while (void* const p = h.allocate(1000)) blocks.push_back(p);
  ASSERT_GT(blocks.size(), 50u);
  h.deallocate(blocks.back());
  EXPECT_EQ(h.allocate(1000), blocks.back()) << "any FIFO of the class may hold it";
}

TEST(Buffer, FreesAllCachedBlocksWhenDrained) {
  const heap<buffer<instrumented<cfmalloc>>, here> h(bytes(1u << 20));
  auto got = malloc_by_block(h, {10, 100, 1000, 10'000, 30'000, 33, 33, 33});
  free_by_block(h, got, 0, got.size());
  launch<here>({1, 1}, drain<decltype(h)::ref_type>{h.ref()});
  const call_counts calls = calls_of(h.statistics());
  EXPECT_EQ(calls.frees, calls.mallocs);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(Buffer, DrainsThroughWarpAggregated) {
  const heap<warp_aggregated<buffer<instrumented<cfmalloc>>>, here> h(bytes(1u << 20));
  auto got = malloc_by_block(h, std::vector<std::uint64_t>(32, 64));
  free_by_block(h, got, 0, got.size());
  EXPECT_EQ(calls_of(h.statistics()).frees, 0u);
  launch<here>({1, 1}, drain<decltype(h)::ref_type>{h.ref()});
  EXPECT_EQ(calls_of(h.statistics()).frees, calls_of(h.statistics()).mallocs);
}

TEST(Buffer, KeepsItsCacheIfARequestExceedsThePool) {
  const one_fifo h(bytes(1u << 20));
  void* const p = h.allocate(64);
  h.deallocate(p);
  EXPECT_EQ(h.allocate(~std::size_t{0}), nullptr);
  EXPECT_EQ(h.allocate(2u << 20), nullptr);
  EXPECT_EQ(calls_of(h.statistics()).frees, 0u);
}

/// Returns the start of its pool first, and the end of its pool afterwards.
class both_ends {
 public:
  static constexpr abilities can = {.frees_one = true};
  both_ends() = default;
  both_ends(memory_range pool, carve& metadata)
      : pool_(pool.begin), size_(pool.size), calls_(metadata.take<std::uint64_t>("calls", 2)) {}
  QUARRY_DEVICE void initialise(std::uint64_t, std::uint64_t) const {}
  QUARRY_DEVICE void* malloc(std::size_t) const {
    return calls_[0]++ == 0 ? pool_ : pool_ + size_ - 4096;
  }
  QUARRY_DEVICE void free(void*) const { ++calls_[1]; }
  std::string check_invariants() const { return {}; }
  heap_statistics statistics() const {
    heap_statistics s;
    s.live_blocks = calls_[0] - calls_[1];
    return s;
  }

 private:
  std::byte* pool_;
  std::uint64_t size_;
  std::uint64_t* calls_;
};

TEST(Buffer, FreesBlocksOutsideItsWindowToTheUpstream) {
  const heap<buffer<both_ends, 1>, cpu> h(bytes(std::uint64_t{80} << 30));
  void* const low = h.allocate(64);
  void* const high = h.allocate(64);
  h.deallocate(high);
  h.deallocate(low);
  EXPECT_EQ(h.allocate(64), low) << "cached";
  EXPECT_EQ(h.statistics().live_blocks, 1u) << "the upstream has freed the other block";
}

TEST(Buffer, PlacesItsWindowAroundTheBlocksOfTheSystemHeap) {
  const heap<buffer<system_heap, 1>, cpu> h(bytes(1u << 20));
  void* const p = h.allocate(64);
  h.deallocate(p);
  EXPECT_EQ(h.allocate(64), p);
  h.deallocate(p);
  EXPECT_EQ(h.check_invariants(), "");
  h.ref().allocator().drain();
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

}  // namespace
}  // namespace buffer_test

// SPDX-License-Identifier: Apache-2.0
/// Heaps that grow between kernels, on both backends with their different page sizes.
#include "heap/kernels.hpp"

#include <quarry/layer/checked/checked.hpp>
#include <quarry/layer/counted.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quarry::growth_test {
namespace {

using namespace quarry::testing;
using ::testing::IsSubstring;

template <class Allocator>
class Growing : public ::testing::Test {};
using allocators = ::testing::Types<growing_bump, growing_warp_bump, slab>;
TYPED_TEST_SUITE(Growing, allocators);

constexpr std::uint64_t block = 64 << 10;

TYPED_TEST(Growing, ServesMoreBlocksAfterGrowthAndKeepsTheOldOnes) {
  heap<TypeParam, here> h(2_MiB, {.max = 64_MiB});
  EXPECT_EQ(h.pool_bytes(), 2u << 20);
  const auto before = fill(h, block);
  EXPECT_EQ(before.size(), 32u);
  EXPECT_EQ(h.allocate(block), nullptr);
  const auto old_ref = h.ref();
  h.grow(16_MiB);
  EXPECT_EQ(h.pool_bytes(), 16u << 20);
  const auto after = fill(h, block);
  EXPECT_EQ(after.size(), 7u * 32);
  EXPECT_EQ(wrong_words(before, block), 0u);
  EXPECT_EQ(wrong_words(after, block), 0u);
  EXPECT_EQ(h.check_invariants(), "");
  h.grow(18_MiB);
  simt::array<std::uint64_t*, here> out(2);
  launch<here>({1, 1}, allocate_blocks<typename heap<TypeParam, here>::ref_type>{old_ref, block, 1,
                                                                                 out.data()});
  EXPECT_NE(out.to_host()[0], nullptr) << "a heap_ref from before the growth allocates, too";
}

TYPED_TEST(Growing, BlocksOfAllGrowthsAreDisjoint) {
  heap<TypeParam, here> h(2_MiB, {.max = 32_MiB});
  std::vector<std::uint64_t*> all;
  for (const bytes size : {2_MiB, 6_MiB, 20_MiB, 32_MiB}) {
    h.grow(size);
    for (std::uint64_t* p : fill(h, block)) {
      EXPECT_TRUE(h.pool().contains(p));
      all.push_back(p);
    }
  }
  EXPECT_EQ(all.size(), (32u << 20) / block);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_GE(all[i] - all[i - 1], std::ptrdiff_t{block / 8});
}

TYPED_TEST(Growing, TrimReleasesMemoryBehindTheLastBlock) {
  heap<TypeParam, here> h(2_MiB, {.max = 256_MiB});
  const auto first = fill(h, block, 8);
  h.grow(130_MiB);
  EXPECT_GE(h.trim(), std::uint64_t{64} << 20) << "a GPU releases chunks of 64 MiB";
  EXPECT_LT(h.pool_bytes(), std::uint64_t{130} << 20);
  EXPECT_GE(h.pool_bytes(), 2u << 20) << "trim keeps the size of construction";
  EXPECT_EQ(h.check_invariants(), "");
  EXPECT_EQ(wrong_words(first, block), 0u);
  const auto rest = fill(h, block, 24);
  EXPECT_EQ(rest.size(), 24u);
  EXPECT_EQ(wrong_words(rest, block), 0u);
  h.grow(200_MiB);
  EXPECT_NE(h.allocate(std::uint64_t{190} << 20), nullptr)
      << "released memory can be committed again";
}

TYPED_TEST(Growing, TrimStopsAtTheLastBlock) {
  heap<TypeParam, here> h(2_MiB, {.max = 64_MiB});
  h.grow(64_MiB);
  void* const far = h.allocate(std::uint64_t{60} << 20);
  ASSERT_NE(far, nullptr);
  h.trim();
  EXPECT_GE(h.pool_bytes(), std::uint64_t{60} << 20);
  const std::uint64_t value = 42;
  auto* const last = static_cast<std::byte*>(far) + (std::uint64_t{60} << 20) - 8;
  h.copy_to(last, std::span<const std::uint64_t>(&value, 1));
  std::uint64_t back = 0;
  h.copy_from(std::span<std::uint64_t>(&back, 1), last);
  EXPECT_EQ(back, value);
}

TYPED_TEST(Growing, AdaptGrowsAfterAFailedAllocation) {
  heap<TypeParam, here> h(2_MiB, {.max = 64_MiB, .least_free = 0});
  EXPECT_FALSE(h.adapt());
  EXPECT_EQ(h.allocate(5u << 20), nullptr);
  EXPECT_TRUE(h.statistics().wants_growth);
  EXPECT_TRUE(h.adapt());
  EXPECT_NE(h.allocate(5u << 20), nullptr) << "the pool grew by the size of the failed request";
  EXPECT_FALSE(h.statistics().wants_growth);
  EXPECT_FALSE(h.adapt()) << "adapt() answers each failed allocation once";
  EXPECT_EQ(h.failures().count, 1u) << "adapt() does not clear the count";
}

TYPED_TEST(Growing, AdaptGrowsWhenLittleIsFree) {
  heap<TypeParam, here> h(4_MiB, {.max = 10_MiB, .least_free = 0.25, .factor = 2});
  fill(h, block, 48);
  EXPECT_FALSE(h.adapt()) << "exactly a quarter is free";
  fill(h, block, 1);
  EXPECT_TRUE(h.adapt());
  EXPECT_EQ(h.pool_bytes(), 8u << 20);
  fill(h, block, 64);
  EXPECT_TRUE(h.adapt());
  EXPECT_EQ(h.pool_bytes(), 10u << 20) << "the maximum limits the growth";
  fill(h, block);
  EXPECT_FALSE(h.adapt());
  EXPECT_FALSE(h.statistics().wants_growth);
}

TYPED_TEST(Growing, AdaptDoesNothingWithTheManualPolicy) {
  heap<TypeParam, here> h(2_MiB, {.max = 64_MiB, .policy = resizing::manual});
  EXPECT_EQ(h.allocate(5u << 20), nullptr);
  EXPECT_FALSE(h.adapt());
  EXPECT_EQ(h.pool_bytes(), 2u << 20);
  h.grow(8_MiB);
  EXPECT_NE(h.allocate(5u << 20), nullptr);
}

TYPED_TEST(Growing, GrowAboveTheMaximumThrowsAnErrorThatNamesIt) {
  heap<TypeParam, here> h(2_MiB, {.max = 8_MiB});
  try {
    h.grow(9_MiB);
    FAIL() << "the heap grew beyond its maximum";
  } catch (const error& e) {
    EXPECT_PRED_FORMAT2(IsSubstring, "9 MiB", e.what());
    EXPECT_PRED_FORMAT2(IsSubstring, "maximum is 8 MiB", e.what());
  }
  heap<TypeParam, here> fixed(2_MiB);
  EXPECT_THROW(fixed.grow(3_MiB), error);
  EXPECT_EQ(fixed.trim(), 0u);
}

TYPED_TEST(Growing, StatisticsDescribeTheCommittedPool) {
  heap<TypeParam, here> h(2_MiB, {.max = 64_MiB});
  heap_statistics s = h.statistics();
  EXPECT_EQ(s.pool_bytes, 2u << 20);
  EXPECT_EQ(s.max_pool_bytes, 64u << 20);
  EXPECT_EQ(s.live_bytes, 0u);
  EXPECT_EQ(s.free_bytes, 2u << 20);
  EXPECT_EQ(s.largest_free, 2u << 20);
  EXPECT_EQ(s.address_range_bytes, 0u);
  EXPECT_EQ(s.piece_bytes[static_cast<unsigned>(piece_kind::uncommitted)], 62u << 20);
  fill(h, block, 3);
  h.grow(32_MiB);
  s = h.statistics();
  EXPECT_EQ(s.live_bytes, 3 * block);
  EXPECT_EQ(s.free_bytes, (32u << 20) - 3 * block);
  EXPECT_GE(s.address_range_bytes, 3 * block);
  EXPECT_LE(s.address_range_bytes, 2u << 20) << "blocks lie in the memory before the growth";
}

TYPED_TEST(Growing, ResetKeepsTheSize) {
  heap<TypeParam, here> h(2_MiB, {.max = 64_MiB});
  h.grow(16_MiB);
  fill(h, block);
  h.reset();
  EXPECT_EQ(h.pool_bytes(), 16u << 20);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
  EXPECT_EQ(fill(h, block).size(), (16u << 20) / block);
}

TYPED_TEST(Growing, AdaptsAfterAReset) {
  heap<TypeParam, here> h(2_MiB, {.max = 64_MiB, .least_free = 0});
  EXPECT_EQ(h.allocate(5u << 20), nullptr);
  EXPECT_TRUE(h.adapt());
  h.reset();
  EXPECT_EQ(h.allocate(30u << 20), nullptr);
  EXPECT_TRUE(h.adapt()) << "reset starts a new count of failed allocations";
}

TYPED_TEST(Growing, GrowsAfterAMove) {
  heap<TypeParam, here> first(2_MiB, {.max = 64_MiB});
  const auto blocks = fill(first, block);
  heap<TypeParam, here> second = std::move(first);
  second.grow(16_MiB);
  EXPECT_EQ(fill(second, block).size(), 7u * 32);
  EXPECT_EQ(wrong_words(blocks, block), 0u);
}

TYPED_TEST(Growing, SizesAreRoundedUpToPages) {
  heap<TypeParam, here> h(100_KiB, {.max = 64_MiB});
  EXPECT_GE(h.pool_bytes(), 100u << 10);
  EXPECT_LE(h.pool_bytes(), 2u << 20);
  heap<TypeParam, here> tight(100_KiB, {.max = 100_KiB});
  EXPECT_EQ(tight.pool_bytes(), 100u << 10) << "the maximum limits the rounding";
}

template <class Ref>
struct free_all {
  Ref heap;
  std::uint64_t* const* blocks;
  std::uint64_t n;
  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = simt::global_thread(); i < n; i += simt::grid_threads())
      heap.free(blocks[i]);
  }
};
template <class Heap>
void free_blocks(const Heap& h, const std::vector<std::uint64_t*>& blocks) {
  simt::array<std::uint64_t*, here> there(blocks.size());
  there.from_host(blocks);
  launch<here>({2, 64}, free_all<typename Heap::ref_type>{h.ref(), there.data(), blocks.size()});
}

TEST(GrowingSlab, ReleasesMemoryOnceBlocksAreFreed) {
  heap<slab, here> h(2_MiB, {.max = 512_MiB});
  h.grow(192_MiB);
  const auto small = fill(h, 256, 20'000);
  const auto large = fill(h, 1u << 20, 100);
  EXPECT_EQ(small.size(), 20'000u);
  EXPECT_EQ(large.size(), 100u);
  EXPECT_LE(h.trim(), std::uint64_t{92} << 20) << "memory with live blocks stays";
  EXPECT_EQ(wrong_words(small, 256), 0u);
  EXPECT_EQ(wrong_words(large, 1u << 20), 0u);
  EXPECT_EQ(h.statistics().live_blocks, 20'100u) << "uncommitted addresses are no block";
  free_blocks(h, small);
  free_blocks(h, large);
  h.trim();
  EXPECT_EQ(h.pool_bytes(), 2u << 20);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  EXPECT_EQ(h.check_invariants(), "");
  h.grow(192_MiB);
  EXPECT_EQ(fill(h, 1u << 20, 190).size(), 190u) << "released memory can be committed again";
}

TEST(GrowingSlab, UsesNoUncommittedSegment) {
  heap<slab, here> h(4_KiB, {.max = 1_GiB});  // segments of 64 KiB
  EXPECT_GE(h.pool_bytes(), 4u << 10);
  std::uint64_t served = 0;
  for (const bytes size : {4_KiB, 100_KiB, 1000_KiB, 3001_KiB}) {
    h.grow(size);
    EXPECT_GE(h.pool_bytes(), size.value());
    // fill() writes all blocks. On a GPU the first page may already hold the larger sizes.
    const auto blocks = fill(h, 1024, 10'000);
    served += blocks.size();
    EXPECT_EQ(wrong_words(blocks, 1024), 0u);
    EXPECT_LE(served * 1024, h.pool_bytes());
    EXPECT_EQ(h.check_invariants(), "");
  }
  EXPECT_GE(served * 1024, 3001u << 10);
}

TEST(GrowingSlab, GrowsToAMaximumThatIsNotAPowerOfTwo) {
  heap<slab, here> h(4_MiB, {.max = 100'000'000u, .least_free = 0.5});
  do fill(h, block, 10'000);
  while (h.adapt());
  EXPECT_FALSE(h.statistics().wants_growth);
  EXPECT_LE(h.pool_bytes(), 100'000'000u);
  EXPECT_GT(h.pool_bytes(), 99'900'000u);
}

TEST(GrowingSlab, ReleasesSegmentsThatCacheFreeSlots) {
  heap<slab, here> h(2_MiB, {.max = 512_MiB});
  const auto low = fill(h, block);  // fills the pool
  EXPECT_EQ(low.size(), 32u);
  h.grow(64_MiB);
  h.deallocate(h.allocate(256));  // a cursor keeps the rest of the segment
  h.trim();
  EXPECT_EQ(h.pool_bytes(), 2u << 20);
  EXPECT_EQ(h.check_invariants(), "");
  EXPECT_EQ(wrong_words(low, block), 0u);
}

TEST(GrowingSlab, GrowsAndShrinksWithItsLiveBlocks) {
  heap<slab, here> h(2_MiB, {.max = 64_MiB});
  std::vector<std::vector<std::uint64_t*>> rounds;
  for (std::uint64_t size = 16; size <= 16384; size *= 4) {
    rounds.push_back(fill(h, size, 3000));
    EXPECT_FALSE(rounds.back().empty());
    h.adapt();
    EXPECT_EQ(h.check_invariants(), "");
  }
  EXPECT_GT(h.pool_bytes(), 2u << 20);
  std::uint64_t size = 16;
  for (const auto& blocks : rounds) {
    EXPECT_EQ(wrong_words(blocks, size), 0u) << size;
    free_blocks(h, blocks);
    h.trim();
    EXPECT_EQ(h.check_invariants(), "");
    size *= 4;
  }
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  EXPECT_EQ(h.statistics().free_bytes, h.pool_bytes());
}

template <class Allocator>
void expect_to_grow() {
  heap<Allocator, here> h(2_MiB, {.max = 32_MiB});
  EXPECT_EQ(h.allocate(5u << 20), nullptr);
  EXPECT_TRUE(h.adapt());
  void* const p = h.allocate(5u << 20);
  EXPECT_NE(p, nullptr);
  h.deallocate(p);
  EXPECT_EQ(h.check_invariants(), "");
}
TEST(Growth, RejectsFactorsAndFractionsOutOfRange) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto make = [](double least_free, double factor) {
    const heap<slab, default_backend> h(1_MiB,
                                        {.max = 4_MiB, .least_free = least_free, .factor = factor});
  };
  EXPECT_NO_THROW(make(0, 1));
  EXPECT_NO_THROW(make(1, 1024));
  for (const double factor : {0.5, -2.0, 1e300, infinity, std::nan("")})
    EXPECT_THROW(make(0.5, factor), error) << factor;
  for (const double least_free : {-0.1, 1.1, infinity, std::nan("")})
    EXPECT_THROW(make(least_free, 2), error) << least_free;
}

TEST(Growth, PassesThroughLayers) {
  expect_to_grow<warp_aggregated<slab>>();
  expect_to_grow<counted<slab>>();
  expect_to_grow<checked<slab>>();
}

TEST(GrowingMemory, CommitsAndReleasesWholePages) {
  detail::growing_memory<here> m(std::uint64_t{1} << 30);
  EXPECT_EQ(m.committed(), 0u);
  m.grow(1);
  const std::uint64_t page = m.committed();
  EXPECT_GT(page, 0u);
  m.grow(page + 1);
  EXPECT_EQ(m.committed(), 2 * page);
  m.grow(page);
  EXPECT_EQ(m.committed(), 2 * page) << "grow() never releases memory";
  simt::memory<here>::zero(m.data(), m.committed());
  m.shrink(page + 1);
  EXPECT_EQ(m.committed(), 2 * page);
  m.shrink(page);
  EXPECT_EQ(m.committed(), page);
  m.shrink(0);
  EXPECT_EQ(m.committed(), 0u);
}

TEST(GrowingMemory, ThrowsIfTheAddressesCanNotBeReserved) {
  EXPECT_THROW((detail::growing_memory<here>(std::uint64_t{1} << 60)), out_of_memory);
}

}  // namespace
}  // namespace quarry::growth_test

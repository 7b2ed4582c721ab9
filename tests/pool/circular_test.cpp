// SPDX-License-Identifier: Apache-2.0
/// The four circular allocators: initial chunks, merging, and the traversal of the ring.

#include <quarry/heap.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/simt/explore.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace quarry::circular_test {
namespace {

struct chunk {
  std::uint64_t offset, size;
  bool free;
};

template <class Allocator>
std::vector<chunk> chunks_of(const heap<Allocator, cpu>& h) {
  std::vector<chunk> all;
  h.ref().allocator().visit_chunks([&](std::uint64_t offset, std::uint64_t size, bool free) {
    all.push_back({offset, size, free});
  });
  return all;
}

template <class Allocator>
class Circular : public ::testing::Test {};
using four = ::testing::Types<cmalloc, cfmalloc, cmmalloc, cfmmalloc>;
TYPED_TEST_SUITE(Circular, four);

TYPED_TEST(Circular, ChunksTileThePoolFromTheStart) {
  for (std::uint64_t pool : {256u, 1000u, 4096u, 100'000u, 1u << 20}) {
    const heap<TypeParam, cpu> h(pool);
    std::uint64_t end = 0;
    for (const chunk& c : chunks_of(h)) {
      EXPECT_EQ(c.offset, end);
      EXPECT_TRUE(c.free);
      end = c.offset + c.size;
    }
    EXPECT_EQ(end, pool / 32 * 32);
    EXPECT_EQ(h.check_invariants(), "");
  }
}

/// Equation 1 of the paper: C(i) = R / 2^floor(log2 i), and what remains is the last chunk.
void expect_binary_heap(const std::vector<chunk>& chunks) {
  ASSERT_GT(chunks.size(), 2u);
  const std::uint64_t root = chunks[0].size;
  for (std::size_t i = 1; i < chunks.size(); ++i)  // the paper counts from 1
    EXPECT_EQ(chunks[i - 1].size, root >> log2_floor(i)) << "chunk " << i;
  EXPECT_TRUE(is_power_of_two(chunks.size()) || is_power_of_two(chunks.size() + 1))
      << "complete levels, and one more chunk for the remainder";
}

TEST(CMalloc, SplitsThePoolAsABinaryHeap) {
  const heap<cmalloc, cpu> h(1_MiB);
  expect_binary_heap(chunks_of(h));
}

TEST(CMMalloc, GivesEveryOffsetABinaryHeapOfItsOwn) {
  const heap<cmmalloc, cpu> h(1_MiB);
  std::map<std::uint64_t, std::vector<chunk>> heaps;
  for (const chunk& c : chunks_of(h)) heaps[c.offset / ((1u << 20) / 128)].push_back(c);
  EXPECT_EQ(heaps.size(), 128u);
  for (const auto& [number, chunks] : heaps) expect_binary_heap(chunks);
}

TYPED_TEST(Circular, ServesThePoolAsOneBlockAfterFragmentation) {
  const heap<TypeParam, cpu> h(64_KiB);
  std::vector<void*> blocks;
  while (void* p = h.allocate(32)) blocks.push_back(p);
  EXPECT_EQ(blocks.size(), 2048u);
  for (std::size_t i = 0; i < blocks.size(); i += 2) h.deallocate(blocks[i]);
  EXPECT_EQ(h.allocate(64), nullptr) << "no two neighbours are free";
  for (std::size_t i = 1; i < blocks.size(); i += 2) h.deallocate(blocks[i]);
  void* all = h.allocate(64u << 10);
  EXPECT_NE(all, nullptr) << "malloc merges a run of free chunks";
  EXPECT_EQ(h.allocate(1), nullptr);
  h.deallocate(all);
  EXPECT_EQ(h.statistics().free_bytes, 64u << 10);
  EXPECT_EQ(h.check_invariants(), "");
}

TYPED_TEST(Circular, FillsThePoolToTheLastGranule) {
  const heap<TypeParam, cpu> h(64_KiB);
  while (h.allocate(32) != nullptr) {
  }
  const heap_statistics full = h.statistics();
  EXPECT_EQ(full.live_blocks, 2048u);
  EXPECT_EQ(full.live_bytes, 64u << 10);
  EXPECT_EQ(full.largest_free, 0u);
}

TYPED_TEST(Circular, FindsTheOneFreeChunkWhereverTheSearchStarts) {
  const heap<TypeParam, cpu> h(16_KiB);
  std::vector<void*> blocks;
  while (void* p = h.allocate(100)) blocks.push_back(p);
  for (void* p : blocks) {
    h.deallocate(p);
    void* again = h.allocate(100);
    EXPECT_NE(again, nullptr);
    EXPECT_EQ(h.allocate(100), nullptr);
  }
}

/// A recorded failure must not hide memory that is freed afterwards.
TYPED_TEST(Circular, FindsTwoAdjacentChunksFreedAfterAFailedAllocation) {
  const heap<TypeParam, cpu> h(4_KiB);
  std::vector<void*> blocks;
  while (void* p = h.allocate(32)) blocks.push_back(p);
  std::sort(blocks.begin(), blocks.end());
  ASSERT_EQ(blocks.size(), 128u);
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i)
    for (const std::size_t first : {i, i + 1}) {
      EXPECT_EQ(h.allocate(64), nullptr);
      h.deallocate(blocks[first]);
      EXPECT_EQ(h.allocate(64), nullptr);
      h.deallocate(blocks[2 * i + 1 - first]);
      void* const both = h.allocate(64);
      EXPECT_EQ(both, blocks[i]);
      h.deallocate(both);
      EXPECT_NE(h.allocate(32), nullptr);
      EXPECT_NE(h.allocate(32), nullptr);
    }
}

TYPED_TEST(Circular, FindsALongRunThatGrowsFromEitherEnd) {
  for (const bool forwards : {false, true}) {
    const heap<TypeParam, cpu> h(4_KiB);
    std::vector<void*> blocks;
    while (void* p = h.allocate(32)) blocks.push_back(p);
    std::sort(blocks.begin(), blocks.end());
    for (std::size_t i = 0; i < 100; ++i) {  // 100 granules span more than one region
      EXPECT_EQ(h.allocate(100 * 32), nullptr) << i;
      h.deallocate(blocks[forwards ? 10 + i : 109 - i]);
    }
    EXPECT_EQ(h.allocate(100 * 32), blocks[10]);
  }
}

template <class Ref>
struct malloc_once {
  Ref heap;
  std::uint64_t size;
  void** got;
  void operator()() const { got[simt::global_thread()] = heap.malloc(size); }
};

TYPED_TEST(Circular, FailsASecondTimeWithoutScanningThePool) {
  const heap<TypeParam, cpu> h(4_MiB);
  using kernel = malloc_once<typename heap<TypeParam, cpu>::ref_type>;
  while (h.allocate(32) != nullptr) {
  }
  simt::explorer one_lane;
  void* got = &got;
  EXPECT_TRUE(one_lane.run({.step_limit = 10'000'000}, {1, 1}, kernel{h.ref(), 32, &got}).ok());
  EXPECT_EQ(got, nullptr);
  for (const std::uint64_t size : {32u, 33u, 1000u, 100'000u}) {
    const std::uint64_t before = one_lane.counts().loads;
    EXPECT_TRUE(one_lane.run({}, {1, 1}, kernel{h.ref(), size, &got}).ok());
    EXPECT_EQ(got, nullptr);
    EXPECT_LT(one_lane.counts().loads - before, 10'000u) << "of 131,072 chunks";
  }
}

/// All lanes run concurrently and split chunks. A lane that meets busy chunks must not fail.
TYPED_TEST(Circular, FailsOnlyWhenThePoolIsFull) {
  using ref = typename heap<TypeParam, cpu>::ref_type;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const heap<TypeParam, cpu> h(128_KiB);
    simt::explorer concurrent;
    std::vector<void*> got(128);
    std::uint64_t served = 0;
    for (bool full = false; !full;) {
      const auto result = concurrent.run({.seed = seed, .step_limit = 100'000'000}, {2, 64},
                                         malloc_once<ref>{h.ref(), 256, got.data()});
      ASSERT_EQ(result.failure, "");
      for (const void* p : got) {
        served += p != nullptr;
        full |= p == nullptr;
      }
    }
    EXPECT_EQ(served, 512u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace quarry::circular_test

// SPDX-License-Identifier: Apache-2.0
/// What is particular to the circular four: the first split, merging, absorbing, the way round the ring.

#include <quarry/heap.hpp>
#include <quarry/pool/circular.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

namespace quarry {
namespace {

struct chunk {
  std::uint64_t offset, size;
  bool free;
};

template <class Allocator>
std::vector<chunk> chunks_of(const heap<Allocator, cpu>& h) {
  std::vector<chunk> all;
  h.ref().allocator().visit_chunks(
      [&](std::uint64_t offset, std::uint64_t size, bool free) { all.push_back({offset, size, free}); });
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
      << "whole levels, and one chunk more if something remains";
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

TYPED_TEST(Circular, ServesThePoolInOnePieceAfterItWasShattered) {
  const heap<TypeParam, cpu> h(64_KiB);
  std::vector<void*> blocks;
  while (void* p = h.malloc(32)) blocks.push_back(p);
  EXPECT_EQ(blocks.size(), 2048u);
  for (std::size_t i = 0; i < blocks.size(); i += 2) h.free(blocks[i]);
  EXPECT_EQ(h.malloc(64), nullptr) << "no two neighbours are free";
  for (std::size_t i = 1; i < blocks.size(); i += 2) h.free(blocks[i]);
  void* all = h.malloc(64u << 10);
  EXPECT_NE(all, nullptr) << "a run of free chunks is as good as one";
  EXPECT_EQ(h.malloc(1), nullptr);
  h.free(all);
  EXPECT_EQ(h.statistics().free_bytes, 64u << 10);
  EXPECT_EQ(h.check_invariants(), "");
}

TYPED_TEST(Circular, FillsThePoolToTheLastGranule) {
  const heap<TypeParam, cpu> h(64_KiB);
  while (h.malloc(32) != nullptr) {
  }
  const heap_statistics full = h.statistics();
  EXPECT_EQ(full.live_blocks, 2048u);
  EXPECT_EQ(full.live_bytes, 64u << 10);
  EXPECT_EQ(full.largest_free, 0u);
}

TYPED_TEST(Circular, FindsTheOneFreeChunkWhereverTheSearchStarts) {
  const heap<TypeParam, cpu> h(16_KiB);
  std::vector<void*> blocks;
  while (void* p = h.malloc(100)) blocks.push_back(p);
  for (void* p : blocks) {
    h.free(p);
    void* again = h.malloc(100);
    EXPECT_NE(again, nullptr);
    EXPECT_EQ(h.malloc(100), nullptr);
  }
}

}  // namespace
}  // namespace quarry

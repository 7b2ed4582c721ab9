// SPDX-License-Identifier: Apache-2.0
/// What is particular to slab: tickets, recycling, release, runs; under explored schedules, in pools so small that a
/// few operations fill them.

#include "check/effort.hpp"

#include <quarry/check/explore_allocator.hpp>
#include <quarry/heap.hpp>
#include <quarry/pool/slab/slab.hpp>
#include <quarry/simt/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace quarry::slab_test {
namespace {

using several_entries = basic_slab<slab_tuning{.small_shared_entries = 2,
                                               .large_shared_entries = 2,
                                               .segments_per_shared_entry = 4,
                                               .small_own_entries = 4,
                                               .segments_per_own_entry = 4}>;
using long_runs = basic_slab<slab_tuning{.segments_per_shared_entry = 8,
                                         .segments_per_own_entry = 8,
                                         .longest_run = 4,
                                         .run_one_in = 4}>;

/// No segment has its bits in its state. In pools so small most have.
using counted_segments = basic_slab<slab_tuning{
    .segments_per_shared_entry = 4, .segments_per_own_entry = 4, .few_slots = 0}>;

/// Segments large enough for entries of whole warps: in smaller ones these take whole segments.
using own_entries = basic_slab<slab_tuning{
    .least_segment_log2 = 10, .segments_per_own_entry = 4, .longest_run = 2}>;

/// In lockstep too: no lane may wait for one of its own warp that it does not let run.
template <class Slab>
void explore(std::uint64_t pool) {
  for (const auto how : {exploration_strategy::both, exploration_strategy::lockstep})
    for (const std::uint32_t lanes : {3u, 8u, 40u})
      expect_survival<Slab>({.bounds = {.lanes = lanes, .blocks = 3, .operations = 5},
                             .pool_bytes = pool,
                             .schedules = scaled(lanes == 40 ? 4000 : 20'000),
                             .strategy = how,
                             .step_limit = 400'000,
                             .refill_one_in = 4});
}
TEST(ExploreSlab, AsItIs) { explore<slab>(4096); }
TEST(ExploreSlab, WithSeveralEntries) { explore<several_entries>(6000); }
TEST(ExploreSlab, WithRunsOfSegments) { explore<long_runs>(4096); }
TEST(ExploreSlab, WithCountedSegments) { explore<counted_segments>(4096); }
TEST(ExploreSlab, WithEntriesOfWholeWarps) { explore<own_entries>(8192); }

std::vector<void*> fill(const heap<slab, cpu>& h, std::size_t size) {
  std::vector<void*> blocks;
  while (void* const p = h.allocate(size)) blocks.push_back(p);
  return blocks;
}

TEST(Slab, GivesAllMemoryToAnyClassInTurn) {
  const heap<slab, cpu> h(4_MiB);
  for (const std::size_t size : {64u, 4096u, 16u, 1u << 20, 256u}) {
    const std::vector<void*> blocks = fill(h, size);
    EXPECT_EQ(blocks.size() * size, std::size_t{4} << 20) << size;
    EXPECT_EQ(h.statistics().live_blocks, blocks.size());
    for (void* const p : blocks) h.deallocate(p);
    EXPECT_EQ(h.check_invariants(), "");
  }
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(Slab, UsesAFreedSlotAgainHoweverFullItIs) {
  const heap<slab, cpu> h(1_MiB);
  const std::vector<void*> blocks = fill(h, 48);
  for (const std::size_t i : {std::size_t{0}, blocks.size() / 2, blocks.size() - 1}) {
    h.deallocate(blocks[i]);
    EXPECT_EQ(h.allocate(48), blocks[i]);
    EXPECT_EQ(h.allocate(48), nullptr);
  }
}

TEST(Slab, KeepsTheLastFreeSegmentsForOtherSizes) {
  const heap<slab, cpu> h(1_MiB);  // 256 segments
  const std::size_t segment = 4096;
  std::vector<void*> blocks = fill(h, 64);
  ASSERT_EQ(blocks.size() * 64, std::size_t{1} << 20);
  std::sort(blocks.begin(), blocks.end());
  const std::size_t in_one = segment / 64;
  for (std::size_t i = 0; i < 8 * in_one; ++i) h.deallocate(blocks[i]);
  for (std::size_t s = 8; s < 256; s += 4) h.deallocate(blocks[s * in_one]);  // one slot each
  EXPECT_EQ(h.statistics().largest_free, 8 * segment);
  for (std::size_t s = 8; s < 256; s += 4) ASSERT_NE(h.allocate(64), nullptr);
  EXPECT_EQ(h.statistics().largest_free, 8 * segment);
  EXPECT_NE(h.allocate(8 * segment), nullptr);
  EXPECT_EQ(h.allocate(64), nullptr);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(Slab, CountsABlockOnceThatIsFreedTwice) {
  const heap<slab, cpu> h(64_MiB);
  for (const std::size_t size : {64u, 20'000u}) {  // in one segment there are many, or few
    void* const kept = h.allocate(size);
    void* const block = h.allocate(size);
    ASSERT_NE(block, nullptr);
    h.deallocate(block);
    h.deallocate(block);
    EXPECT_EQ(h.statistics().live_blocks, 1u) << size;
    EXPECT_EQ(h.check_invariants(), "") << size;
    h.deallocate(kept);
    EXPECT_EQ(h.statistics().live_blocks, 0u) << size;
    EXPECT_EQ(h.check_invariants(), "") << size;
  }
}

TEST(Slab, ReleasesASegmentToOtherClasses) {
  const heap<slab, cpu> h(64_KiB);
  const std::vector<void*> small = fill(h, 16);
  EXPECT_EQ(h.allocate(128), nullptr);
  for (std::size_t i = 0; i < 256 / 16; ++i)
    h.deallocate(small[i]);  // a segment's worth, in one piece
  EXPECT_NE(h.allocate(128), nullptr);
}

TEST(Slab, AlignsUpToASegment) {
  const heap<slab, cpu> h(16_MiB);
  for (std::size_t alignment = 16; alignment <= 256; alignment *= 2)
    for (const std::size_t n : {std::size_t{1}, alignment - 1, alignment + 1, std::size_t{3000}}) {
      void* const p = h.ref().malloc(n, alignment);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0u) << n;
      EXPECT_GE(h.ref().allocator().usable_size(p), n);
    }
}

TEST(Slab, TellsWhatABlockHolds) {
  const heap<slab, cpu> h(16_MiB);
  EXPECT_EQ(h.ref().allocator().usable_size(h.allocate(1)), 16u);
  EXPECT_EQ(h.ref().allocator().usable_size(h.allocate(129)), 160u);
  EXPECT_EQ(h.ref().allocator().usable_size(h.allocate(100'000)), 131'072u);
}

TEST(Slab, KeepsItsMetadataSmall) {
  for (const std::uint64_t pool : {std::uint64_t{64} << 20, std::uint64_t{1} << 30,
                                   std::uint64_t{16} << 30, std::uint64_t{100} << 30})
    EXPECT_LE(static_cast<double>(metadata_bytes<slab>(pool)), 0.02 * static_cast<double>(pool))
        << pool;
}

TEST(Slab, ServesManyLanesAtOnceOnTheExecutor) {
  const heap<slab, cpu> h(16_MiB);
  struct churn {
    heap_ref<slab, cpu> heap;
    std::uint32_t* failed;
    void operator()() const {
      simt::lane_random draw(simt::global_thread());
      for (int i = 0; i < 20; ++i) {
        auto* const p = static_cast<std::uint32_t*>(heap.malloc(4 + draw.below(2000)));
        const auto mine = static_cast<std::uint32_t>(simt::global_thread());
        if (p != nullptr) *p = mine;
        if (p == nullptr || *p != mine)
          simt::atomic_ref<std::uint32_t>(*failed).add(1, simt::relaxed);
        heap.free(p);
      }
    }
  };
  std::uint32_t failed = 0;
  launch<cpu>({32, 128}, churn{h.ref(), &failed});
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  EXPECT_EQ(h.check_invariants(), "");
}

/// Sizes drift, and some blocks live eight times as long as others: these must not end up one to a segment.
TEST(Slab, StaysCompactWhenSizesDriftAndSomeBlocksLiveLong) {
  const heap<slab, cpu> h(32_MiB);
  struct block {
    void* place = nullptr;
    std::size_t size = 0;
  };
  std::vector<block> blocks(1 << 15);
  std::uint64_t live = 0;
  for (std::uint32_t round = 0; round < 60; ++round)
    for (std::uint32_t i = 0; i < blocks.size(); ++i) {
      const std::uint32_t random = simt::scramble(i * 64 + round);
      if (random % 256 >= (i % 7 == 0 ? 16u : 128u)) continue;
      h.deallocate(blocks[i].place);
      live -= blocks[i].size;
      const std::uint32_t most = 16u << (round / 16 + i / 1024) % 7;
      const std::size_t size = 16 + simt::scramble(random + 1) % most;
      blocks[i] = {h.allocate(size), size};
      ASSERT_NE(blocks[i].place, nullptr);
      live += size;
    }
  EXPECT_LE(*h.statistics().address_range_bytes, 5 * live / 2);
  EXPECT_GE(*h.statistics().largest_free, 16_MiB);
  for (const block& b : blocks) h.deallocate(b.place);
  EXPECT_EQ(h.check_invariants(), "");
}

/// Lanes that hold a block each, and in some rounds give it back and take another. Sizes drift up to 8 KiB and back; a quarter
/// of the lanes act in every round, others every 2nd, 8th or 32nd time.
struct drift {
  heap_ref<slab, cpu> heap;
  std::uint32_t round;
  bool frees;
  void** blocks;
  std::uint64_t lanes;
  std::uint64_t* asked;  // and refused

  void operator()() const {
    const auto i = static_cast<std::uint32_t>(simt::global_thread());
    const std::uint32_t random = simt::scramble(i * 64 + round);
    const std::uint32_t one_in = i % 4 == 0 ? 1 : 1u << (2 * (i % 4) - 1);
    if (i >= lanes || (round != 0 && random % one_in != 0)) return;
    if (frees) return heap.free(blocks[i]);
    const std::uint32_t span = 1024 + 448 * (round % 32 < 16 ? round % 32 : 32 - round % 32);
    blocks[i] = heap.malloc(16 + simt::scramble(random + 1) % span);
    simt::atomic_ref<std::uint64_t>(asked[0]).add(1, simt::relaxed);
    if (blocks[i] == nullptr) simt::atomic_ref<std::uint64_t>(asked[1]).add(1, simt::relaxed);
  }
};

/// Large slots must not leave blocks that live long behind, a few to a segment.
TEST(Slab, RefusesFewWhenSizesDriftToEightKiB) {
  const heap<slab, cpu> h(32_MiB);
  std::vector<void*> blocks((32u << 20) / 5 * 4 / 4104);  // at the most, four fifths of the heap
  std::uint64_t asked[2] = {};
  const grid g = {.blocks = static_cast<std::uint32_t>(blocks.size() / 256 + 1), .threads = 256};
  for (std::uint32_t round = 0; round < 64; ++round)
    for (const bool frees : {true, false})
      launch<cpu>(g, drift{h.ref(), round, frees, blocks.data(), blocks.size(), asked});
  EXPECT_LE(asked[1], asked[0] / 25);
  for (void* const p : blocks) h.deallocate(p);
  EXPECT_EQ(h.check_invariants(), "");
}

}  // namespace
}  // namespace quarry::slab_test

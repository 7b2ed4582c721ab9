// SPDX-License-Identifier: Apache-2.0
/// The statistics of a heap are consistent: pieces, size classes, live and free bytes.
#include "heap/kernels.hpp"

#include <quarry/layer/counted.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace quarry::statistics_test {
namespace {

using namespace quarry::testing;

/// Every lane allocates six blocks of random sizes and frees every third.
template <class Ref>
struct allocate_and_free {
  Ref heap;
  QUARRY_DEVICE void operator()() const {
    simt::lane_random draw(simt::global_thread() + 1);
    for (int i = 0; i < 6; ++i) {
      void* const p = heap.malloc(1 + draw.below(3000));
      if constexpr (Ref::can.frees_one)
        if (i % 3 == 0) heap.free(p);
    }
  }
};

template <class Allocator>
class Pieces : public ::testing::Test {};
using allocators = ::testing::Types<slab, cfmalloc, cmmalloc, scatter_alloc, bump, growing_bump>;
TYPED_TEST_SUITE(Pieces, allocators);

TYPED_TEST(Pieces, CoverThePoolAndAddUpToTheTotals) {
  const heap<TypeParam, here> h(4_MiB);
  launch<here>({2, 128}, allocate_and_free<typename heap<TypeParam, here>::ref_type>{h.ref()});
  std::uint64_t at = 0, live = 0, live_bytes = 0, last = 0;
  h.on_host([&](const TypeParam& a) {
    a.visit_pieces([&](const pool_piece& p) {
      EXPECT_EQ(p.offset, at);
      EXPECT_GT(p.size, 0u);
      EXPECT_LE(p.live, p.blocks);
      at += p.size;
      live += p.live;
      live_bytes += p.kind == piece_kind::used ? p.size : p.live * p.block_bytes;
      if (p.live != 0 || p.kind == piece_kind::used) last = at;
    });
  });
  const heap_statistics s = h.statistics();
  EXPECT_EQ(at, s.pool_bytes);
  EXPECT_EQ(live_bytes, s.live_bytes);
  if (s.live_blocks) {
    EXPECT_EQ(live, *s.live_blocks);
  }
  EXPECT_EQ(s.address_range_bytes, last);
  EXPECT_GT(live_bytes, 256u * 4 * 1000);
  EXPECT_EQ(std::accumulate(s.piece_bytes.begin(), s.piece_bytes.end(), std::uint64_t{0}),
            s.pool_bytes);
  EXPECT_EQ(*s.free_bytes + live_bytes, s.pool_bytes);
}

TEST(Statistics, FragmentationIsTheFreeFractionOutsideTheLargestPiece) {
  heap_statistics s;
  EXPECT_EQ(s.fragmentation(), std::nullopt);
  s.free_bytes = 1000;
  s.largest_free = 250;
  EXPECT_DOUBLE_EQ(*s.fragmentation(), 0.75);
  s.free_bytes = s.largest_free = 0;
  EXPECT_DOUBLE_EQ(*s.fragmentation(), 0.0);
}

TEST(Statistics, OfACountedHeapIncludeThePeak) {
  const heap<counted<cfmalloc>, here> h(1_MiB);
  void* const a = h.allocate(1000);
  void* const b = h.allocate(500);
  h.deallocate(a);
  h.deallocate(b);
  EXPECT_EQ(h.statistics().peak_bytes, 1500u);
  EXPECT_EQ((heap<cfmalloc, here>(1_MiB)).statistics().peak_bytes, std::nullopt)
      << "only counted<> knows the peak";
}

TEST(Statistics, HaveTheLiveBlocksOfEachSizeClass) {
  const heap<slab, here> h(4_MiB);
  fill(h, 64, 100);
  fill(h, 1000, 7);
  std::uint64_t of_64 = 0, of_1024 = 0;
  for (const size_class_statistics& c : h.statistics().classes) {
    if (c.block_bytes == 64) of_64 = c.live_blocks;
    if (c.block_bytes == 1024) of_1024 = c.live_blocks;
  }
  EXPECT_EQ(of_64, 100u);
  EXPECT_EQ(of_1024, 7u);
}

}  // namespace
}  // namespace quarry::statistics_test

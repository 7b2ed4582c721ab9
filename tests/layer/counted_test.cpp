// SPDX-License-Identifier: Apache-2.0
#include "layer/kernels.hpp"

#include <quarry/layer/checked/checked.hpp>
#include <quarry/layer/counted.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/pool/system_heap.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace counted_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

static_assert(freeing_allocator<counted<cfmalloc>> &&
              freeing_allocator<checked<counted<cfmalloc>>>);
static_assert(allocator<counted<bump>> && !freeing_allocator<counted<bump>>);

/// Every lane holds at most one block of 100 bytes.
template <class Ref>
struct churn {
  Ref heap;
  std::uint32_t rounds;
  QUARRY_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < rounds; ++i) heap.free(heap.malloc(100));
  }
};

template <class Upstream>
class Counted : public ::testing::Test {};
using upstreams = ::testing::Types<cfmalloc, system_heap, warp_aggregated<cfmalloc>>;
TYPED_TEST_SUITE(Counted, upstreams);

TYPED_TEST(Counted, CountsCallsAndBytes) {
  const heap<counted<TypeParam>, here> h(1_MiB);
  const auto got = malloc_by_block(h, {64, 64, 1000, 0, 2u << 20, 1});
  allocation_counts c = counts(h);
  EXPECT_EQ(c.served, 4u);
  EXPECT_EQ(c.failed, 2u);
  EXPECT_EQ(c.live_blocks, 4u);
  EXPECT_EQ(c.live_bytes, 1129u);
  EXPECT_EQ(c.peak_bytes, 1129u);
  EXPECT_EQ(c.freed, 0u);
  free_by_block(h, got, 0, 2);
  c = counts(h);
  EXPECT_EQ(c.freed, 2u);
  EXPECT_EQ(c.live_blocks, 2u);
  EXPECT_EQ(c.live_bytes, 1001u);
  EXPECT_EQ(c.peak_bytes, 1129u) << "a free does not lower the peak";
  EXPECT_EQ(h.check_invariants(), "");
  free_by_block(h, got, 2, 6);
  EXPECT_EQ(counts(h).freed, 4u) << "free(nullptr) does not count";
  EXPECT_EQ(counts(h).live_bytes, 0u);
  EXPECT_EQ(h.check_invariants(), "");
}

TYPED_TEST(Counted, RecordsThePeakOfLiveBytes) {
  const heap<counted<TypeParam>, here> h(1_MiB);
  void* const a = h.allocate(1000);
  void* const b = h.allocate(500);
  h.deallocate(a);
  void* const c = h.allocate(400);
  EXPECT_EQ(counts(h).peak_bytes, 1500u);
  void* const d = h.allocate(601);
  EXPECT_EQ(counts(h).peak_bytes, 1501u);
  for (void* p : {b, c, d}) h.deallocate(p);
  EXPECT_EQ(counts(h).peak_bytes, 1501u);
  EXPECT_EQ(counts(h).live_bytes, 0u);
}

TYPED_TEST(Counted, CountsSizesByPowersOfTwo) {
  const heap<counted<TypeParam>, here> h(1_MiB);
  const auto got = malloc_by_block(h, {1, 2, 3, 4, 5, 8, 9, 1024, 1025, 65536, 65537, 2u << 20});
  const allocation_counts c = counts(h);
  std::array<std::uint64_t, 65> expected{};
  expected[0] = 1;   // 1
  expected[1] = 1;   // 2
  expected[2] = 2;   // 3, 4
  expected[3] = 2;   // 5, 8
  expected[4] = 1;   // 9
  expected[10] = 1;  // 1024
  expected[11] = 1;  // 1025
  expected[16] = 1;  // 65536
  expected[17] = 1;  // 65537
  EXPECT_EQ(c.sizes, expected) << "failed requests do not count";
  free_by_block(h, got, 0, 12);
}

TYPED_TEST(Counted, CountsExactlyWithManyLanes) {
  const heap<counted<TypeParam>, here> h(4_MiB);
  launch<here>({8, 128}, churn<typename heap<counted<TypeParam>, here>::ref_type>{h.ref(), 20});
  const allocation_counts c = counts(h);
  EXPECT_EQ(c.served + c.failed, 8u * 128 * 20);
  EXPECT_EQ(c.freed, c.served);
  EXPECT_EQ(c.live_bytes, 0u);
  EXPECT_EQ(c.sizes[7], c.served);
  EXPECT_GE(c.peak_bytes, 100u);
  EXPECT_LE(c.peak_bytes, 8u * 128 * 100);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(CountedHeap, HasNoHeadersOverAnUpstreamWithoutFree) {
  const heap<counted<bump>, here> h(1_MiB);
  malloc_by_block(h, std::vector<std::uint64_t>(64, 16));
  EXPECT_EQ(h.statistics().live_bytes, 1024u);
  EXPECT_EQ(counts(h).live_bytes, 1024u);
  EXPECT_EQ(counts(h).peak_bytes, 1024u);
}

TEST(CountedHeap, StartsAtZeroAfterReset) {
  heap<counted<cfmalloc>, here> h(1_MiB);
  ASSERT_NE(h.allocate(100), nullptr);
  h.reset();
  EXPECT_EQ(counts(h).served, 0u);
  EXPECT_EQ(counts(h).peak_bytes, 0u);
}

TEST(CountedHeap, CanBeReadBelowAnotherLayer) {
  const heap<checked<counted<cfmalloc>>, here> h(1_MiB);
  void* const p = h.allocate(100);
  const auto inner = h.on_host([](const auto& a) { return a.upstream().counts(); });
  EXPECT_EQ(inner.live_bytes, 112u + 32u) << "including the guards";
  h.deallocate(p);
}

TEST(CountedHeap, WritesItsCountsAsText) {
  allocation_counts c;
  c.served = 3;
  c.failed = 1;
  c.freed = 1;
  c.live_blocks = 2;
  c.live_bytes = 2000;
  c.peak_bytes = 3u << 20;
  c.sizes[0] = 1;
  c.sizes[10] = 2;
  EXPECT_EQ(to_text(c),
            "malloc: 3 served, 1 failed; free: 1\n"
            "live: 2 blocks, 2 KiB; peak: 3 MiB\n"
            "up to 1 B: 1\n"
            "up to 1 KiB: 2\n");
}

}  // namespace
}  // namespace counted_test

// SPDX-License-Identifier: Apache-2.0
/// heap and heap_ref on both backends: ownership of memory, lifetime of refs, host functions.

#include <quarry/heap.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::heap_test {
namespace {

using ::testing::IsSubstring;
using here = default_backend;

template <class Ref>
struct allocate_each {
  Ref heap;
  void** out;
  QUARRY_DEVICE void operator()() const { out[simt::global_thread()] = heap.malloc(64); }
};

template <class Heap>
std::vector<void*> allocate_in_lanes(const Heap& h, unsigned lanes) {
  simt::array<void*, here> out(lanes);
  launch<here>({(lanes + 63) / 64, 64},
               allocate_each<typename Heap::ref_type>{h.ref(), out.data()});
  return out.to_host();
}

TEST(HeapRef, IsSmallEnoughForAKernelArgumentAndTrivialForADeviceGlobal) {
  using ref = heap_ref<bump, here>;
  static_assert(std::is_trivially_copyable_v<ref>);
  static_assert(std::is_trivially_default_constructible_v<ref>);
  static_assert(sizeof(ref) <= 32);
}

TEST(Heap, WithDefaultArgumentsAllocatesAndDeallocates) {
  heap<> h(1_MiB);
  void* p = h.allocate(100);
  EXPECT_NE(p, nullptr);
  h.deallocate(p);
}

TEST(Heap, MovesWithoutInvalidatingItsRefs) {
  heap<bump, here> first(1_MiB);
  const auto ref = first.ref();
  heap<bump, here> second = std::move(first);
  simt::array<void*, here> out(64);
  launch<here>({1, 64}, allocate_each<heap_ref<bump, here>>{ref, out.data()});
  for (void* p : out.to_host()) EXPECT_TRUE(second.pool().contains(p));
  heap<bump, here> third(64_KiB);
  third = std::move(second);
  EXPECT_EQ(third.statistics().live_bytes, 64u * 64);
}

TEST(Heap, ThatWasMovedFromThrows) {
  heap<growing_bump, here> from(1_MiB);
  const heap<growing_bump, here> to = std::move(from);
  EXPECT_THROW(from.allocate(16), error);
  EXPECT_THROW(from.statistics(), error);
  EXPECT_THROW(from.check(), error);
  EXPECT_THROW(from.check_empty(), error);
  EXPECT_THROW(from.check_invariants(), error);
  EXPECT_THROW(from.reset(), error);
  EXPECT_THROW(from.failures(), error);
  EXPECT_THROW(from.clear_failures(), error);
  EXPECT_THROW(from.grow(2_MiB), error);
  EXPECT_THROW(from.trim(), error);
  EXPECT_THROW(from.adapt(), error);
  EXPECT_THROW(from.ref(), error);
  EXPECT_EQ(from.pool_bytes(), 0u);
  try {
    from.reset();
  } catch (const error& e) {
    EXPECT_PRED_FORMAT2(IsSubstring, "heap::reset", e.what());
    EXPECT_PRED_FORMAT2(IsSubstring, "moved from", e.what());
  }
  EXPECT_NE(to.allocate(16), nullptr);
}

TEST(Heap, ThatWasMovedFromThrowsForBlocksOfTheHost) {
  heap<slab, here> from(1_MiB);
  const heap<slab, here> to = std::move(from);
  std::uint64_t word = 0;
  void* const p = to.allocate(8);
  EXPECT_THROW(from.deallocate(p), error);
  EXPECT_THROW(from.deallocate(nullptr), error);
  EXPECT_THROW(from.create<std::uint64_t>(1u), error);
  EXPECT_THROW(from.copy_to(p, std::span<const std::uint64_t>(&word, 1)), error);
  EXPECT_THROW(from.copy_from(std::span<std::uint64_t>(&word, 1), p), error);
  to.deallocate(p);
  to.check_empty();
}

TEST(Heap, ThatWasMovedFromServesAgainOnceAHeapIsAssignedToIt) {
  heap<slab, here> h(1_MiB);
  heap<slab, here> other = std::move(h);
  h = heap<slab, here>(64_KiB);
  EXPECT_NE(h.allocate(16), nullptr);
  EXPECT_EQ(h.pool_bytes(), 64u << 10);
  EXPECT_EQ(other.pool_bytes(), 1u << 20);
}

struct point {
  std::uint32_t x;
  std::uint32_t y;
  QUARRY_DEVICE constexpr point(std::uint32_t a, std::uint32_t b) : x(a), y(b) {}
};
struct swap_coordinates {
  point* p;
  QUARRY_DEVICE void operator()() const { *p = point(p->y, p->x); }
};
TEST(Heap, CreatesObjectsThatKernelsUse) {
  const heap<slab, here> h(64_KiB);
  point* const p = h.create<point>(3u, 4u);
  ASSERT_NE(p, nullptr);
  launch<here>({1, 1}, swap_coordinates{p});
  point back(0, 0);
  h.copy_from(std::span<point>(&back, 1), p);
  EXPECT_EQ(back.x, 4u);
  EXPECT_EQ(back.y, 3u);
  h.destroy(p);
  h.destroy(static_cast<point*>(nullptr));
  h.check_empty();
  while (h.allocate(1024) != nullptr) {
  }
  while (h.allocate(16) != nullptr) {
  }
  EXPECT_EQ(h.create<point>(1u, 1u), nullptr);
}

TEST(Heap, HasItsOwnPoolBesideOtherHeaps) {
  const heap<bump, here> a(1_MiB);
  const heap<bump, here> b(1_MiB);
  const heap<wrap, here> c(1_MiB);
  for (void* p : allocate_in_lanes(a, 128)) EXPECT_TRUE(a.pool().contains(p));
  for (void* p : allocate_in_lanes(b, 128))
    EXPECT_TRUE(b.pool().contains(p) && !a.pool().contains(p));
  for (void* p : allocate_in_lanes(c, 128))
    EXPECT_TRUE(c.pool().contains(p) && !b.pool().contains(p));
}

TEST(Heap, UsesMemoryOfTheCaller) {
  simt::array<std::byte, here> memory(1u << 20);
  {
    const heap<bump, here> h(memory.data() + 8, bytes((1u << 20) - 8));
    EXPECT_GT(h.pool_bytes(), (1u << 20) - 1024u);
    for (void* p : allocate_in_lanes(h, 256)) {
      EXPECT_GE(static_cast<std::byte*>(p), memory.data() + 8);
      EXPECT_LT(static_cast<std::byte*>(p), memory.data() + (1u << 20));
    }
    EXPECT_EQ(h.allocate(h.pool_bytes()), nullptr);
    EXPECT_NE(h.allocate(h.pool_bytes() - 256 * 64), nullptr) << "the rest of the pool is free";
  }
  memory.fill_zero();  // the heap has not released it
}

TEST(Heap, ThrowsAnErrorThatNamesTheMinimumSize) {
  try {
    heap<bump, here> h(7_B);
    FAIL() << "a heap of 7 bytes was constructed";
  } catch (const error& e) {
    EXPECT_PRED_FORMAT2(IsSubstring, "7 B", e.what());
    EXPECT_PRED_FORMAT2(IsSubstring, "at least 64 B", e.what());
  }
  EXPECT_THROW((heap<bump, here>(nullptr, 1_MiB)), error);
  std::uint64_t word = 0;
  EXPECT_THROW((heap<bump, here>(&word, 8_B)), error);
}

TEST(Heap, ThrowsAnErrorThatNamesTheSizeIfThereIsNoMemory) {
  try {
    heap<bump, here> h(bytes(std::uint64_t{1} << 50));
    FAIL() << "a heap of a pebibyte was constructed";
  } catch (const std::bad_alloc& e) {
    EXPECT_PRED_FORMAT2(IsSubstring, std::to_string(std::uint64_t{1} << 50), e.what());
  }
}

TEST(Heap, StatisticsCountAllocatedBytes) {
  const heap<warp_bump, here> h(1_MiB);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
  EXPECT_EQ(h.statistics().largest_free, 1u << 20);
  allocate_in_lanes(h, 320);
  const heap_statistics s = h.statistics();
  EXPECT_EQ(s.pool_bytes, 1u << 20);
  EXPECT_EQ(s.live_bytes, 320u * 64);
  EXPECT_EQ(s.free_bytes, (1u << 20) - 320u * 64);
  EXPECT_DOUBLE_EQ(*s.utilisation(), 320.0 * 64 / (1 << 20));
  EXPECT_GT(s.metadata_bytes, 0u);
  h.check();
}

TEST(Heap, AFailedLargeAllocationTakesNoMemory) {
  const heap<bump, here> h(64_KiB);
  EXPECT_NE(h.allocate(60u << 10), nullptr);
  EXPECT_EQ(h.allocate(8u << 10), nullptr);
  EXPECT_NE(h.allocate(4u << 10), nullptr) << "the tail of the pool is still free";
  EXPECT_EQ(h.allocate(16), nullptr);
  EXPECT_EQ(h.statistics().free_bytes, 0u);
}

TEST(Heap, OfWrapStartsAgainAtTheFront) {
  const heap<wrap, here> h(4_KiB);
  void* first = h.allocate(1024);
  for (int i = 0; i < 3; ++i) EXPECT_NE(h.allocate(1024), first);
  EXPECT_EQ(h.allocate(1024), first);
  EXPECT_EQ(h.allocate(4096), first) << "a block that does not fit at the end starts at the front";
}

}  // namespace
}  // namespace quarry::heap_test

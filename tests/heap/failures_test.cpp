// SPDX-License-Identifier: Apache-2.0
/// Failed allocations: the heap counts them with their sizes, and check() describes the heap.
#include "heap/kernels.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace quarry::failures_test {
namespace {

using namespace quarry::testing;
using ::testing::IsSubstring;

template <class Ref>
struct allocate_once {
  Ref heap;
  std::uint64_t size;
  QUARRY_DEVICE void operator()() const { (void)heap.malloc(size); }
};
template <class Heap>
void allocate_in_lanes(const Heap& h, std::uint32_t lanes, std::uint64_t size) {
  launch<here>({(lanes + 127) / 128, lanes < 128 ? lanes : 128},
               allocate_once<typename Heap::ref_type>{h.ref(), size});
}

template <class Exception, class Heap>
std::string message_of(const Heap& h) {
  try {
    h.check();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

TEST(Failures, AreCountedWithTheirFirstAndLargestSize) {
  const heap<growing_bump, here> h(64_KiB);
  EXPECT_EQ(h.failures().count, 0u);
  allocate_in_lanes(h, 1, 1u << 20);
  allocate_in_lanes(h, 1, 1u << 22);
  allocate_in_lanes(h, 1, 1u << 18);
  const allocation_failures f = h.failures();
  EXPECT_EQ(f.count, 3u);
  EXPECT_EQ(f.first, 1u << 20);
  EXPECT_EQ(f.largest, 1u << 22);
  EXPECT_EQ(h.statistics().failures.count, 3u);
}

TEST(Failures, OfManyLanesAreAllCounted) {
  const heap<cfmalloc, here> h(64_KiB);
  allocate_in_lanes(h, 4096, 100'000);
  EXPECT_EQ(h.failures().count, 4096u);
  EXPECT_EQ(h.failures().first, 100'000u);
}

TEST(Failures, DoNotIncludeRequestsThatWereServedOrEmpty) {
  const heap<growing_bump, here> h(64_KiB);
  allocate_in_lanes(h, 1024, 64);
  EXPECT_EQ(h.failures().count, 0u);
  allocate_in_lanes(h, 10, 64);
  EXPECT_EQ(h.failures().count, 10u);
  allocate_in_lanes(h, 10, 0);
  EXPECT_EQ(h.failures().count, 10u) << "malloc(0) is not a failed allocation";
}

TEST(Failures, OfTheHostAreCounted) {
  const heap<growing_bump, here> h(64_KiB);
  EXPECT_EQ(h.allocate(1u << 20), nullptr);
  EXPECT_EQ(h.failures().count, 1u);
}

TEST(Failures, MakeCheckThrowADescriptionOfTheHeap) {
  const heap<cfmalloc, here> h(1_MiB);
  h.check();
  void* const p = h.allocate(512u << 10);
  allocate_in_lanes(h, 7, 768u << 10);
  const std::string text = message_of<allocation_failed>(h);
  for (const char* part :
       {"7 allocations failed", "first of 768 KiB", "largest of 768 KiB", "pool has 1 MiB",
        "1 blocks are live", "512 KiB in use", "make the heap larger"})
    EXPECT_PRED_FORMAT2(IsSubstring, part, text);
  h.deallocate(p);
}

TEST(Failures, OfAHeapThatCanGrowNameItsMaximum) {
  const heap<growing_bump, here> h(2_MiB, {.max = 32_MiB});
  allocate_in_lanes(h, 1, 4u << 20);
  EXPECT_PRED_FORMAT2(IsSubstring, "can make it 32 MiB", message_of<allocation_failed>(h));
}

TEST(Failures, AreClearedOnRequestAndByReset) {
  heap<growing_bump, here> h(64_KiB);
  allocate_in_lanes(h, 1, 1u << 20);
  h.clear_failures();
  h.check();
  allocate_in_lanes(h, 1, 1u << 21);
  EXPECT_EQ(h.failures().first, 1u << 21);
  h.reset();
  EXPECT_EQ(h.failures().count, 0u);
}

TEST(Failures, AreCountedPerHeap) {
  const heap<growing_bump, here> a(64_KiB);
  const heap<growing_bump, here> b(64_KiB);
  allocate_in_lanes(a, 3, 1u << 20);
  EXPECT_EQ(a.failures().count, 3u);
  EXPECT_EQ(b.failures().count, 0u);
}

TEST(CheckEmpty, ThrowsIfBlocksAreLive) {
  const heap<cfmalloc, here> h(1_MiB);
  h.check_empty();
  void* const a = h.allocate(1024);
  void* const b = h.allocate(1024);
  try {
    h.check_empty();
    FAIL() << "two blocks are live";
  } catch (const blocks_leaked& e) {
    EXPECT_PRED_FORMAT2(IsSubstring, "2 blocks, 2 KiB", e.what());
  }
  h.deallocate(a);
  h.deallocate(b);
  h.check_empty();
}

}  // namespace
}  // namespace quarry::failures_test

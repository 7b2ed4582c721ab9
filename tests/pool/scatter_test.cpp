// SPDX-License-Identifier: Apache-2.0
/// The guarantees of scatter beyond the allocator contract: pages, capacities, runs, usable
/// fraction.

#include <quarry/heap.hpp>
#include <quarry/pool/scatter/scatter.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry::scatter_test {
namespace {

using here = default_backend;
using simt::global_thread;

// ---- arithmetic --------------------------------------------------------------------------------

/// Every request fits in its chunk, the chunk is the largest with its capacity, and chunk_at()
/// inverts the mapping from a chunk to its address.
template <std::uint64_t PageBytes>
constexpr bool cuts_pages_well() {
  using pool = scatter<PageBytes>;
  constexpr std::uint64_t unit = std::max<std::uint64_t>(16, PageBytes / 1024);
  for (std::uint64_t n = 1; n <= PageBytes / 2; n += unit / 2 - 1) {
    const std::uint32_t capacity = pool::capacity_for(n);
    const std::uint64_t chunk = pool::chunk_bytes(capacity);
    if (chunk < n || chunk % 16 != 0 || capacity * chunk > PageBytes) return false;
    if (capacity * (chunk + unit) <= PageBytes || pool::capacity_for(chunk) != capacity)
      return false;
    for (const std::uint32_t i : {0u, 1u, capacity / 2, capacity - 1})
      if (pool::chunk_at(static_cast<std::uint32_t>(i * chunk / unit), capacity) != i) return false;
  }
  return true;
}
static_assert(cuts_pages_well<64>() && cuts_pages_well<128>() && cuts_pages_well<4096>());
static_assert(cuts_pages_well<16384>());

TEST(ScatterState, FindsTheChunkOfEveryAddress) {
  for (std::uint32_t n = 1; n <= 2048; ++n) {
    const std::uint32_t capacity = scatter<>::capacity_for(n);
    const auto units = static_cast<std::uint32_t>(scatter<>::chunk_bytes(capacity) / 16);
    for (std::uint32_t i = 0; i < capacity; ++i)
      ASSERT_EQ(scatter<>::chunk_at(i * units, capacity), i);
  }
}

TEST(ScatterState, HasNoOwnerWhenTheCountIsZero) {
  constexpr scatter_state fresh(0);
  static_assert(fresh.empty() && !fresh.full() && fresh.room(7) == 7 && fresh.room(1024) == 1024);
  constexpr scatter_state two = fresh.reserve(7, 2);
  static_assert(!two.empty() && two.count() == 2 && two.capacity() == 7 && two.cursor() == 2);
  static_assert(two.room(7) == 5 && two.room(8) == 0);
  constexpr scatter_state full = two.reserve(7, 5);
  static_assert(full.full() && full.room(7) == 0 && full.cursor() == 0);
  constexpr scatter_state freed(full.word() - 7);
  static_assert(freed.empty() && freed.capacity() == 7 && freed.room(1024) == 1024);
  constexpr scatter_state most = freed.reserve(1024, 1024);
  static_assert(most.full() && most.capacity() == 1024 && most.count() == 1024 && !most.is_run());
  static_assert(scatter_state::used_before().empty() && scatter_state::used_before().word() != 0);
}

TEST(ScatterState, StoresTheLengthOfARun) {
  constexpr std::uint32_t longest = 1u << 27;
  static_assert(scatter_state::run(longest).run_length() == longest);
  static_assert(scatter_state::run(0).is_run() && scatter_state::run(0).full());
  static_assert(!scatter_state::run(longest).empty() && scatter_state::run(longest).room(4) == 0);
}

// ---- filling -----------------------------------------------------------------------------------

/// Every lane allocates blocks until an allocation fails, and stores them.
template <class Ref>
struct fill_pool {
  Ref heap;
  std::uint64_t size;
  void** blocks;
  std::uint64_t room;
  std::uint64_t* taken;
  QUARRY_DEVICE void operator()() const {
    while (void* p = heap.malloc(size)) {
      const std::uint64_t i = simt::atomic_ref<std::uint64_t>(*taken).fetch_add(1, simt::relaxed);
      if (i < room) blocks[i] = p;
    }
  }
};

/// Frees one block in `one_in`, chosen by a hash of its index, and replaces it by nullptr.
template <class Ref>
struct free_some {
  Ref heap;
  void** blocks;
  std::uint64_t count;
  std::uint32_t one_in;
  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = global_thread(); i < count; i += simt::grid_threads()) {
      if (simt::scramble(static_cast<std::uint32_t>(i)) % one_in != 0) continue;
      heap.free(blocks[i]);
      blocks[i] = nullptr;
    }
  }
};

template <class Allocator>
class filled_heap {
 public:
  using heap_type = heap<Allocator, here>;
  using ref = typename heap_type::ref_type;

  filled_heap(std::uint64_t pool, std::uint64_t size)
      : heap_(bytes(pool)), size_(size), blocks_(pool / size + 1) {}

  /// Fills the pool. Returns the number of new blocks.
  std::uint64_t fill(const grid& lanes) {
    simt::array<std::uint64_t, here> taken(1);
    const std::uint64_t room = blocks_.size() - held_;
    launch<here>(lanes,
                 fill_pool<ref>{heap_.ref(), size_, blocks_.data() + held_, room, taken.data()});
    const std::uint64_t more = taken.to_host()[0];
    EXPECT_LE(more, room) << "more blocks than fit in the pool";
    held_ += std::min(more, room);
    EXPECT_EQ(heap_.check_invariants(), "");
    return more;
  }
  /// Frees one block in n, chosen at random. Returns their number.
  std::uint64_t free_one_in(std::uint32_t n) {
    launch<here>({8, 128}, free_some<ref>{heap_.ref(), blocks_.data(), held_, n});
    std::vector<void*> kept = blocks_.to_host();
    kept.resize(held_);
    const auto freed = static_cast<std::uint64_t>(std::erase(kept, nullptr));
    held_ -= freed;
    kept.resize(blocks_.size());
    blocks_.from_host(kept);
    EXPECT_EQ(heap_.check_invariants(), "");
    return freed;
  }
  void expect_disjoint() const {
    std::vector<void*> held = blocks_.to_host();
    held.resize(held_);
    std::sort(held.begin(), held.end());
    for (std::size_t i = 1; i < held.size(); ++i)
      ASSERT_GE(static_cast<std::byte*>(held[i]) - static_cast<std::byte*>(held[i - 1]),
                static_cast<std::ptrdiff_t>(size_));
  }
  const heap_type& get() const { return heap_; }

 private:
  heap_type heap_;
  std::uint64_t size_;
  simt::array<void*, here> blocks_;
  std::uint64_t held_ = 0;
};

constexpr std::uint64_t pool_size = 6u << 20;  // 1536 pages of 4 KiB, 48 groups
constexpr std::uint64_t pool_pages = pool_size / 4096;
constexpr grid many = {8, 128};

TEST(Scatter, AllocatesEveryChunkOfEveryPage) {
  for (const std::uint64_t size : {16u, 64u, 100u, 256u, 1000u, 2048u}) {
    filled_heap<scatter<>> h(pool_size, size);
    EXPECT_EQ(h.fill(many), pool_pages * scatter<>::capacity_for(size)) << size;
    h.expect_disjoint();
  }
}

TEST(Scatter, AllocatesEveryPageToLargeBlocks) {
  for (const std::uint64_t size : {2049u, 4096u}) {
    filled_heap<scatter<>> h(pool_size, size);
    EXPECT_EQ(h.fill(many), pool_pages) << size;
    h.expect_disjoint();
  }
}

TEST(Scatter, PacksRunsOfPagesWithoutGaps) {
  for (const std::uint64_t length : {2u, 3u, 16u}) {
    filled_heap<scatter<>> one_lane(pool_size, length * 4096);
    EXPECT_EQ(one_lane.fill({1, 1}), pool_pages / length);
    filled_heap<scatter<>> many_lanes(pool_size, length * 4096);
    EXPECT_GE(many_lanes.fill(many), pool_pages / length * 9 / 10) << "concurrent lanes";
    many_lanes.expect_disjoint();
  }
}

TEST(Scatter, ReusesAllChunksAfterRandomFrees) {
  for (const std::uint64_t size : {64u, 256u, 1000u, 4096u}) {
    filled_heap<scatter<>> h(pool_size, size);
    h.fill(many);
    for (const std::uint32_t one_in : {2u, 3u, 7u, 2u}) {
      const std::uint64_t freed = h.free_one_in(one_in);
      EXPECT_EQ(h.fill(many), freed) << size;
    }
    h.expect_disjoint();
  }
}

TEST(Scatter, ServesALoneLaneToTheLastChunk) {
  filled_heap<scatter<>> h(1u << 20, 1000);
  EXPECT_EQ(h.fill({1, 1}), 256u * 4);
  const std::uint64_t freed = h.free_one_in(5);
  EXPECT_EQ(h.fill({1, 1}), freed);
}

TEST(Scatter, WorksWithPagesOfManySizes) {
  const auto fill = [](auto pages, std::uint64_t pool, std::uint64_t size, std::uint64_t expected) {
    filled_heap<decltype(pages)> h(pool, size);
    EXPECT_EQ(h.fill(many), expected);
    EXPECT_EQ(h.fill({1, 32}), 0u);
    h.expect_disjoint();
  };
  fill(scatter<64>(), 64 * 100, 16, 400);
  fill(scatter<1024>(), 1 << 20, 300, 3 * 1024);
  fill(scatter<16384>(), 16384 * 5, 16, 1024 * 5);
  fill(scatter<65536>(), 1 << 22, 1000, 64 * 64);
  fill(scatter<1u << 20>(), 1u << 23, 1000, 1024 * 8);
  fill(scatter<1u << 26>(), std::uint64_t{1} << 28, 3u << 20, 21 * 4);
}

TEST(Scatter, ServesAPoolOfOnePage) {
  filled_heap<scatter<>> h(4096, 500);
  EXPECT_EQ(h.fill({2, 64}), 8u);
}

// ---- pages change their capacity ---------------------------------------------------------------

TEST(Scatter, DividesEmptyPagesAnewForOtherSizes) {
  const heap<scatter<>, here> h(pool_size);
  simt::array<void*, here> blocks(pool_size / 16);
  simt::array<std::uint64_t, here> taken(1);
  using ref = heap<scatter<>, here>::ref_type;
  for (const std::uint64_t size : {16u, 2000u, 70u, 9000u, 300u}) {
    taken.fill_zero();
    launch<here>(many, fill_pool<ref>{h.ref(), size, blocks.data(), blocks.size(), taken.data()});
    const std::uint64_t got = taken.to_host()[0];
    const std::uint64_t most = size <= 2048 ? pool_pages * scatter<>::capacity_for(size)
                                            : pool_pages / ((size + 4095) / 4096);
    EXPECT_LE(got, most) << size;
    EXPECT_GE(got, size <= 2048 ? most : most * 9 / 10) << size;
    launch<here>(many, free_some<ref>{h.ref(), blocks.data(), got, 1});
    EXPECT_EQ(h.check_invariants(), "");
    EXPECT_EQ(h.statistics().free_bytes, pool_size);
    EXPECT_EQ(h.statistics().largest_free, pool_size);
  }
  EXPECT_NE(h.allocate(pool_size), nullptr) << "a run of all pages";
}

TEST(Scatter, ALoneLaneFillsAPageBeforeItUsesTheNext) {
  const heap<scatter<>, here> h(pool_size);
  for (int i = 0; i < 200; ++i) ASSERT_NE(h.allocate(256), nullptr);
  const heap_statistics s = h.statistics();
  EXPECT_EQ(s.free_bytes, pool_size - 200 * 256);
  EXPECT_GE(*s.largest_free, pool_size - 13 * 4096 - 32 * 4096);
  ASSERT_EQ(s.classes.size(), 1u);
  EXPECT_EQ(s.classes[0].live_blocks, 200u);
  EXPECT_EQ(s.classes[0].free_blocks, 13u * 16 - 200) << "13 pages hold 200 chunks";
}

// ---- failed allocations ------------------------------------------------------------------------

/// Allocates blocks until an allocation fails, so that the heap has recorded a failed search.
std::vector<void*> allocate_all(const heap<scatter<>, here>& h, std::size_t size) {
  std::vector<void*> blocks;
  while (void* p = h.allocate(size)) blocks.push_back(p);
  return blocks;
}

TEST(Scatter, ServesAfterAFailureOnceAChunkIsFree) {
  const heap<scatter<>, here> h(40 * 4096);
  const std::vector<void*> blocks = allocate_all(h, 256);
  ASSERT_EQ(blocks.size(), 40u * 16);
  EXPECT_EQ(h.allocate(256), nullptr);
  h.deallocate(blocks[77]);
  EXPECT_EQ(h.allocate(1000), nullptr) << "the page is not empty";
  EXPECT_EQ(h.allocate(256), blocks[77]);
  EXPECT_EQ(h.allocate(256), nullptr);
}

TEST(Scatter, ServesAfterAFailureOnceAPageIsEmpty) {
  const heap<scatter<>, here> h(40 * 4096);
  const std::vector<void*> blocks = allocate_all(h, 1024);
  EXPECT_EQ(h.allocate(100), nullptr);
  EXPECT_EQ(h.allocate(4096), nullptr);
  for (int i = 8; i < 12; ++i) {  // one page: a lone lane fills pages one after the other
    EXPECT_EQ(h.allocate(100), nullptr);
    EXPECT_EQ(h.allocate(4096), nullptr);
    h.deallocate(blocks[i]);
  }
  void* page = h.allocate(3000);
  EXPECT_NE(page, nullptr);
  EXPECT_EQ(h.allocate(100), nullptr);
  h.deallocate(page);
  EXPECT_NE(h.allocate(100), nullptr);
}

TEST(Scatter, ServesARunAfterAFailureOnceAdjacentPagesAreEmpty) {
  const heap<scatter<>, here> h(40 * 4096);
  std::vector<void*> pages = allocate_all(h, 4096);
  std::sort(pages.begin(), pages.end());
  ASSERT_EQ(pages.size(), 40u);
  EXPECT_EQ(h.allocate(3 * 4096), nullptr);
  for (const int i : {30, 32, 34}) h.deallocate(pages[i]);
  EXPECT_EQ(h.allocate(3 * 4096), nullptr);
  h.deallocate(pages[33]);
  EXPECT_EQ(h.allocate(4 * 4096), nullptr) << "only three empty pages are adjacent";
  EXPECT_EQ(h.allocate(3 * 4096), pages[32]);
  EXPECT_EQ(h.allocate(2 * 4096), nullptr);
  EXPECT_EQ(h.allocate(1 * 4096), pages[30]);
}

// ---- statistics --------------------------------------------------------------------------------

TEST(Scatter, CountsBlocksBytesAndClasses) {
  const heap<scatter<>, here> h(pool_size);
  std::vector<void*> blocks;
  for (const std::size_t n : {850u, 1000u, 1024u, 17u, 5000u}) blocks.push_back(h.allocate(n));
  const heap_statistics s = h.statistics();
  EXPECT_EQ(s.pool_bytes, pool_size);
  EXPECT_EQ(s.live_blocks, 5u);
  EXPECT_EQ(s.live_bytes, 3 * 1024 + 32 + 2 * 4096u);
  ASSERT_EQ(s.classes.size(), 2u);
  EXPECT_EQ(s.classes[0].block_bytes, 32u);
  EXPECT_EQ(s.classes[1].block_bytes, 1024u);
  EXPECT_EQ(s.classes[1].live_blocks, 3u) << "sizes with equal capacity share a class";
  EXPECT_EQ(s.classes[1].free_blocks, 1u);
  EXPECT_EQ(s.free_bytes, pool_size - *s.live_bytes);
  for (void* p : blocks) h.deallocate(p);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  EXPECT_EQ(h.statistics().largest_free, pool_size);
}

TEST(Scatter, ServesTheLargestFreeBlockOfItsStatistics) {
  const heap<scatter<>, here> h(pool_size);
  for (int i = 0; i < 20; ++i) ASSERT_NE(h.allocate(i % 2 == 0 ? 30'000 : 64), nullptr);
  const std::uint64_t largest = *h.statistics().largest_free;
  EXPECT_EQ(h.allocate(largest + 1), nullptr);
  EXPECT_NE(h.allocate(largest), nullptr);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(Scatter, NeedsLessThanOnePercentOfThePoolForMetadata) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  EXPECT_LT(metadata_bytes<scatter<>>(gib), gib / 100);
  EXPECT_LT(metadata_bytes<scatter<65536>>(gib), gib / 400);
  EXPECT_LT(metadata_bytes<scatter<>>(100 * gib), gib);
}

}  // namespace
}  // namespace quarry::scatter_test

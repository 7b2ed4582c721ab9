// SPDX-License-Identifier: Apache-2.0
#include "layer/instrumented.hpp"
#include "layer/kernels.hpp"

#include <quarry/layer/arena_per_warp.hpp>
#include <quarry/layer/warp_arena.hpp>
#include <quarry/pool/circular/circular.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace warp_arena_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

using arenas = warp_arena<instrumented<cfmalloc>>;
using small_arenas = warp_arena<instrumented<cfmalloc>, 512, 16, 4>;
using no_superblocks = warp_arena<instrumented<cfmalloc>, 0>;

static_assert(freeing_allocator<arenas> && allocator<arena_per_warp<cfmalloc>>);
static_assert(std::is_trivially_copyable_v<arenas::warp> && sizeof(arenas::warp) == 16);

QUARRY_DEVICE bool all_are(const std::uint32_t* words, std::uint64_t n, std::uint32_t value) {
  for (std::uint64_t i = 0; i < n; ++i)
    if (words[i] != value) return false;
  return true;
}

/// Listing 1 of the paper: each round allocates blocks, uses them and calls tidy_up.
template <class Ref>
struct listing_1 {
  Ref heap;
  std::uint32_t rounds, blocks, words;
  std::uint32_t* failures;
  QUARRY_DEVICE void operator()() const {
    const auto me = static_cast<std::uint32_t>(simt::global_thread());
    auto warp = heap.allocator().start();
    const std::uint32_t mine = rounds - me % 3;  // lanes have different numbers of rounds
    for (std::uint32_t round = 0; round < mine; ++round) {
      std::uint32_t* got[8] = {};
      for (std::uint32_t b = 0; b < blocks; ++b) {
        got[b] = static_cast<std::uint32_t*>(warp.alloc(words * 4));
        if (got[b] == nullptr) continue;
        for (std::uint32_t i = 0; i < words; ++i) got[b][i] = me * 100 + b;
      }
      for (std::uint32_t b = 0; b < blocks; ++b)
        if (got[b] == nullptr || !all_are(got[b], words, me * 100 + b))
          simt::atomic_ref<std::uint32_t>(*failures).add(1, simt::relaxed);
      warp.tidy_up();
    }
    warp.end();
    if (warp.alloc(16) != nullptr) simt::atomic_ref<std::uint32_t>(*failures).add(1, simt::relaxed);
  }
};

template <class Arena>
void expect_listing_1_works(std::uint64_t pool, std::uint32_t words) {
  const heap<Arena, here> h{bytes(pool)};
  simt::array<std::uint32_t, here> failures(1);
  launch<here>({4, 96}, listing_1<typename heap<Arena, here>::ref_type>{h.ref(), 5, 6, words,
                                                                        failures.data()});
  EXPECT_EQ(failures.to_host()[0], 0u);
  EXPECT_EQ(arenas_open(h.statistics()), 0u);
  EXPECT_EQ(h.statistics().live_blocks, 0u) << "the upstream has no live block";
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(WarpArena, ServesListing1) { expect_listing_1_works<arenas>(16u << 20, 16); }
TEST(WarpArena, ServesListing1FromSmallSuperblocks) {
  expect_listing_1_works<small_arenas>(8u << 20, 9);
}
TEST(WarpArena, ServesListing1WithoutSuperblocks) {
  expect_listing_1_works<no_superblocks>(8u << 20, 16);
}
TEST(WarpArena, ServesSumsLargerThanASuperblock) {
  expect_listing_1_works<small_arenas>(8u << 20, 100);
}

/// Every lane calls alloc `times` times and stores the results; then it calls end, if `ends`.
template <class Ref>
struct alloc_times {
  Ref heap;
  std::uint64_t size;
  std::uint32_t times;
  bool ends;
  void** out;
  QUARRY_DEVICE void operator()() const {
    auto warp = heap.allocator().start();
    for (std::uint32_t i = 0; i < times; ++i)
      out[simt::global_thread() * times + i] = warp.alloc(size);
    if (ends) warp.end();
  }
};

TEST(WarpArena, CallsTheUpstreamOnceIfASuperblockSuffices) {
  const heap<arenas, here> h(bytes(1u << 20));
  simt::array<void*, here> out(32 * 8);
  launch<here>({1, 32},
               alloc_times<heap<arenas, here>::ref_type>{h.ref(), 64, 8, true, out.data()});
  const call_counts calls = calls_of(h.statistics());
  if (std::is_same_v<here, cpu>) {
    EXPECT_EQ(calls.mallocs, 1u);
  }
  EXPECT_EQ(calls.frees, calls.mallocs);
}

TEST(WarpArena, PlacesTheBlocksOfAWarpWithoutGaps) {
  const heap<arenas, here> h(bytes(1u << 20));
  simt::array<void*, here> out(32);
  launch<here>({1, 32},
               alloc_times<heap<arenas, here>::ref_type>{h.ref(), 17, 1, true, out.data()});
  std::vector<void*> got = out.to_host();
  std::sort(got.begin(), got.end());
  for (std::size_t i = 1; i < got.size(); ++i)
    EXPECT_EQ(static_cast<std::byte*>(got[i]) - static_cast<std::byte*>(got[i - 1]), 32)
        << "sizes are multiples of 16";
}

TEST(WarpArena, CountsOpenArenas) {
  const heap<arenas, here> h(bytes(4u << 20));
  simt::array<void*, here> out(4 * 32);
  launch<here>({4, 32},
               alloc_times<heap<arenas, here>::ref_type>{h.ref(), 64, 1, false, out.data()});
  EXPECT_GE(arenas_open(h.statistics()), 4u);
}

/// Listing 2 of the paper: some lanes call start, and one of them calls end.
template <class Ref>
struct listing_2 {
  Ref heap;
  void** out;
  QUARRY_DEVICE void operator()() const {
    typename Ref::allocator_type::warp warp;
    if (simt::thread_id() % 5 == 0) warp = heap.allocator().start();
    out[simt::thread_id()] = warp.alloc(64);
    if (simt::thread_id() == 5) warp.end();
  }
};

TEST(WarpArena, HandlesListing2) {
  const heap<arenas, here> h(bytes(1u << 20));
  simt::array<void*, here> out(32);
  launch<here>({1, 32}, listing_2<heap<arenas, here>::ref_type>{h.ref(), out.data()});
  const std::vector<void*> got = out.to_host();
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i] != nullptr, i % 5 == 0)
        << "alloc without an arena returns nullptr, lane " << i;
  EXPECT_GE(arenas_open(h.statistics()), 1u) << "six lanes have not called end";
}

/// The third strategy of the paper: a second kernel reads the blocks of the first and ends the
/// arenas.
template <class Ref>
struct write_and_keep {
  Ref heap;
  std::uint32_t** blocks;
  void** kept;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = simt::global_thread();
    auto warp = heap.allocator().start();
    blocks[me] = static_cast<std::uint32_t*>(warp.alloc(4));
    if (blocks[me] != nullptr) *blocks[me] = static_cast<std::uint32_t>(me) * 7;
    kept[me] = warp.keep();
  }
};
template <class Ref>
struct read_and_end {
  Ref heap;
  std::uint32_t** blocks;
  void** kept;
  std::uint32_t* failures;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = simt::global_thread();
    auto warp = heap.allocator().resume(kept[me]);
    bool good = blocks[me] != nullptr && *blocks[me] == me * 7;
    good = good && warp.alloc(100) != nullptr;
    if (!good) simt::atomic_ref<std::uint32_t>(*failures).add(1, simt::relaxed);
    warp.end();
  }
};

TEST(WarpArena, StaysOpenForALaterKernelIfKept) {
  const heap<arenas, here> h(bytes(16u << 20));
  using ref = heap<arenas, here>::ref_type;
  simt::array<std::uint32_t*, here> blocks(256);
  simt::array<void*, here> kept(256);
  simt::array<std::uint32_t, here> failures(1);
  launch<here>({2, 128}, write_and_keep<ref>{h.ref(), blocks.data(), kept.data()});
  EXPECT_GT(arenas_open(h.statistics()), 0u);
  launch<here>({4, 64}, read_and_end<ref>{h.ref(), blocks.data(), kept.data(), failures.data()});
  EXPECT_EQ(failures.to_host()[0], 0u);
  EXPECT_EQ(arenas_open(h.statistics()), 0u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(WarpArena, ReturnsNullptrForZeroAndOversize) {
  const heap<arenas, here> h(bytes(1u << 20));
  simt::array<void*, here> out(32);
  for (const std::uint64_t n :
       {std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0} - 15, std::uint64_t{1} << 40}) {
    launch<here>({1, 32},
                 alloc_times<heap<arenas, here>::ref_type>{h.ref(), n, 1, true, out.data()});
    for (void* p : out.to_host()) EXPECT_EQ(p, nullptr) << n;
  }
  EXPECT_EQ(arenas_open(h.statistics()), 0u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(WarpArena, ServesSingleBlocksIfTheUpstreamHasNoSuperblock) {
  const heap<warp_arena<instrumented<cfmalloc, 4096>>, here> h(bytes(1u << 20));
  using ref = heap<warp_arena<instrumented<cfmalloc, 4096>>, here>::ref_type;
  simt::array<void*, here> out(32 * 200);
  launch<here>({1, 32}, alloc_times<ref>{h.ref(), 64, 200, true, out.data()});
  for (void* p : out.to_host()) EXPECT_NE(p, nullptr);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(WarpArena, FreesEverythingAfterExhaustion) {
  const heap<small_arenas, here> h(bytes(32u << 10));
  using ref = heap<small_arenas, here>::ref_type;
  simt::array<void*, here> out(256 * 40);
  launch<here>({2, 128}, alloc_times<ref>{h.ref(), 48, 40, true, out.data()});
  const std::vector<void*> got = out.to_host();
  EXPECT_GT(std::count(got.begin(), got.end(), nullptr), 0);
  EXPECT_EQ(arenas_open(h.statistics()), 0u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(WarpArena, ForwardsMallocAndFreeToTheUpstream) {
  const heap<arenas, here> h(bytes(1u << 20));
  void* const p = h.allocate(100);
  EXPECT_NE(p, nullptr);
  h.deallocate(p);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(ArenaPerWarp, ServesManyWarpsFromOnePool) {
  const heap<arena_per_warp<cfmalloc>, here> h(bytes(4u << 20));
  const auto got = malloc_by_block(h, std::vector<std::uint64_t>(1024, 500));
  for (const request& r : got) EXPECT_NE(r.block, nullptr);
  EXPECT_EQ(h.check_invariants(), "");
}

}  // namespace
}  // namespace warp_arena_test

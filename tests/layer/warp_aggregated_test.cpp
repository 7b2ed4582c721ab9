// SPDX-License-Identifier: Apache-2.0
#include "layer/kernels.hpp"
#include "layer/watched.hpp"

#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

using namespace quarry;
using namespace quarry::testing;

static_assert(freeing_allocator<warp_aggregated<cfmalloc>>);
static_assert(allocator<warp_aggregated<bump>> && !freeing_allocator<warp_aggregated<bump>>);
static_assert(sizeof(warp_aggregated<cfmalloc>) == sizeof(cfmalloc),
              "the layer has no state of its own");

// A GPU promises no grouping of lanes, though it hardly ever splits a warp in a straight line.
constexpr bool warps_stay_together = std::is_same_v<here, cpu>;

using watched_pool = watched<cfmalloc>;
using coalescing = heap<warp_aggregated<watched_pool>, here>;

TEST(Coalesce, AsksTheUpstreamOnceForAWarp) {
  const coalescing h(bytes(1u << 20));
  const auto got = malloc_together(h, std::vector<std::uint64_t>(32, 64));
  for (const request& r : got) EXPECT_NE(r.block, nullptr);
  const call_counts calls = calls_of(h.statistics());
  if (warps_stay_together) {
    EXPECT_EQ(calls.mallocs, 1u);
    EXPECT_EQ(calls.last_size, 8u + 32 * 80);
  }
  EXPECT_LT(calls.mallocs, 32u);
}

TEST(Coalesce, LaysAnAreaOutAsThePaperDoes) {
  const coalescing h(bytes(1u << 20));
  const auto got = malloc_together(h, {56, 56, 40, 120});
  if (!warps_stay_together) GTEST_SKIP() << "lanes may come apart";
  EXPECT_EQ(calls_of(h.statistics()).last_size, 312u);
  EXPECT_EQ(got[1].block - got[0].block, 64);
  EXPECT_EQ(got[2].block - got[1].block, 64);
  EXPECT_EQ(got[3].block - got[2].block, 48);
  for (const request& r : got) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(r.block) % 16, 0u);
}

TEST(Coalesce, GivesAnAreaBackWithItsLastCompartment) {
  const coalescing h(bytes(1u << 20));
  const auto got = malloc_together(h, std::vector<std::uint64_t>(32, 100));
  const std::uint64_t areas = calls_of(h.statistics()).mallocs;
  free_together(h, got, 0, 31);
  EXPECT_LT(calls_of(h.statistics()).frees, areas) << "a compartment is still in use";
  free_together(h, got, 31, 32);
  EXPECT_EQ(calls_of(h.statistics()).frees, areas);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(Coalesce, LeavesALoneLaneAndLargeRequestsAlone) {
  const coalescing h(bytes(1u << 20));
  malloc_together(h, {64});
  EXPECT_EQ(calls_of(h.statistics()).last_size, 80u);
  const auto got = malloc_together(h, std::vector<std::uint64_t>(8, 1025));
  EXPECT_EQ(calls_of(h.statistics()).mallocs, 9u);
  EXPECT_EQ(calls_of(h.statistics()).last_size, 1041u);
  free_together(h, got, 3, 4);
  EXPECT_EQ(calls_of(h.statistics()).frees, 1u) << "a large block is given back at once";
}

TEST(Coalesce, ServesNothingAndTooMuchBesideOthers) {
  const coalescing h(bytes(1u << 20));
  const auto got =
      malloc_together(h, {64, 0, ~std::uint64_t{0}, 2u << 20, 64, ~std::uint64_t{0} - 15});
  for (const std::size_t i : {1u, 2u, 3u, 5u}) EXPECT_EQ(got[i].block, nullptr) << i;
  EXPECT_NE(got[0].block, nullptr);
  EXPECT_NE(got[4].block, nullptr);
  free_together(h, got, 0, 6);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
}

TEST(Coalesce, LetsEachLaneAskAloneWhenAnAreaIsRefused) {
  const heap<warp_aggregated<watched<cfmalloc, 256>>, here> h(bytes(1u << 20));
  const auto got = malloc_together(h, std::vector<std::uint64_t>(32, 64));
  for (const request& r : got) EXPECT_NE(r.block, nullptr);
  if (warps_stay_together) {
    EXPECT_EQ(calls_of(h.statistics()).mallocs, 32u);
  }
  free_together(h, got, 0, 32);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
}

TEST(Coalesce, NeedsNoHeadersOverAPoolThatFreesNothing) {
  const heap<warp_aggregated<bump>, here> h(bytes(1u << 20));
  auto got = malloc_together(h, std::vector<std::uint64_t>(32, 16));
  EXPECT_EQ(h.statistics().live_bytes, 512u);
  std::sort(got.begin(), got.end(), [](auto& a, auto& b) { return a.block < b.block; });
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].block - got[0].block, 16 * std::ptrdiff_t(i));
}

TEST(Coalesce, SharesTheLastOfAPoolThatIsNearlyFull) {
  const heap<warp_aggregated<bump>, here> h(bytes(256u));
  const auto got = malloc_together(h, std::vector<std::uint64_t>(32, 16));
  EXPECT_EQ(std::count_if(got.begin(), got.end(), [](auto& r) { return r.block != nullptr; }), 16);
}

}  // namespace

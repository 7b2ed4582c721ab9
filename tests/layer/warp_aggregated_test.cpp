// SPDX-License-Identifier: Apache-2.0
#include "layer/instrumented.hpp"
#include "layer/kernels.hpp"

#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace warp_aggregated_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

static_assert(freeing_allocator<warp_aggregated<cfmalloc>>);
static_assert(allocator<warp_aggregated<bump>> && !freeing_allocator<warp_aggregated<bump>>);
static_assert(sizeof(warp_aggregated<cfmalloc>) == sizeof(cfmalloc),
              "the layer has no state of its own");

// CUDA does not guarantee convergence, though a GPU hardly ever splits a warp in straight-line
// code.
constexpr bool warps_stay_converged = std::is_same_v<here, cpu>;

using instrumented_pool = instrumented<cfmalloc>;
using aggregated_heap = heap<warp_aggregated<instrumented_pool>, here>;

TEST(WarpAggregated, CallsTheUpstreamOncePerWarp) {
  const aggregated_heap h(bytes(1u << 20));
  const auto got = malloc_by_block(h, std::vector<std::uint64_t>(32, 64));
  for (const request& r : got) EXPECT_NE(r.block, nullptr);
  const call_counts calls = calls_of(h.statistics());
  if (warps_stay_converged) {
    EXPECT_EQ(calls.mallocs, 1u);
    EXPECT_EQ(calls.last_size, 8u + 32 * 80);
  }
  EXPECT_LT(calls.mallocs, 32u);
}

TEST(WarpAggregated, HasTheAreaLayoutOfThePaper) {
  const aggregated_heap h(bytes(1u << 20));
  const auto got = malloc_by_block(h, {56, 56, 40, 120});
  if (!warps_stay_converged) GTEST_SKIP() << "lanes may diverge";
  EXPECT_EQ(calls_of(h.statistics()).last_size, 312u);
  EXPECT_EQ(got[1].block - got[0].block, 64);
  EXPECT_EQ(got[2].block - got[1].block, 64);
  EXPECT_EQ(got[3].block - got[2].block, 48);
  for (const request& r : got) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(r.block) % 16, 0u);
}

TEST(WarpAggregated, FreesAnAreaWithItsLastCompartment) {
  const aggregated_heap h(bytes(1u << 20));
  const auto got = malloc_by_block(h, std::vector<std::uint64_t>(32, 100));
  const std::uint64_t areas = calls_of(h.statistics()).mallocs;
  free_by_block(h, got, 0, 31);
  EXPECT_LT(calls_of(h.statistics()).frees, areas) << "a compartment is still live";
  free_by_block(h, got, 31, 32);
  EXPECT_EQ(calls_of(h.statistics()).frees, areas);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
  EXPECT_EQ(h.check_invariants(), "");
}

TEST(WarpAggregated, ForwardsALoneLaneAndLargeRequests) {
  const aggregated_heap h(bytes(1u << 20));
  malloc_by_block(h, {64});
  EXPECT_EQ(calls_of(h.statistics()).last_size, 80u);
  const auto got = malloc_by_block(h, std::vector<std::uint64_t>(8, 1025));
  EXPECT_EQ(calls_of(h.statistics()).mallocs, 9u);
  EXPECT_EQ(calls_of(h.statistics()).last_size, 1041u);
  free_by_block(h, got, 3, 4);
  EXPECT_EQ(calls_of(h.statistics()).frees, 1u) << "the upstream frees a large block at once";
}

TEST(WarpAggregated, ReturnsNullptrForZeroAndOversizeAmongOtherRequests) {
  const aggregated_heap h(bytes(1u << 20));
  const auto got =
      malloc_by_block(h, {64, 0, ~std::uint64_t{0}, 2u << 20, 64, ~std::uint64_t{0} - 15});
  for (const std::size_t i : {1u, 2u, 3u, 5u}) EXPECT_EQ(got[i].block, nullptr) << i;
  EXPECT_NE(got[0].block, nullptr);
  EXPECT_NE(got[4].block, nullptr);
  free_by_block(h, got, 0, 6);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
}

TEST(WarpAggregated, AllocatesPerLaneWhenAnAreaFails) {
  const heap<warp_aggregated<instrumented<cfmalloc, 256>>, here> h(bytes(1u << 20));
  const auto got = malloc_by_block(h, std::vector<std::uint64_t>(32, 64));
  for (const request& r : got) EXPECT_NE(r.block, nullptr);
  if (warps_stay_converged) {
    EXPECT_EQ(calls_of(h.statistics()).mallocs, 32u);
  }
  free_by_block(h, got, 0, 32);
  EXPECT_EQ(h.statistics().live_bytes, 0u);
}

TEST(WarpAggregated, HasNoHeadersOverAnUpstreamWithoutFree) {
  const heap<warp_aggregated<bump>, here> h(bytes(1u << 20));
  auto got = malloc_by_block(h, std::vector<std::uint64_t>(32, 16));
  EXPECT_EQ(h.statistics().live_bytes, 512u);
  std::sort(got.begin(), got.end(), [](auto& a, auto& b) { return a.block < b.block; });
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].block - got[0].block, 16 * std::ptrdiff_t(i));
}

TEST(WarpAggregated, ServesSomeLanesFromANearlyFullPool) {
  const heap<warp_aggregated<bump>, here> h(bytes(256u));
  const auto got = malloc_by_block(h, std::vector<std::uint64_t>(32, 16));
  EXPECT_EQ(std::count_if(got.begin(), got.end(), [](auto& r) { return r.block != nullptr; }), 16);
}

}  // namespace
}  // namespace warp_aggregated_test

// SPDX-License-Identifier: Apache-2.0
/// counted: exact costs, and counts under explored schedules.
#include "check/effort.hpp"
#include "layer/word_pool.hpp"

#include <quarry/check/ledger.hpp>
#include <quarry/layer/buffer.hpp>
#include <quarry/layer/counted.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/pool/system_heap.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace counted_explore_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

/// The cost that the layer adds to a call: "atomics loads stores". The accesses of system_heap do
/// not count.
std::string added(const call_costs& c) {
  return per_call(c.atomics, c.calls) + " " + per_call(c.loads, c.calls) + " " +
         per_call(c.stores, c.calls);
}

TEST(CountedHeap, HasTheCostsThatItsHeaderStates) {
  const auto [lone, equal, mixed] = measure_costs<counted<system_heap>>().cases;
  EXPECT_EQ(added(lone.malloc), "3 0 1");
  EXPECT_EQ(added(lone.free), "2 1 0");
  EXPECT_EQ(added(equal.malloc), "3/32 0 1");
  EXPECT_EQ(added(equal.free), "1/16 1 0");
  EXPECT_EQ(added(mixed.malloc), "9/32 0 1") << "seven size classes";
  EXPECT_EQ(added(mixed.free), "1/16 1 0");
}

/// A lower and an upper bound of the live bytes. The peak lies between the maxima of the two
/// bounds.
struct peak_bounds {
  std::uint64_t lower = 0, upper = 0, max_lower = 0, max_upper = 0;
  void add_lower(std::uint64_t n) { max_lower = std::max(max_lower, lower += n); }
  void add_upper(std::uint64_t n) { max_upper = std::max(max_upper, upper += n); }
};
template <class A>
struct track_peak {
  A heap;
  peak_bounds* bounds;
  std::uint64_t seed;
  void operator()() const {
    simt::lane_random draw(seed * 64 + simt::global_thread());
    for (int round = 0; round < 3; ++round) {
      const std::uint64_t n = 1 + draw.below(200);
      update([&] { bounds->add_upper(n); });
      void* const p = heap.malloc(n);
      if (p != nullptr) {
        update([&] { bounds->add_lower(n); });
        update([&] { bounds->lower -= n; });
        heap.free(p);
      }
      update([&] { bounds->upper -= n; });
    }
  }
  template <class Work>
  static void update(const Work& work) {
    const simt::host_section bookkeeping;
    work();
  }
};

template <allocator Upstream>
void explore_peak(std::uint32_t lanes) {
  const allocator_sandbox<counted<Upstream>> sandbox(1024);
  simt::explorer explorer;
  for (std::uint64_t seed = 1; seed <= scaled(6000); ++seed) {
    sandbox.reset();
    peak_bounds bounds;
    const simt::outcome result =
        explorer.run({.seed = seed}, {2, lanes / 2},
                     track_peak<counted<Upstream>>{sandbox.heap(), &bounds, seed});
    ASSERT_TRUE(result.ok()) << result.failure;
    const allocation_counts c = sandbox.heap().counts();
    ASSERT_GE(c.peak_bytes, bounds.max_lower) << "seed " << seed;
    ASSERT_LE(c.peak_bytes, bounds.max_upper) << "seed " << seed;
    ASSERT_LE(c.peak_bytes, 1024u) << "seed " << seed << ": memory was counted twice";
    ASSERT_EQ(c.live_bytes, 0u);
    ASSERT_EQ(c.served + c.failed, 3u * lanes);
    ASSERT_EQ(sandbox.heap().check_invariants(), "");
  }
}

TEST(ExploreCounted, ThePeakIsExact) {
  for (const std::uint32_t lanes : {2u, 6u, 16u}) {
    explore_peak<cfmalloc>(lanes);
    explore_peak<warp_aggregated<cfmalloc>>(lanes);
  }
}

template <allocator A>
void explore() {
  for (const std::uint32_t lanes : {3u, 8u, 32u})
    expect_survival<A>({.bounds = {.lanes = lanes},
                        .pool_bytes = 2048,
                        .schedules = scaled(lanes == 32 ? 4000 : 8000),
                        .step_limit = 400'000,
                        .refill_one_in = 4});
}

TEST(ExploreCounted, OverCircular) { explore<counted<cfmalloc>>(); }
TEST(ExploreCounted, OverWarpAggregated) { explore<counted<warp_aggregated<word_pool<64>, 64>>>(); }
TEST(ExploreCounted, OverSystemHeap) { explore<counted<system_heap>>(); }
TEST(ExploreCounted, OverBuffer) { explore<counted<buffer<system_heap, 2, 512>>>(); }
TEST(ExploreCounted, OverBump) { explore<counted<bump>>(); }

}  // namespace
}  // namespace counted_explore_test

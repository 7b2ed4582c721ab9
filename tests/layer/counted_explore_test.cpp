// SPDX-License-Identifier: Apache-2.0
/// counted: exact costs, and its counts under explored schedules.
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

namespace {

using namespace quarry;
using namespace quarry::testing;

/// What the layer adds to a call: "atomics loads stores". The system's heap does nothing that is counted.
std::string added(const call_costs& c) {
  return per_call(c.atomics, c.calls) + " " + per_call(c.loads, c.calls) + " " +
         per_call(c.stores, c.calls);
}

TEST(CountedHeap, CostsWhatItsHeaderSays) {
  const auto [alone, equal, mixed] = measure_costs<counted<system_heap>>().cases;
  EXPECT_EQ(added(alone.malloc), "3 0 1");
  EXPECT_EQ(added(alone.free), "2 1 0");
  EXPECT_EQ(added(equal.malloc), "3/32 0 1");
  EXPECT_EQ(added(equal.free), "1/16 1 0");
  EXPECT_EQ(added(mixed.malloc), "9/32 0 1") << "seven size classes";
  EXPECT_EQ(added(mixed.free), "1/16 1 0");
}

/// Bytes that are live for certain, and bytes that may be: the peak lies between the most of either.
struct peak_bounds {
  std::uint64_t certain = 0, possible = 0, most_certain = 0, most_possible = 0;
  void certainly(std::uint64_t n) { most_certain = std::max(most_certain, certain += n); }
  void possibly(std::uint64_t n) { most_possible = std::max(most_possible, possible += n); }
};
template <class A>
struct follow_peak {
  A heap;
  peak_bounds* bounds;
  std::uint64_t seed;
  void operator()() const {
    simt::lane_random draw(seed * 64 + simt::global_thread());
    for (int round = 0; round < 3; ++round) {
      const std::uint64_t n = 1 + draw.below(200);
      note([&] { bounds->possibly(n); });
      void* const p = heap.malloc(n);
      if (p != nullptr) {
        note([&] { bounds->certainly(n); });
        note([&] { bounds->certain -= n; });
        heap.free(p);
      }
      note([&] { bounds->possible -= n; });
    }
  }
  template <class Work>
  static void note(const Work& work) {
    const simt::host_section bookkeeping;
    work();
  }
};

template <allocator Upstream>
void explore_peak(std::uint32_t lanes) {
  const allocator_sandbox<counted<Upstream>> site(1024);
  simt::explorer explorer;
  for (std::uint64_t seed = 1; seed <= scaled(6000); ++seed) {
    site.renew();
    peak_bounds bounds;
    const simt::outcome result = explorer.run(
        {.seed = seed}, {2, lanes / 2}, follow_peak<counted<Upstream>>{site.heap(), &bounds, seed});
    ASSERT_TRUE(result.ok()) << result.failure;
    const allocation_counts c = site.heap().counts();
    ASSERT_GE(c.peak_bytes, bounds.most_certain) << "seed " << seed;
    ASSERT_LE(c.peak_bytes, bounds.most_possible) << "seed " << seed;
    ASSERT_LE(c.peak_bytes, 1024u) << "seed " << seed << ": memory was counted twice";
    ASSERT_EQ(c.live_bytes, 0u);
    ASSERT_EQ(c.served + c.refused, 3u * lanes);
    ASSERT_EQ(site.heap().check_invariants(), "");
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
TEST(ExploreCounted, OverCoalesce) { explore<counted<warp_aggregated<word_pool<64>, 64>>>(); }
TEST(ExploreCounted, OverTheSystemsHeap) { explore<counted<system_heap>>(); }
TEST(ExploreCounted, OverBuffer) { explore<counted<buffer<system_heap, 2, 512>>>(); }
TEST(ExploreCounted, OverBump) { explore<counted<bump>>(); }

}  // namespace

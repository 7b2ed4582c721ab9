// SPDX-License-Identifier: Apache-2.0
/// What only the CPU can tell about checked: exact costs, the end of a heap, and explored schedules.
#include "check/effort.hpp"
#include "layer/word_pool.hpp"

#include <quarry/check/ledger.hpp>
#include <quarry/heap/heap.hpp>
#include <quarry/layer/buffer.hpp>
#include <quarry/layer/checked/checked.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/pool/system_heap.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quarry;
using namespace quarry::testing;

/// An upstream whose blocks outlive the heap, and that knows how many are out.
class lender {
 public:
  static constexpr abilities can = {.frees_one = true, .frees_all = false, .owns_pool = false};
  inline static int out = 0;
  lender() = default;
  lender(memory_range, carve&) {}
  void initialise(std::uint64_t, std::uint64_t) const {}
  QUARRY_NOINLINE void* malloc(std::size_t n) const { return ++out, std::malloc(n); }
  void free(void* p) const { --out, std::free(p); }
  std::string check_invariants() const { return {}; }
  heap_statistics statistics() const { return {}; }
};

TEST(HeapThatDrains, GivesBackWhatItsLayersKeepWhenItEnds) {
  {
    const heap<checked<lender>, cpu> h(1_MiB);
    h.deallocate(h.allocate(64));
    EXPECT_EQ(lender::out, 1) << "it waits";
  }
  EXPECT_EQ(lender::out, 0);
}

TEST(HeapThatDrains, DoesSoOnceHoweverItMoves) {
  {
    heap<checked<lender>, cpu> first(1_MiB);
    first.deallocate(first.allocate(64));
    heap<checked<lender>, cpu> second = std::move(first);
    heap<checked<lender>, cpu> third(1_MiB);
    third.deallocate(third.allocate(64));
    EXPECT_EQ(lender::out, 2);
    third = std::move(second);
    EXPECT_EQ(lender::out, 1) << "assignment drains the heap that was there";
    third.deallocate(third.allocate(64));
    EXPECT_EQ(lender::out, 2);
    EXPECT_EQ(to_text(report(third)), "");
  }
  EXPECT_EQ(lender::out, 0);
}

TEST(HeapThatDrains, ThroughOtherLayersToo) {
  {
    const heap<warp_aggregated<buffer<lender>>, cpu> h(1_MiB);
    h.deallocate(h.allocate(64));
    EXPECT_EQ(lender::out, 1);
  }
  EXPECT_EQ(lender::out, 0);
}

// Not by measure_costs: its pool ends without a drain. The system's heap does nothing that is counted. One lane and
// a large registry: where two addresses hash to neighbours, a block costs a load more, and where the system's
// blocks lie differs from build to build.
TEST(CheckedHeap, CostsWhatItsHeaderSays) {
  const auto said = [](const call_costs& c) {
    return per_call(c.atomics, c.calls) + " " + per_call(c.loads, c.calls) + " " +
           per_call(c.stores, c.calls);
  };
  using full = checked<system_heap, checking{.quarantine = 4, .fifos = 1}>;
  const heap<full, cpu> h(64_MiB);
  detail::ledger_warp warp{};
  warp[0].size = 64;
  call_costs malloc, free;
  for (int round = 0; round < 16; ++round) {
    if (round == 8) malloc = free = {};  // the quarantine is full now
    detail::add_costs(malloc, 1, warp, detail::ledger_malloc<full>{h.ref().allocator(), &warp});
    detail::add_costs(free, 1, warp, detail::ledger_free<full>{h.ref().allocator(), &warp});
  }
  EXPECT_EQ(said(malloc), "1 1 3");
  EXPECT_EQ(said(free), "4 18 3");
}

// ---- under explored schedules ---------------------------------------------------------------------

constexpr checking hurried{.quarantine = 4, .fifos = 2};
constexpr checking direct{.quarantine = 0};

/// 20,000 schedules of 3, 8 and 32 lanes: correct programs, about which nothing may be said.
/// Circular pools have gaps of their own that no smallest block fills: no refill there.
template <allocator A>
void explore(std::uint64_t refill_one_in) {
  for (const std::uint32_t lanes : {3u, 8u, 32u})
    expect_survival<A>({.bounds = {.lanes = lanes},
                        .pool_bytes = 2048,
                        .schedules = scaled(lanes == 32 ? 4000 : 8000),
                        .step_limit = 400'000,
                        .refill_one_in = refill_one_in});
}

TEST(ExploreChecked, OverCircular) { explore<checked<cfmalloc>>(0); }
TEST(ExploreChecked, WithFullQuarantine) { explore<checked<cfmalloc, hurried>>(0); }
TEST(ExploreChecked, WithoutQuarantine) { explore<checked<word_pool<64>, direct>>(4); }
TEST(ExploreChecked, OverWordPool) { explore<checked<word_pool<64>, hurried>>(4); }
TEST(ExploreChecked, OverCoalesce) { explore<checked<warp_aggregated<cfmalloc>, hurried>>(0); }
TEST(ExploreChecked, OverTheSystemsHeap) { explore<checked<system_heap, hurried>>(4); }
TEST(ExploreChecked, OverBuffer) { explore<checked<buffer<system_heap, 2, 512>, hurried>>(4); }
TEST(ExploreChecked, OverBump) { explore<checked<bump>>(4); }

/// Every lane does everything wrong, beside the others. The quarantine is large, so that no address comes
/// back: then each wrong act counts, under every schedule.
template <class A>
struct misbehave {
  A heap;
  std::byte* shared;
  std::byte* foreign;
  void operator()() const {
    auto* const mine = static_cast<std::byte*>(heap.malloc(24));
    heap.free(shared);
    mine[24] = mine[-1] = std::byte{0};
    heap.free(foreign);
    heap.free(mine + 8);
    heap.free(mine);
    mine[0] = std::byte{0};
    heap.free(mine);
  }
};

template <allocator Upstream>
void expect_exact_counts(std::uint32_t lanes) {
  using heap_type = checked<Upstream>;
  const allocator_sandbox<heap_type> site(8192);
  simt::explorer explorer;
  std::byte outside{};
  for (std::uint64_t seed = 1; seed <= scaled(4000); ++seed) {
    site.renew();
    auto* const shared = static_cast<std::byte*>(site.heap().malloc(40));
    const simt::outcome result = explorer.run({.seed = seed}, {2, lanes / 2},
                                              misbehave<heap_type>{site.heap(), shared, &outside});
    ASSERT_TRUE(result.ok()) << result.failure;
    site.heap().inspect(0, 1);
    const std::vector<finding> found = site.heap().report();
    const std::uint64_t expected[] = {2 * lanes - 1, lanes, lanes, lanes, lanes, lanes};
    ASSERT_EQ(found.size(), 6u) << "seed " << seed << "\n" << to_text(found);
    for (std::size_t i = 0; i < 6; ++i) {
      ASSERT_EQ(found[i].count, expected[i]) << "seed " << seed << "\n" << to_text(found);
      ASSERT_LT(found[i].lane.thread, lanes);
    }
    ASSERT_TRUE(site.heap().leaks().empty()) << "seed " << seed;
    site.heap().drain();
    ASSERT_EQ(site.heap().upstream().statistics().live_bytes, 0u) << "seed " << seed;
    ASSERT_EQ(site.heap().upstream().check_invariants(), "");
  }
}

TEST(ExploreChecked, CountsEveryMisuseUnderEverySchedule) {
  for (const std::uint32_t lanes : {2u, 4u, 8u}) {
    expect_exact_counts<cfmalloc>(lanes);
    expect_exact_counts<system_heap>(lanes);
    expect_exact_counts<warp_aggregated<cfmalloc>>(lanes);
  }
}

}  // namespace

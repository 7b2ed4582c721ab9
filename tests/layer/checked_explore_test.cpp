// SPDX-License-Identifier: Apache-2.0
/// Tests of checked that need the CPU backend: exact costs, the destruction of a heap, and explored
/// schedules.
#include "check/effort.hpp"
#include "layer/word_pool.hpp"

#include <quarry/heap/heap.hpp>
#include <quarry/layer/buffer.hpp>
#include <quarry/layer/checked/checked.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/pool/system_heap.hpp>
#include <quarry/simt/explore.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace checked_explore_test {
namespace {

using namespace quarry;
using namespace quarry::testing;

/// An upstream whose blocks outlive the heap, and that counts its live blocks.
class external_heap {
 public:
  static constexpr abilities can = {.frees_one = true, .frees_all = false, .owns_pool = false};
  inline static int live = 0;
  external_heap() = default;
  external_heap(memory_range, carve&) {}
  void initialise(std::uint64_t, std::uint64_t) const {}
  QUARRY_NOINLINE void* malloc(std::size_t n) const { return ++live, std::malloc(n); }
  void free(void* p) const { --live, std::free(p); }
  std::string check_invariants() const { return {}; }
  heap_statistics statistics() const { return {}; }
};

TEST(HeapThatDrains, FreesQuarantinedBlocksInItsDestructor) {
  {
    const heap<checked<external_heap>, cpu> h(1_MiB);
    h.deallocate(h.allocate(64));
    EXPECT_EQ(external_heap::live, 1) << "the block is in quarantine";
  }
  EXPECT_EQ(external_heap::live, 0);
}

TEST(HeapThatDrains, DrainsOnceAfterMoves) {
  {
    heap<checked<external_heap>, cpu> first(1_MiB);
    first.deallocate(first.allocate(64));
    heap<checked<external_heap>, cpu> second = std::move(first);
    heap<checked<external_heap>, cpu> third(1_MiB);
    third.deallocate(third.allocate(64));
    EXPECT_EQ(external_heap::live, 2);
    third = std::move(second);
    EXPECT_EQ(external_heap::live, 1) << "assignment drains the previous heap";
    third.deallocate(third.allocate(64));
    EXPECT_EQ(external_heap::live, 2);
    EXPECT_EQ(to_text(report(third)), "");
  }
  EXPECT_EQ(external_heap::live, 0);
}

TEST(HeapThatDrains, DrainsThroughOtherLayers) {
  {
    const heap<warp_aggregated<buffer<external_heap>>, cpu> h(1_MiB);
    h.deallocate(h.allocate(64));
    EXPECT_EQ(external_heap::live, 1);
  }
  EXPECT_EQ(external_heap::live, 0);
}

// This test does not use measure_costs(), whose heap ends without a drain. The accesses of
// system_heap do not count. One lane and a large registry avoid collisions in the hash table: a
// collision costs an additional load, and the addresses of the system's blocks differ between
// builds.
TEST(CheckedHeap, HasTheCostsThatItsHeaderStates) {
  const heap<checked<system_heap, checking{.quarantine = 4, .fifos = 1}>, cpu> h(64_MiB);
  const auto ref = h.ref();
  const auto costs_of = [](const auto& kernel) {
    const simt::cost_counts before = simt::counts_of_this_thread();
    launch<cpu>({1, 1, 1, 0}, kernel);
    const simt::cost_counts after = simt::counts_of_this_thread();
    return std::array{after.atomics - before.atomics, after.loads - before.loads,
                      after.stores - before.stores};
  };
  using counts = std::array<std::uint64_t, 3>;
  for (int round = 0; round < 16; ++round) {
    void* block = nullptr;
    const counts malloc = costs_of([&] { block = ref.malloc(64); });
    const counts free = costs_of([&] { ref.free(block); });
    if (round < 8) continue;  // the quarantine is not full yet
    EXPECT_EQ(malloc, (counts{1, 1, 3}));
    EXPECT_EQ(free, (counts{4, 18, 3}));
  }
}

// ---- under explored schedules ------------------------------------------------------------------

constexpr checking small_quarantine{.quarantine = 4, .fifos = 2};
constexpr checking no_quarantine{.quarantine = 0};

/// Explores 20,000 schedules of 3, 8 and 32 lanes. The programs are correct, so no finding is
/// allowed. Circular pools may fragment, so they are not refilled.
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
TEST(ExploreChecked, WithFullQuarantine) { explore<checked<cfmalloc, small_quarantine>>(0); }
TEST(ExploreChecked, WithoutQuarantine) { explore<checked<word_pool<64>, no_quarantine>>(4); }
TEST(ExploreChecked, OverWordPool) { explore<checked<word_pool<64>, small_quarantine>>(4); }
TEST(ExploreChecked, OverWarpAggregated) {
  explore<checked<warp_aggregated<cfmalloc>, small_quarantine>>(0);
}
TEST(ExploreChecked, OverSystemHeap) { explore<checked<system_heap, small_quarantine>>(4); }
TEST(ExploreChecked, OverBuffer) {
  explore<checked<buffer<system_heap, 2, 512>, small_quarantine>>(4);
}
TEST(ExploreChecked, OverBump) { explore<checked<bump>>(4); }

/// Every lane commits every kind of misuse. The quarantine is so large that no address is reused,
/// so each misuse counts under every schedule.
template <class A>
struct misuse_all {
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
  const allocator_sandbox<heap_type> sandbox(8192);
  simt::explorer explorer;
  std::byte outside{};
  for (std::uint64_t seed = 1; seed <= scaled(4000); ++seed) {
    sandbox.reset();
    auto* const shared = static_cast<std::byte*>(sandbox.heap().malloc(40));
    const simt::outcome result = explorer.run(
        {.seed = seed}, {2, lanes / 2}, misuse_all<heap_type>{sandbox.heap(), shared, &outside});
    ASSERT_TRUE(result.ok()) << result.failure;
    sandbox.heap().inspect(0, 1);
    const std::vector<finding> found = sandbox.heap().report();
    const std::uint64_t expected[] = {2 * lanes - 1, lanes, lanes, lanes, lanes, lanes};
    ASSERT_EQ(found.size(), 6u) << "seed " << seed << "\n" << to_text(found);
    for (std::size_t i = 0; i < 6; ++i) {
      ASSERT_EQ(found[i].count, expected[i]) << "seed " << seed << "\n" << to_text(found);
      ASSERT_LT(found[i].lane.thread, lanes);
    }
    ASSERT_TRUE(sandbox.heap().leaks().empty()) << "seed " << seed;
    sandbox.heap().drain();
    ASSERT_EQ(sandbox.heap().upstream().statistics().live_bytes, 0u) << "seed " << seed;
    ASSERT_EQ(sandbox.heap().upstream().check_invariants(), "");
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
}  // namespace checked_explore_test

// SPDX-License-Identifier: Apache-2.0
#include <mutants/repaired_cmalloc.hpp>
#include <quarry/check/ledger.hpp>
#include <quarry/pool/bump.hpp>

#include <gtest/gtest.h>

namespace quarry::ledger_test {
namespace {

TEST(Ledger, BumpCostsOneAtomicAndOneRoundTripPerLane) {
  for (const cost_case& c : measure_costs<bump>().cases) {
    EXPECT_EQ(c.malloc, (call_costs{.calls = 8 * c.lanes,
                                    .atomics = 8 * c.lanes,
                                    .round_trips = 8 * c.lanes,
                                    .longest = 1}));
    EXPECT_EQ(c.free, call_costs{});
  }
}
TEST(Ledger, WarpAggregatedBumpCostsOneAtomicPerWarp) {
  const cost_case equal = measure_costs<warp_bump>().cases[1];
  EXPECT_EQ(per_call(equal.malloc.atomics, equal.malloc.calls), "1/32");
  EXPECT_EQ(equal.malloc.longest, 1u);
  EXPECT_GT(equal.malloc.collectives, 0u);
}
TEST(Ledger, CountsFreesIfTheAllocatorSupportsThem) {
  for (const cost_case& c : measure_costs<mutants::repaired_cmalloc<>>().cases) {
    EXPECT_EQ(c.free.calls, c.malloc.calls);
    EXPECT_EQ(c.malloc.failed, 0u);
    EXPECT_GE(c.malloc.longest * c.malloc.calls, c.malloc.round_trips);
    EXPECT_GT(c.free.stores, 0u);
  }
}
TEST(Ledger, IsReproducible) {
  const auto once = measure_costs<mutants::repaired_cmalloc<true>>();
  const auto twice = measure_costs<mutants::repaired_cmalloc<true>>();
  for (std::size_t i = 0; i < once.cases.size(); ++i) {
    EXPECT_EQ(once.cases[i].malloc, twice.cases[i].malloc);
    EXPECT_EQ(once.cases[i].free, twice.cases[i].free);
  }
}
TEST(Ledger, PrintsExactRatios) {
  EXPECT_EQ(per_call(64, 32), "2");
  EXPECT_EQ(per_call(33, 32), "33/32");
  EXPECT_EQ(per_call(10, 4), "5/2");
  EXPECT_EQ(per_call(0, 4), "0");
  EXPECT_EQ(per_call(0, 0), "-");
}

}  // namespace
}  // namespace quarry::ledger_test

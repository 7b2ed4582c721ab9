// SPDX-License-Identifier: Apache-2.0
/// The workloads of `quarry bench`: what they measure, and that their checks detect faulty
/// allocators.

#include "bench/kernels/baseline.hpp"
#include "bench/kernels/blocks.hpp"
#include "bench/kernels/calls.hpp"
#include "bench/kernels/curves.hpp"
#include "bench/kernels/dispatch.hpp"
#include "bench/kernels/loops.hpp"
#include "requests.hpp"
#include "tools/cli/faulty_bump.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace quarry::tool::workloads_test {
namespace {

bench_result blocks_of(defect d, bench_workload workload = bench_workload::malloc_then_free) {
  const with_defect present(d);
  bench_measurement m = measurement_of(64, 3000);
  m.workload = workload;
  bench_request request = request_of("", {});
  return block_bench<faulty_bump<>, cpu>(request).run(m);
}
template <class Allocator>
bench_result loop_of(bench_workload workload, std::uint32_t batch, std::uint32_t rounds,
                     defect d = defect::none) {
  const with_defect present(d);
  bench_measurement m = measurement_of(64, 300);
  m.workload = workload;
  m.batch = batch;
  m.rounds = rounds;
  if (kind_of(workload) == bench_runner_kind::calls)
    return call_bench<Allocator, cpu>(request_of("", {})).run(m);
  return loop_bench<Allocator, cpu>(request_of("", {})).run(m);
}
template <class Allocator>
bench_result curve_of(bench_workload workload, std::uint64_t workers, std::uint32_t rounds) {
  bench_measurement m = measurement_of(256, workers);
  m.workload = workload;
  m.rounds = rounds;
  if (workload == bench_workload::steady_state) m.sizes = {16, 1024};
  bench_request request = request_of("", {});
  request.time_limit = 60;
  return curve_bench<Allocator, cpu>(request).run(m);
}

TEST(Bench, PassesASoundAllocator) {
  const bench_result f = blocks_of(defect::none);
  EXPECT_TRUE(f.sound());
  EXPECT_EQ(f.failures, 0u);
  EXPECT_EQ(f.repeats, 2u);
  EXPECT_GT(f.time.median, 0);
  EXPECT_LE(f.time.min, f.time.max);
  EXPECT_FALSE(f.free_time.measured());
  EXPECT_EQ(f.atomics, 2);  // faulty_bump counts its calls
}

/// True under ThreadSanitizer, which reports overlapping blocks as a race and ends the program.
inline constexpr bool race_detector = QUARRY_TSAN != 0;

TEST(Bench, CountsBlocksThatOverlap) {
  if (race_detector) GTEST_SKIP() << "ThreadSanitizer reports the race first";
  EXPECT_GT(blocks_of(defect::overlaps).corrupt, 1000u);
  EXPECT_GT((loop_of<faulty_bump<>>(bench_workload::batch, 16, 1, defect::overlaps).corrupt), 100u);
  EXPECT_GT((loop_of<faulty_bump<>>(bench_workload::random_walk, 1, 10, defect::overlaps).corrupt),
            30u);
}
TEST(Bench, CountsBlocksThatAreNotAligned) {
  const bench_result f = blocks_of(defect::misaligns);
  EXPECT_EQ(f.misaligned, 3000u);
  EXPECT_EQ(f.corrupt, 0u);
}
TEST(Bench, CountsBlocksOutsideThePool) { EXPECT_EQ(blocks_of(defect::strays).corrupt, 3000u); }
TEST(Bench, CountsBlocksThatTheAllocatorWroteTo) {
  if (race_detector) GTEST_SKIP() << "ThreadSanitizer reports the race first";
  EXPECT_GT(blocks_of(defect::spoils).corrupt, 0u);
}
TEST(Bench, CountsCallsThatFail) {
  const bench_result f = blocks_of(defect::fails);
  EXPECT_GT(f.failures, 300u);
  EXPECT_TRUE(f.sound());
}

TEST(Bench, ChecksBlocksInsideKernelsThatFree) {
  EXPECT_TRUE((loop_of<bump>(bench_workload::batch, 16, 1).sound()));
  EXPECT_EQ((loop_of<faulty_bump<>>(bench_workload::churn, 1, 8, defect::misaligns).misaligned),
            300u * 8);
  EXPECT_EQ((loop_of<faulty_bump<>>(bench_workload::churn, 1, 8, defect::strays).corrupt),
            300u * 8);
  EXPECT_GT((loop_of<faulty_bump<>>(bench_workload::random_walk, 1, 10, defect::fails).failures),
            30u);
}

TEST(Bench, CountsAtomicsExactly) {
  EXPECT_EQ((loop_of<bump>(bench_workload::churn, 1, 8).atomics), 1);
  EXPECT_EQ((loop_of<bump>(bench_workload::random_walk, 1, 10).atomics), 1);
  EXPECT_EQ((loop_of<warp_bump>(bench_workload::batch, 4, 1).atomics), 10.0 / 300);  // 9.4 warps
}

TEST(Bench, FillsTheHeapToTheLastBlock) {
  const bench_result f =
      blocks_of(defect::none, bench_workload::fill);  // faulty_bump keeps 16 bytes
  EXPECT_TRUE(f.sound());
  EXPECT_EQ(f.values, std::vector<double>{1 - 64.0 / (1 << 20)});
}

TEST(Bench, MeasuresAddressRangeFragmentation) {
  bench_measurement m = measurement_of(64, 1000);
  m.workload = bench_workload::fragmentation;
  m.rounds = 3;
  const bench_result f = block_bench<faulty_bump<true>, cpu>(request_of("", {})).run(m);
  ASSERT_EQ(f.values.size(), 4u);
  EXPECT_EQ(f.values[0], 1);            // adjacent blocks
  EXPECT_GT(f.values[3], f.values[1]);  // the allocator reuses no memory
}

TEST(Bench, SkipsWorkloadsThatAnAllocatorDoesNotSupport) {
  const auto outcome = [](bench_workload workload, std::uint64_t lanes) {
    bench_measurement m = measurement_of(64, lanes);
    m.workload = workload;
    return block_bench<wrap, cpu>(request_of("", {})).run(m).outcome;
  };
  EXPECT_EQ(outcome(bench_workload::malloc_then_free, 16'384), bench_outcome::ok);
  EXPECT_EQ(outcome(bench_workload::malloc_then_free, 16'385),
            bench_outcome::skipped);  // would overwrite
  EXPECT_EQ(outcome(bench_workload::fragmentation, 1), bench_outcome::skipped);
  EXPECT_EQ(outcome(bench_workload::fill, 1), bench_outcome::skipped);
  EXPECT_EQ(curve_of<bump>(bench_workload::steady_state, 10, 2).outcome, bench_outcome::skipped);
  bench_request tiny = request_of("", {});
  tiny.heap_bytes = scatter_alloc::can.min_pool / 2;
  EXPECT_EQ((block_bench<scatter_alloc, cpu>(tiny).run(measurement_of(64)).outcome),
            bench_outcome::skipped);
}

// ---- new heaps, and heaps that are partly occupied -------------------------------------------

/// Hands out blocks of 64 bytes in a ring. The first 1000 calls on a heap take two atomics each,
/// later calls take one.
class warming_up {
 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true};

  warming_up() = default;
  warming_up(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        blocks_(pool.size / 64),
        calls_(metadata.take<std::uint64_t>("calls", 2)) {}
  void initialise(std::uint64_t, std::uint64_t) const {}
  void* malloc(std::size_t n) const {
    if (n == 0 || n > 64) return nullptr;
    const std::uint64_t call =
        simt::atomic_ref<std::uint64_t>(calls_[0]).fetch_add(1, simt::relaxed);
    if (call < 1000) simt::atomic_ref<std::uint64_t>(calls_[1]).add(1, simt::relaxed);
    return pool_ + call % blocks_ * 64;
  }
  void free(void*) const {}
  std::string check_invariants() const { return {}; }
  heap_statistics statistics() const { return {}; }

 private:
  std::byte* pool_;
  std::uint64_t blocks_;
  std::uint64_t* calls_;
};
static_assert(freeing_allocator<warming_up>);

TEST(BenchHeap, IsNewForEveryPassOfAColdMeasurement) {
  bench_measurement m = measurement_of(64, 1000);
  EXPECT_EQ((block_bench<warming_up, cpu>(request_of("", {})).run(m).atomics), 1);
  m.cold = true;
  const bench_result cold = block_bench<warming_up, cpu>(request_of("", {})).run(m);
  EXPECT_EQ(cold.atomics, 2);
  EXPECT_EQ(cold.repeats, 2u);
  EXPECT_TRUE(cold.sound());
}

TEST(BenchHeap, IsNewForOnePassIfTheSystemOwnsIt) {
  bench_measurement m = measurement_of(64);
  m.cold = true;
  EXPECT_EQ((block_bench<system_heap, cpu>(request_of("", {})).run(m).repeats), 1u);
}

TEST(BenchHeap, IsOccupiedBeforehandAsRequested) {
  const auto failures = [](auto bench, bench_workload workload, std::uint32_t percent) {
    bench_measurement m = measurement_of(1024, 700);  // 1024 blocks fit
    m.workload = workload;
    m.occupied = percent;
    m.batch = 1;
    const bench_result f = bench.run(m);
    return f.failures;
  };
  const auto blocks = [&](std::uint32_t percent) {
    return failures(block_bench<cfmalloc, cpu>(request_of("", {})),
                    bench_workload::malloc_then_free, percent);
  };
  const auto loops = [&](std::uint32_t percent) {
    return failures(loop_bench<bump, cpu>(request_of("", {})), bench_workload::batch, percent);
  };
  EXPECT_EQ(blocks(0), 0u);
  EXPECT_GT(blocks(50), 150u);
  EXPECT_EQ(loops(0), 0u);
  EXPECT_EQ(loops(50), 700u - (1024 - 511));  // 511: the percentage is rounded down
  bench_measurement m = measurement_of(1024, 700);
  m.occupied = 50;
  block_bench<system_heap, cpu> same_heap(request_of("", {}));
  EXPECT_GT(same_heap.run(m).failures, 150u);
  m.occupied = 0;
  EXPECT_EQ(same_heap.run(m).failures, 0u);  // the blocks were freed
}

// ---- the workloads ---------------------------------------------------------------------------

TEST(BenchWorkloads, ProduceAndWriteCheckBlocks) {
  if (race_detector) GTEST_SKIP() << "ThreadSanitizer reports the race first";
  for (const bench_workload workload : {bench_workload::produce, bench_workload::write}) {
    EXPECT_TRUE(blocks_of(defect::none, workload).sound());
    EXPECT_GT(blocks_of(defect::overlaps, workload).corrupt, 1000u);
    EXPECT_GT(blocks_of(defect::fails, workload).failures, 300u);
  }
}

TEST(BenchWorkloads, BaselineWritesAPackedArray) {
  bench_request request = request_of(baseline_name, {});
  bench_measurement m = measurement_of(64, 5000);
  m.sizes = {4, 64};
  for (const bench_workload workload : {bench_workload::produce, bench_workload::write}) {
    m.workload = workload;
    const bench_result f = baseline_bench<cpu>(request).run(m);
    EXPECT_EQ(f.outcome, bench_outcome::ok);
    EXPECT_EQ(f.corrupt, 0u);
    EXPECT_GT(f.time.median, 0);
  }
  m.workload = bench_workload::malloc_then_free;
  EXPECT_EQ(baseline_bench<cpu>(request).run(m).outcome, bench_outcome::skipped);
}

TEST(BenchWorkloads, LatencyPercentilesAreOrdered) {
  const auto check = [](const bench_result& f, const std::string& call) {
    const auto at = [&](const char* name) { return f.fields.at(call + name); };
    EXPECT_LE(at("p50"), at("p90"));
    EXPECT_LE(at("p90"), at("p99"));
    EXPECT_LE(at("p99"), at("p999"));
    EXPECT_LE(at("p999"), at("max"));
    EXPECT_GT(at("max"), 0);
  };
  const bench_result f = loop_of<cfmalloc>(bench_workload::latency, 1, 1);
  EXPECT_TRUE(f.sound());
  check(f, "");
  check(f, "free_");
  EXPECT_FALSE(loop_of<bump>(bench_workload::latency, 1, 1).fields.contains("free_p50"));
  EXPECT_EQ((loop_of<faulty_bump<>>(bench_workload::latency, 1, 1, defect::misaligns).misaligned),
            300u);
}

TEST(BenchWorkloads, PercentilesUseTheNearestRank) {
  std::vector<std::uint64_t> ticks;
  for (std::uint64_t n = 1; n <= 1000; ++n) ticks.push_back(n);
  EXPECT_EQ(percentile(ticks, 0.5), 500);
  EXPECT_EQ(percentile(ticks, 0.99), 990);
  EXPECT_EQ(percentile(ticks, 0.999), 999);
  EXPECT_EQ(percentile(ticks, 1), 1000);
  EXPECT_EQ(percentile({7}, 0.5), 7);
}

TEST(BenchWorkloads, ArenasAreCalledThroughTheirOwnInterface) {
  EXPECT_TRUE((loop_of<fdg_arenas>(bench_workload::batch, 16, 1).sound()));
  EXPECT_EQ((loop_of<fdg_arenas>(bench_workload::batch, 16, 1).failures), 0u);
  EXPECT_EQ((loop_of<fdg_bare>(bench_workload::churn, 1, 2).failures), 0u);
  // One atomic serves all lanes of a warp; start and end add few.
  EXPECT_LT((loop_of<fdg_over_system>(bench_workload::batch, 100, 1).atomics), 0.2);
}

TEST(BenchWorkloads, TimesOfSeveralLoadsAreAveraged) {
  bench_measurement m = measurement_of(64, 100);
  m.workload = bench_workload::batch;
  m.loads = {{1, 16}, {4, 64}, {16, 32}};
  EXPECT_EQ(m.mallocs(), 2100u);
  const bench_result f = loop_bench<bump, cpu>(request_of("", {})).run(m);
  EXPECT_TRUE(f.sound());
  EXPECT_EQ(f.failures, 0u);
  EXPECT_EQ(f.atomics, 1);
  EXPECT_NEAR(f.fields.at("ns_per_object"), f.time.median * 1e6 / 700, 1e-6);
}

TEST(BenchWorkloads, SteadyStateReportsLiveBytesAndFailedAllocations) {
  const bench_result small = curve_of<cfmalloc>(bench_workload::steady_state, 500, 20);
  ASSERT_EQ(small.curve.size(), 20u);
  EXPECT_TRUE(small.sound());
  for (const bench_step& step : small.curve)
    EXPECT_EQ(step.fields.at("failed_fraction"), 0) << step.x;
  // Sizes drift: the span grows from an eighth to the whole in 16 rounds.
  EXPECT_NEAR(small.curve[0].fields.at("live"), 500 * 80.0 / (1 << 20), 0.01);
  EXPECT_GT(small.curve[16].fields.at("live"), 2 * small.curve[0].fields.at("live"));
  // The lanes request more than the heap holds.
  const bench_result large = curve_of<scatter_alloc>(bench_workload::steady_state, 3000, 17);
  EXPECT_GT(large.curve[16].fields.at("failed_fraction"), 0.05);
  EXPECT_LE(large.curve[16].fields.at("live"), 1);
  EXPECT_TRUE(large.sound());
}

TEST(BenchWorkloads, RecoveryReachesTheSameFractionAgain) {
  const bench_result f = curve_of<scatter_alloc>(bench_workload::recovery, 1024, 8);
  ASSERT_EQ(f.curve.size(), 8u);
  EXPECT_TRUE(f.sound());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GT(f.curve[i].fields.at("usable_fraction"), 0.8) << i;
    EXPECT_NEAR(f.curve[i].fields.at("usable_fraction"),
                f.curve[i + 4].fields.at("usable_fraction"), 0.01)
        << i;
    EXPECT_EQ(f.curve[i].fields.at("size"), f.curve[i + 4].fields.at("size"));
  }
  // This allocator frees nothing, so that the heap stays full.
  const bench_result leaks = curve_of<faulty_bump<true>>(bench_workload::recovery, 1024, 3);
  EXPECT_EQ(leaks.curve.back().fields.at("usable_fraction"), 0);
}

TEST(BenchWorkloads, FillLevelsAreReached) {
  const bench_result f = curve_of<scatter_alloc>(bench_workload::fill_levels, 32, 1);
  EXPECT_TRUE(f.sound());
  std::vector<double> levels;
  for (const bench_step& step : f.curve) {
    levels.push_back(step.x);
    EXPECT_EQ(step.fields.at("failed_fraction"), 0) << step.x;
    EXPECT_TRUE(step.time.measured() && step.free_time.measured());
  }
  EXPECT_EQ(levels, (std::vector<double>{0, 10, 25, 50, 75, 90, 95, 99}));
  // At 99 %, a hundredth of 4096 blocks is free: about 41 lanes succeed, 400 lanes do not.
  const bench_result many = curve_of<scatter_alloc>(bench_workload::fill_levels, 400, 1);
  EXPECT_GT(many.curve.back().fields.at("failed_fraction"), 0.5);
  EXPECT_EQ(many.curve.front().fields.at("failed_fraction"), 0);
}

TEST(BenchLanes, FillTheSmallestGrid) {
  const bench_lanes one_per_warp{960, 1};
  EXPECT_EQ(one_per_warp.launch_grid().blocks, 120u);
  EXPECT_EQ((bench_lanes{1 << 20, 32}.launch_grid().blocks), 4096u);
  EXPECT_EQ((bench_lanes{1, 32}.launch_grid().blocks), 1u);
  EXPECT_EQ((bench_lanes{100, 3}.launch_grid().blocks), 5u);  // 34 warps
  EXPECT_EQ((bench_lanes{1, 32}.launch_grid().threads), 32u);
  EXPECT_EQ((bench_lanes{4096, 32, 1024}.launch_grid().blocks), 4u);
  EXPECT_EQ((bench_lanes{0, 32}.launch_grid().blocks), 1u);  // no lane calls
}

TEST(BenchSizes, StayInTheirRangeAndReachBothEnds) {
  const bench_sizes sizes({17, 130});
  bool least = false;
  bool most = false;
  for (std::uint64_t caller = 0; caller < 10'000; ++caller) {
    const std::uint64_t n = sizes.in_round(caller, 0);
    ASSERT_TRUE(n >= 17 && n <= 130);
    least = least || n == 17;
    most = most || n == 130;
  }
  EXPECT_TRUE(least && most);
}

TEST(BenchSelection, HalfSelectsAboutHalfOfTheLanes) {
  const bench_sizes sizes({16, 16});
  for (std::uint32_t round = 1; round <= 5; ++round) {
    unsigned selected = 0;
    for (std::uint64_t caller = 0; caller < 10'000; ++caller)
      selected += sizes.selected(caller, round) ? 1 : 0;
    EXPECT_NEAR(selected, 5000, 300);
  }
}

TEST(BenchSelection, LifetimesAndRankRangesSelectTheirFractions) {
  bench_selection selection{bench_selection::lifetimes};
  std::array<unsigned, 4> selected{};
  for (std::uint64_t caller = 0; caller < 8000; ++caller)
    for (std::uint32_t round = 1; round <= 10; ++round)
      if (selection(caller, round)) ++selected[caller % 4];
  EXPECT_EQ(selected[0], 20'000u);
  EXPECT_NEAR(selected[1], 10'000, 500);
  EXPECT_NEAR(selected[2], 2500, 300);
  EXPECT_NEAR(selected[3], 625, 150);

  unsigned in_exactly_one = 0;
  unsigned in_lower = 0;
  for (std::uint64_t caller = 0; caller < 10'000; ++caller) {
    const bench_selection lower{bench_selection::rank_range, 0, 2500};
    const bench_selection upper{bench_selection::rank_range, 2500, 10'000};
    // Each lane is in one of the two ranges.
    in_exactly_one += lower(caller, 0) != upper(caller, 0) ? 1 : 0;
    in_lower += lower(caller, 0) ? 1 : 0;
  }
  EXPECT_EQ(in_exactly_one, 10'000u);
  EXPECT_NEAR(in_lower, 2500, 200);
}

TEST(BenchSizes, DriftUpAndDown) {
  bench_sizes sizes({16, 1023});  // 1008 sizes
  sizes.cycle = 32;
  const auto most = [&](std::uint32_t round) {
    std::uint64_t n = 0;
    for (std::uint64_t caller = 0; caller < 20'000; ++caller)
      n = std::max(n, sizes.in_round(caller, round));
    return n;
  };
  EXPECT_EQ(most(0), 16u + 1008 / 8 - 1);
  EXPECT_EQ(most(16), 1023u);
  EXPECT_EQ(most(32), most(0));
  EXPECT_LT(most(0), most(8));
  EXPECT_EQ(most(8), most(24));
}

}  // namespace
}  // namespace quarry::tool::workloads_test

// SPDX-License-Identifier: Apache-2.0
/// `quarry bench`: what it measures, and that its checks see what they are there to see.

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

namespace quarry::tool {
namespace {

template <defect Defect>
bench_figures blocks_of(bench_shape shape = bench_shape::blocks) {
  bench_cell cell = cell_of(64, 3000);
  cell.shape = shape;
  bench_request request = request_of("", {});
  return block_bench<faulty_bump<Defect>, cpu>(request).run(cell);
}
template <class Allocator>
bench_figures loop_of(bench_shape shape, std::uint32_t batch, std::uint32_t rounds) {
  bench_cell cell = cell_of(64, 300);
  cell.shape = shape;
  cell.batch = batch;
  cell.rounds = rounds;
  if (kind_of(shape) == bench_kind::calls)
    return call_bench<Allocator, cpu>(request_of("", {})).run(cell);
  return loop_bench<Allocator, cpu>(request_of("", {})).run(cell);
}
template <class Allocator>
bench_figures curve_of(bench_shape shape, std::uint64_t workers, std::uint32_t rounds) {
  bench_cell cell = cell_of(256, workers);
  cell.shape = shape;
  cell.rounds = rounds;
  if (shape == bench_shape::steady) cell.sizes = {16, 1024};
  bench_request request = request_of("", {});
  request.share = 60;
  return curve_bench<Allocator, cpu>(request).run(cell);
}

TEST(Bench, PassesASoundAllocator) {
  const bench_figures f = blocks_of<defect::none>();
  EXPECT_TRUE(f.sound());
  EXPECT_EQ(f.failures, 0u);
  EXPECT_EQ(f.repeats, 2u);
  EXPECT_GT(f.time.median, 0);
  EXPECT_LE(f.time.least, f.time.most);
  EXPECT_FALSE(f.free_time.measured());
  EXPECT_EQ(f.atomics, 2);  // faulty_bump counts its calls
}

/// Two lanes that write to one place: a race detector ends the program before we count.
inline constexpr bool race_detector = QUARRY_TSAN != 0;

TEST(Bench, CountsBlocksThatOverlap) {
  if (race_detector) GTEST_SKIP() << "the race detector sees it first";
  EXPECT_GT(blocks_of<defect::overlaps>().corrupt, 1000u);
  EXPECT_GT((loop_of<faulty_bump<defect::overlaps>>(bench_shape::batch, 16, 1).corrupt), 100u);
  EXPECT_GT((loop_of<faulty_bump<defect::overlaps>>(bench_shape::chance, 1, 10).corrupt), 30u);
}
TEST(Bench, CountsBlocksThatAreNotAligned) {
  const bench_figures f = blocks_of<defect::misaligns>();
  EXPECT_EQ(f.misaligned, 3000u);
  EXPECT_EQ(f.corrupt, 0u);
}
TEST(Bench, CountsBlocksOutsideThePool) { EXPECT_EQ(blocks_of<defect::strays>().corrupt, 3000u); }
TEST(Bench, CountsBlocksThatTheAllocatorWroteTo) {
  if (race_detector) GTEST_SKIP() << "the race detector sees it first";
  EXPECT_GT(blocks_of<defect::spoils>().corrupt, 0u);
}
TEST(Bench, CountsCallsThatFail) {
  const bench_figures f = blocks_of<defect::refuses>();
  EXPECT_GT(f.failures, 300u);
  EXPECT_TRUE(f.sound());
}

TEST(Bench, LooksInsideKernelsThatFree) {
  EXPECT_TRUE((loop_of<bump>(bench_shape::batch, 16, 1).sound()));
  EXPECT_EQ((loop_of<faulty_bump<defect::misaligns>>(bench_shape::churn, 1, 8).misaligned),
            300u * 8);
  EXPECT_EQ((loop_of<faulty_bump<defect::strays>>(bench_shape::churn, 1, 8).corrupt), 300u * 8);
  EXPECT_GT((loop_of<faulty_bump<defect::refuses>>(bench_shape::chance, 1, 10).failures), 30u);
}

TEST(Bench, CountsAtomicsExactly) {
  EXPECT_EQ((loop_of<bump>(bench_shape::churn, 1, 8).atomics), 1);
  EXPECT_EQ((loop_of<bump>(bench_shape::chance, 1, 10).atomics), 1);
  EXPECT_EQ((loop_of<warp_bump>(bench_shape::batch, 4, 1).atomics), 10.0 / 300);  // 9.4 warps
}

TEST(Bench, FillsTheHeapToTheLastBlock) {
  const bench_figures f = blocks_of<defect::none>(bench_shape::fill);  // which keeps 16 bytes
  EXPECT_TRUE(f.sound());
  EXPECT_EQ(f.values, std::vector<double>{1 - 64.0 / (1 << 20)});
}

TEST(Bench, MeasuresHowFarBlocksSpread) {
  bench_cell cell = cell_of(64, 1000);
  cell.shape = bench_shape::extent;
  cell.rounds = 3;
  const bench_figures f =
      block_bench<faulty_bump<defect::counts_wrong>, cpu>(request_of("", {})).run(cell);
  ASSERT_EQ(f.values.size(), 4u);
  EXPECT_EQ(f.values[0], 1);            // side by side
  EXPECT_GT(f.values[3], f.values[1]);  // and it reuses nothing
}

TEST(Bench, SkipsWhatAnAllocatorCanNotDo) {
  const auto outcome = [](bench_shape shape, std::uint64_t lanes) {
    bench_cell cell = cell_of(64, lanes);
    cell.shape = shape;
    return block_bench<wrap, cpu>(request_of("", {})).run(cell).outcome;
  };
  EXPECT_EQ(outcome(bench_shape::blocks, 16'384), bench_outcome::ok);
  EXPECT_EQ(outcome(bench_shape::blocks, 16'385), bench_outcome::skipped);  // would overwrite
  EXPECT_EQ(outcome(bench_shape::extent, 1), bench_outcome::skipped);
  EXPECT_EQ(outcome(bench_shape::fill, 1), bench_outcome::skipped);
  EXPECT_EQ(curve_of<bump>(bench_shape::steady, 10, 2).outcome, bench_outcome::skipped);
  bench_request tiny = request_of("", {});
  tiny.heap = scatter_alloc::can.min_pool / 2;
  EXPECT_EQ((block_bench<scatter_alloc, cpu>(tiny).run(cell_of(64)).outcome),
            bench_outcome::skipped);
}

// ---- heaps that are new, and heaps that are not empty ----------------------------------------------

/// Blocks of 64 bytes, round and round. The first 1000 calls on a heap take two atomics, later ones one.
class settling {
 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true};

  settling() = default;
  settling(memory_range pool, carve& metadata)
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
static_assert(freeing_allocator<settling>);

TEST(BenchHeap, IsNewForEveryPassOfAColdCell) {
  bench_cell cell = cell_of(64, 1000);
  EXPECT_EQ((block_bench<settling, cpu>(request_of("", {})).run(cell).atomics), 1);
  cell.cold = true;
  const bench_figures cold = block_bench<settling, cpu>(request_of("", {})).run(cell);
  EXPECT_EQ(cold.atomics, 2);
  EXPECT_EQ(cold.repeats, 2u);
  EXPECT_TRUE(cold.sound());
}

TEST(BenchHeap, IsNewOnceWhereItIsTheSystems) {
  bench_cell cell = cell_of(64);
  cell.cold = true;
  EXPECT_EQ((block_bench<system_heap, cpu>(request_of("", {})).run(cell).repeats), 1u);
}

TEST(BenchHeap, IsAsFullAsAskedBeforehand) {
  const auto failures = [](auto bench, bench_shape shape, std::uint32_t percent) {
    bench_cell cell = cell_of(1024, 700);  // of 1024 that fit
    cell.shape = shape;
    cell.occupied = percent;
    cell.batch = 1;
    const bench_figures f = bench.run(cell);
    return f.failures;
  };
  const auto blocks = [&](std::uint32_t percent) {
    return failures(block_bench<cfmalloc, cpu>(request_of("", {})), bench_shape::blocks, percent);
  };
  const auto loops = [&](std::uint32_t percent) {
    return failures(loop_bench<bump, cpu>(request_of("", {})), bench_shape::batch, percent);
  };
  EXPECT_EQ(blocks(0), 0u);
  EXPECT_GT(blocks(50), 150u);
  EXPECT_EQ(loops(0), 0u);
  EXPECT_EQ(loops(50), 700u - (1024 - 511));  // 511: percents are rounded down
  bench_cell cell = cell_of(1024, 700);
  cell.occupied = 50;
  block_bench<system_heap, cpu> same_heap(request_of("", {}));
  EXPECT_GT(same_heap.run(cell).failures, 150u);
  cell.occupied = 0;
  EXPECT_EQ(same_heap.run(cell).failures, 0u);  // it was given back
}

// ---- shapes ------------------------------------------------------------------------------------------

TEST(BenchShapes, GenerateAndWriteLookAtBlocks) {
  if (race_detector) GTEST_SKIP() << "the race detector sees it first";
  for (const bench_shape shape : {bench_shape::generate, bench_shape::write}) {
    EXPECT_TRUE(blocks_of<defect::none>(shape).sound());
    EXPECT_GT(blocks_of<defect::overlaps>(shape).corrupt, 1000u);
    EXPECT_GT(blocks_of<defect::refuses>(shape).failures, 300u);
  }
}

TEST(BenchShapes, TheBaselinePacksItsArray) {
  bench_request request = request_of(baseline_name, {});
  bench_cell cell = cell_of(64, 5000);
  cell.sizes = {4, 64};
  for (const bench_shape shape : {bench_shape::generate, bench_shape::write}) {
    cell.shape = shape;
    const bench_figures f = baseline_bench<cpu>(request).run(cell);
    EXPECT_EQ(f.outcome, bench_outcome::ok);
    EXPECT_EQ(f.corrupt, 0u);
    EXPECT_GT(f.time.median, 0);
  }
  cell.shape = bench_shape::blocks;
  EXPECT_EQ(baseline_bench<cpu>(request).run(cell).outcome, bench_outcome::skipped);
}

TEST(BenchShapes, LatencyHasPercentilesInOrder) {
  const auto check = [](const bench_figures& f, const std::string& call) {
    const auto at = [&](const char* name) { return f.fields.at(call + name); };
    EXPECT_LE(at("p50"), at("p90"));
    EXPECT_LE(at("p90"), at("p99"));
    EXPECT_LE(at("p99"), at("p999"));
    EXPECT_LE(at("p999"), at("max"));
    EXPECT_GT(at("max"), 0);
  };
  const bench_figures f = loop_of<cfmalloc>(bench_shape::latency, 1, 1);
  EXPECT_TRUE(f.sound());
  check(f, "");
  check(f, "free_");
  EXPECT_FALSE(loop_of<bump>(bench_shape::latency, 1, 1).fields.contains("free_p50"));
  EXPECT_EQ((loop_of<faulty_bump<defect::misaligns>>(bench_shape::latency, 1, 1).misaligned), 300u);
}

TEST(BenchShapes, PercentilesAreRanks) {
  std::vector<std::uint64_t> ticks;
  for (std::uint64_t n = 1; n <= 1000; ++n) ticks.push_back(n);
  EXPECT_EQ(percentile(ticks, 0.5), 500);
  EXPECT_EQ(percentile(ticks, 0.99), 990);
  EXPECT_EQ(percentile(ticks, 0.999), 999);
  EXPECT_EQ(percentile(ticks, 1), 1000);
  EXPECT_EQ(percentile({7}, 0.5), 7);
}

TEST(BenchShapes, ArenasAreUsedByTheirOwnCalls) {
  EXPECT_TRUE((loop_of<fdg_arenas>(bench_shape::batch, 16, 1).sound()));
  EXPECT_EQ((loop_of<fdg_arenas>(bench_shape::batch, 16, 1).failures), 0u);
  EXPECT_EQ((loop_of<fdg_bare>(bench_shape::churn, 1, 2).failures), 0u);
  // One atomic for all lanes of a warp, and few to begin and to end with.
  EXPECT_LT((loop_of<fdg_over_system>(bench_shape::batch, 100, 1).atomics), 0.2);
}

TEST(BenchShapes, SeveralLoadsAreAveraged) {
  bench_cell cell = cell_of(64, 100);
  cell.shape = bench_shape::batch;
  cell.loads = {{1, 16}, {4, 64}, {16, 32}};
  EXPECT_EQ(cell.mallocs(), 2100u);
  const bench_figures f = loop_bench<bump, cpu>(request_of("", {})).run(cell);
  EXPECT_TRUE(f.sound());
  EXPECT_EQ(f.failures, 0u);
  EXPECT_EQ(f.atomics, 1);
  EXPECT_NEAR(f.fields.at("ns_per_object"), f.time.median * 1e6 / 700, 1e-6);
}

TEST(BenchShapes, SteadyUseSaysWhatIsLiveAndRefused) {
  const bench_figures some = curve_of<cfmalloc>(bench_shape::steady, 500, 20);
  ASSERT_EQ(some.curve.size(), 20u);
  EXPECT_TRUE(some.sound());
  for (const bench_step& step : some.curve)
    EXPECT_EQ(step.fields.at("failed_fraction"), 0) << step.x;
  // Sizes drift: from an eighth of the span to all of it in 16 rounds.
  EXPECT_NEAR(some.curve[0].fields.at("live"), 500 * 80.0 / (1 << 20), 0.01);
  EXPECT_GT(some.curve[16].fields.at("live"), 2 * some.curve[0].fields.at("live"));
  // More is asked for than there is.
  const bench_figures much = curve_of<scatter_alloc>(bench_shape::steady, 3000, 17);
  EXPECT_GT(much.curve[16].fields.at("failed_fraction"), 0.05);
  EXPECT_LE(much.curve[16].fields.at("live"), 1);
  EXPECT_TRUE(much.sound());
}

TEST(BenchShapes, RecoveryFillsAgain) {
  const bench_figures f = curve_of<scatter_alloc>(bench_shape::recovery, 1024, 8);
  ASSERT_EQ(f.curve.size(), 8u);
  EXPECT_TRUE(f.sound());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GT(f.curve[i].fields.at("usable_fraction"), 0.8) << i;
    EXPECT_NEAR(f.curve[i].fields.at("usable_fraction"),
                f.curve[i + 4].fields.at("usable_fraction"), 0.01)
        << i;
    EXPECT_EQ(f.curve[i].fields.at("size"), f.curve[i + 4].fields.at("size"));
  }
  // It frees nothing: full is full.
  const bench_figures leaks =
      curve_of<faulty_bump<defect::counts_wrong>>(bench_shape::recovery, 1024, 3);
  EXPECT_EQ(leaks.curve.back().fields.at("usable_fraction"), 0);
}

TEST(BenchShapes, LevelsAreWhatTheySay) {
  const bench_figures f = curve_of<scatter_alloc>(bench_shape::levels, 32, 1);
  EXPECT_TRUE(f.sound());
  std::vector<double> levels;
  for (const bench_step& step : f.curve) {
    levels.push_back(step.x);
    EXPECT_EQ(step.fields.at("failed_fraction"), 0) << step.x;
    EXPECT_TRUE(step.time.measured() && step.free_time.measured());
  }
  EXPECT_EQ(levels, (std::vector<double>{0, 10, 25, 50, 75, 90, 95, 99}));
  // A hundredth of 4096 blocks is free at first: 41 lanes, give or take chance, find room, 400 do not.
  const bench_figures many = curve_of<scatter_alloc>(bench_shape::levels, 400, 1);
  EXPECT_GT(many.curve.back().fields.at("failed_fraction"), 0.5);
  EXPECT_EQ(many.curve.front().fields.at("failed_fraction"), 0);
}

TEST(BenchTeam, IsAsLargeAsAsked) {
  const bench_team one_a_warp{960, 1};
  EXPECT_EQ(one_a_warp.launch_grid().blocks, 120u);
  EXPECT_EQ((bench_team{1 << 20, 32}.launch_grid().blocks), 4096u);
  EXPECT_EQ((bench_team{1, 32}.launch_grid().blocks), 1u);
  EXPECT_EQ((bench_team{100, 3}.launch_grid().blocks), 5u);  // 34 warps
  EXPECT_EQ((bench_team{1, 32}.launch_grid().threads), 32u);
  EXPECT_EQ((bench_team{4096, 32, 1024}.launch_grid().blocks), 4u);
  EXPECT_EQ((bench_team{0, 32}.launch_grid().blocks), 1u);  // in which nobody works
}

TEST(BenchSizes, StayInTheirRangeAndReachItsEnds) {
  const bench_sizes sizes({17, 130});
  bool least = false;
  bool most = false;
  for (std::uint64_t worker = 0; worker < 10'000; ++worker) {
    const std::uint64_t n = sizes.in_round(worker, 0);
    ASSERT_TRUE(n >= 17 && n <= 130);
    least = least || n == 17;
    most = most || n == 130;
  }
  EXPECT_TRUE(least && most);
}

TEST(BenchSizes, DrawAHalf) {
  const bench_sizes sizes({16, 16});
  for (std::uint32_t round = 1; round <= 5; ++round) {
    unsigned drawn = 0;
    for (std::uint64_t worker = 0; worker < 10'000; ++worker)
      drawn += sizes.drawn(worker, round) ? 1 : 0;
    EXPECT_NEAR(drawn, 5000, 300);
  }
}

TEST(BenchDraws, AreWhatTheySay) {
  bench_draw draw{bench_draw::lifetimes};
  std::array<unsigned, 4> drawn{};
  for (std::uint64_t worker = 0; worker < 8000; ++worker)
    for (std::uint32_t round = 1; round <= 10; ++round)
      if (draw(worker, round)) ++drawn[worker % 4];
  EXPECT_EQ(drawn[0], 20'000u);
  EXPECT_NEAR(drawn[1], 10'000, 500);
  EXPECT_NEAR(drawn[2], 2500, 300);
  EXPECT_NEAR(drawn[3], 625, 150);

  unsigned in_layers = 0;
  unsigned in_one = 0;
  for (std::uint64_t worker = 0; worker < 10'000; ++worker) {
    const bench_draw lower{bench_draw::layer, 0, 2500};
    const bench_draw upper{bench_draw::layer, 2500, 10'000};
    in_layers += lower(worker, 0) != upper(worker, 0) ? 1 : 0;  // each in one of them
    in_one += lower(worker, 0) ? 1 : 0;
  }
  EXPECT_EQ(in_layers, 10'000u);
  EXPECT_NEAR(in_one, 2500, 200);
}

TEST(BenchSizes, DriftToAndFro) {
  bench_sizes sizes({16, 1023});  // 1008 of them
  sizes.cycle = 32;
  const auto most = [&](std::uint32_t round) {
    std::uint64_t n = 0;
    for (std::uint64_t worker = 0; worker < 20'000; ++worker)
      n = std::max(n, sizes.in_round(worker, round));
    return n;
  };
  EXPECT_EQ(most(0), 16u + 1008 / 8 - 1);
  EXPECT_EQ(most(16), 1023u);
  EXPECT_EQ(most(32), most(0));
  EXPECT_LT(most(0), most(8));
  EXPECT_EQ(most(8), most(24));
}

}  // namespace
}  // namespace quarry::tool

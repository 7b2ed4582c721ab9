// SPDX-License-Identifier: Apache-2.0
/// `quarry bench`: its checks see what they are there to see, and an allocator that hangs or crashes costs one
/// cell. This program is its own child: main() is at the end.

#include "bench_blocks.hpp"
#include "bench_cells.hpp"
#include "bench_child.hpp"
#include "bench_dispatch.hpp"
#include "bench_json.hpp"
#include "bench_loops.hpp"
#include "faulty_bump.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

namespace quarry::tool {
namespace {

enum class trick : std::uint8_t { hangs, crashes, throws };

/// bump, but for requests of 64 bytes.
template <trick Trick>
class trap {
 public:
  static constexpr abilities can = bump::can;
  static constexpr std::size_t trigger = 64;

  trap() = default;
  trap(memory_range pool, carve& metadata) : base_(pool, metadata) {}
  void initialise(std::uint64_t lane, std::uint64_t lanes) const { base_.initialise(lane, lanes); }
  void* malloc(std::size_t n) const {
    if (n != trigger) return base_.malloc(n);
    while (Trick == trick::hangs) ::usleep(1000);
    if (Trick == trick::throws) throw error("planted");
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would make an exit code of it
    ::raise(SIGSEGV);
    return nullptr;
  }
  std::string check_invariants() const { return base_.check_invariants(); }
  heap_statistics statistics() const { return base_.statistics(); }

 private:
  bump base_;
};
static_assert(allocator<trap<trick::hangs>>);

bench_cell cell_of(std::uint64_t size, std::uint64_t lanes = 100) {
  bench_cell c;
  c.workload = "alloc";
  c.row = std::to_string(size);
  c.sizes = {size, size};
  c.workers = lanes;
  return c;
}

bench_request request_of(const std::string& allocator, const std::vector<std::uint64_t>& sizes) {
  bench_request r;
  r.machine = "cpu";
  r.allocator = allocator;
  r.heap = 1 << 20;
  r.repeats = 2;
  r.limit = 60;
  for (const std::uint64_t size : sizes) r.cells.push_back(cell_of(size));
  return r;
}

/// What this program does as a child.
void run_planted(const bench_request& request, const bench_emit& emit) {
  if (request.allocator == "hangs") run_cells<block_bench<trap<trick::hangs>, cpu>>(request, emit);
  if (request.allocator == "crashes")
    run_cells<block_bench<trap<trick::crashes>, cpu>>(request, emit);
  if (request.allocator == "throws")
    run_cells<block_bench<trap<trick::throws>, cpu>>(request, emit);
  if (request.allocator == "leaves") ::_exit(7);
  if (request.allocator == "sound") run_cells<block_bench<bump, cpu>>(request, emit);
}

struct outcomes {
  std::vector<std::string> rows;
  std::vector<std::string> texts;
};
outcomes run(const bench_request& request) {
  outcomes all;
  bench_in_children(request, [&](const bench_cell& cell, const bench_figures& f) {
    all.rows.push_back(cell.row);
    all.texts.push_back(std::string(outcome_text(f.outcome)) +
                        (f.note.empty() ? "" : ": " + f.note));
  });
  return all;
}

using texts = std::vector<std::string>;

TEST(BenchChildren, EmitEveryCellInOrder) {
  const outcomes all = run(request_of("sound", {16, 32, 64}));
  EXPECT_EQ(all.rows, (texts{"16", "32", "64"}));
  EXPECT_EQ(all.texts, (texts{"ok", "ok", "ok"}));
}

TEST(BenchChildren, LoseOneCellToAnAllocatorThatHangs) {
  bench_request request = request_of("hangs", {64, 16, 256});
  request.limit = 5;
  const outcomes all = run(request);
  EXPECT_EQ(all.rows, (texts{"64", "16", "256"}));
  EXPECT_EQ(all.texts, (texts{"timed out: after 5 s", "ok", "ok"}));
}

TEST(BenchChildren, LoseOneCellToAnAllocatorThatCrashes) {
  const outcomes all = run(request_of("crashes", {16, 64, 256}));
  EXPECT_EQ(all.rows, (texts{"16", "64", "256"}));
  EXPECT_EQ(all.texts, (texts{"ok", "crashed: signal 11", "ok"}));
}

TEST(BenchChildren, LoseOneCellToAnError) {
  const outcomes all = run(request_of("throws", {16, 64, 256}));
  EXPECT_EQ(all.texts, (texts{"ok", "failed: planted", "ok"}));
}

TEST(BenchChildren, GiveUpAWorkloadAfterTwoLostCells) {
  const outcomes all = run(request_of("crashes", {16, 64, 64, 256, 16}));
  EXPECT_EQ(all.rows, (texts{"16", "64", "64", "256", "16"}));
  const std::string rest = "not run: 2 cells before it were lost";
  EXPECT_EQ(all.texts, (texts{"ok", "crashed: signal 11", "crashed: signal 11", rest, rest}));
}

TEST(BenchChildren, TellTheExitCodeOfAProcessThatLeaves) {
  EXPECT_EQ(run(request_of("leaves", {16})).texts, (texts{"crashed: exit code 7"}));
}

TEST(BenchChildren, PassFiguresOnUnchanged) {
  bench_figures sent;
  sent.outcome = bench_outcome::ok;
  sent.repeats = 5;
  sent.time = {0.25, 0.125, 0.5};
  sent.atomics = 1.0 / 32;
  sent.values = {1.5, 2.5};
  sent.failures = 1;
  sent.corrupt = 2;
  sent.misaligned = 3;
  const bench_figures got = figures_from_json(nlohmann::ordered_json::parse(to_json(sent).dump()));
  EXPECT_EQ(to_json(got), to_json(sent));
  EXPECT_FALSE(got.free_time.measured());
}

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
  return loop_bench<Allocator, cpu>(request_of("", {})).run(cell);
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
}

TEST(BenchTeam, IsAsLargeAsAsked) {
  const bench_team one_a_warp{960, 1};
  EXPECT_EQ(one_a_warp.launch_grid().blocks, 120u);
  EXPECT_EQ((bench_team{1 << 20, 32}.launch_grid().blocks), 4096u);
  EXPECT_EQ((bench_team{1, 32}.launch_grid().blocks), 1u);
  EXPECT_EQ((bench_team{100, 3}.launch_grid().blocks), 5u);  // 34 warps
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

TEST(BenchCells, AreTheWorksOfTheLiterature) {
  bench_scale scale;
  scale.lanes = 1 << 20;
  const auto cells = [&](const char* workload) { return make_cells(workload, scale); };
  EXPECT_EQ(cells("alloc").size(), 10u);
  EXPECT_EQ(cells("alloc").front().workers, 1u << 20);
  EXPECT_EQ(cells("churn")[0].workers, 1u << 18);
  EXPECT_EQ(cells("churn")[0].rounds, 32u);
  EXPECT_EQ(cells("one-lane")[1].workers, 1u << 17);
  EXPECT_EQ(cells("one-lane")[1].sizes.most, 64u << 10);
  EXPECT_EQ(cells("xmalloc").front().working, 32u);
  EXPECT_EQ(cells("xmalloc").back().working, 1u);
  EXPECT_EQ(cells("widmer")[0].workers, 1u << 16);
  EXPECT_EQ(cells("acd")[1].batch, 100u);
  EXPECT_EQ(cells("p")[0].workers, 960u);
}

TEST(BenchCells, TakeSizesThatAreGiven) {
  bench_scale scale;
  scale.lanes = 100;
  scale.sizes = {{48, 48}, {10, 20}};
  EXPECT_EQ(make_cells("alloc", scale).size(), 1u);
  EXPECT_EQ(make_cells("alloc", scale)[0].row, "48 B");
  EXPECT_EQ(make_cells("mixed", scale)[0].row, "10-20 B");
  EXPECT_EQ(make_cells("churn", scale)[0].sizes.least, 64u);
  EXPECT_THROW(check_sizes({"alloc", "churn"}, scale), input_error);
  EXPECT_NO_THROW(check_sizes({"alloc", "mixed"}, scale));
}

}  // namespace
}  // namespace quarry::tool

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == quarry::tool::bench_child_command)
    return quarry::tool::bench_child(argv[2], quarry::tool::run_planted);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

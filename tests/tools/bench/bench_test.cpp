// SPDX-License-Identifier: Apache-2.0
/// `quarry bench` in processes: an allocator that hangs or crashes costs one cell, and what parent and child
/// send each other arrives. This program is its own child: main() is at the end.

#include "bench/child.hpp"
#include "bench/json.hpp"
#include "bench/kernels/blocks.hpp"
#include "bench/patience.hpp"
#include "requests.hpp"

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

TEST(BenchChildren, LoseNothingOfOthersWhoShareTheProcess) {
  bench_request hanging = request_of("hangs", {16, 64});
  hanging.limit = 5;
  const std::vector<bench_request> requests = {request_of("sound", {16}), hanging,
                                               request_of("crashes", {64, 16}),
                                               request_of("sound", {32, 64})};
  std::vector<std::string> all;
  bench_in_children(requests,
                    [&](std::size_t number, const bench_cell& cell, const bench_figures& f) {
                      all.push_back(requests[number].allocator + " " + cell.row + ": " +
                                    std::string(outcome_text(f.outcome)));
                    });
  EXPECT_EQ(all, (texts{"sound 16: ok", "hangs 16: ok", "hangs 64: timed out",
                        "crashes 64: crashed", "crashes 16: ok", "sound 32: ok", "sound 64: ok"}));
}

TEST(BenchChildren, GiveUpWhatHasMoreToDoThanACellThatHung) {
  bench_request request = request_of("hangs", {16, 64, 128, 32});
  request.limit = 3;
  request.share = 0.5;
  const outcomes all = run(request);
  EXPECT_EQ(all.texts, (texts{"ok", "timed out: after 3 s", "given up: 64 took 3.0 s", "ok"}));
}

TEST(BenchChildren, PassFiguresOnUnchanged) {
  bench_figures sent;
  sent.outcome = bench_outcome::ok;
  sent.repeats = 5;
  sent.time = {0.25, 0.125, 0.5};
  sent.atomics = 1.0 / 32;
  sent.values = {1.5, 2.5};
  sent.fields = {{"usable_fraction", 0.5}};
  sent.curve = {{1, {1, 1, 1}, {}, {{"live", 0.75}}}, {2, {2, 2, 2}, {3, 3, 3}, {}}};
  sent.failures = 1;
  sent.corrupt = 2;
  sent.misaligned = 3;
  const bench_figures got = figures_from_json(nlohmann::ordered_json::parse(to_json(sent).dump()));
  EXPECT_EQ(to_json(got), to_json(sent));
  EXPECT_FALSE(got.free_time.measured());
}

TEST(BenchChildren, PassRequestsOnUnchanged) {
  bench_request sent = request_of("sound", {16});
  bench_cell& c = sent.cells.front();
  c.variant = "cold";
  c.shape = bench_shape::levels;
  c.threads = 1024;
  c.loads = {{16, 32}, {64, 128}};
  c.turnover = 100;
  c.occupied = 25;
  c.heap = 12345;
  c.cold = true;
  const bench_request got = request_from_json(nlohmann::ordered_json::parse(to_json(sent).dump()));
  EXPECT_EQ(to_json(got), to_json(sent));
  EXPECT_EQ(got.cells.front().loads.back().size, 128u);
}

TEST(BenchPatience, EndsWithCellsOfTheSameCurveThatHaveMoreToDo) {
  bench_patience patience(1);
  patience.note(cell_of(64), 2.9);
  EXPECT_EQ(patience.objection(cell_of(128)), "");
  patience.note(cell_of(128), 3.5);
  patience.note(cell_of(64), 3.25);
  EXPECT_EQ(patience.objection(cell_of(128)), "64 took 3.2 s");
  EXPECT_EQ(patience.objection(cell_of(64)), "");  // no more to do
  EXPECT_EQ(patience.objection(cell_of(32)), "");
  bench_cell other = cell_of(256);
  other.variant = "cold";
  EXPECT_EQ(patience.objection(other), "");
}

}  // namespace
}  // namespace quarry::tool

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == quarry::tool::bench_child_command)
    return quarry::tool::bench_child(argv[2], quarry::tool::run_planted);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// SPDX-License-Identifier: Apache-2.0
/// `quarry bench` in child processes: an allocator that hangs or crashes costs one measurement.
/// This program starts itself as the child: see main() at the end.

#include "bench/child.hpp"
#include "bench/json.hpp"
#include "bench/kernels/blocks.hpp"
#include "bench/slow_filter.hpp"
#include "requests.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

namespace quarry::tool::children_test {
namespace {

enum class fault : std::uint8_t { hangs, crashes, throws };
fault chosen_fault = fault::hangs;

/// bump with a fault that requests of 64 bytes trigger: the chosen one.
class faulty {
 public:
  static constexpr abilities can = bump::can;
  static constexpr std::size_t trigger = 64;

  faulty() = default;
  faulty(memory_range pool, carve& metadata) : base_(pool, metadata) {}
  void initialise(std::uint64_t lane, std::uint64_t lanes) const { base_.initialise(lane, lanes); }
  void* malloc(std::size_t n) const {
    if (n != trigger) return base_.malloc(n);
    while (chosen_fault == fault::hangs) ::usleep(1000);
    if (chosen_fault == fault::throws) throw error("deliberate");
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would turn the signal into an exit code
    ::raise(SIGSEGV);
    return nullptr;
  }
  std::string check_invariants() const { return base_.check_invariants(); }
  heap_statistics statistics() const { return base_.statistics(); }

 private:
  bump base_;
};
static_assert(allocator<faulty>);

/// Runs a request in the child process.
void run_faulty(const bench_request& request, const bench_callback& emit) {
  const auto run_with = [&](fault f) {
    chosen_fault = f;
    run_measurements<block_bench<faulty, cpu>>(request, emit);
  };
  if (request.allocator == "hangs") run_with(fault::hangs);
  if (request.allocator == "crashes") run_with(fault::crashes);
  if (request.allocator == "throws") run_with(fault::throws);
  if (request.allocator == "exits") ::_exit(7);
  if (request.allocator == "sound") run_measurements<block_bench<bump, cpu>>(request, emit);
}

struct outcomes {
  std::vector<std::string> x_labels;
  std::vector<std::string> texts;
};
outcomes run(const bench_request& request) {
  outcomes all;
  measure_in_children(request, [&](const bench_measurement& m, const bench_result& r) {
    all.x_labels.push_back(m.x_label);
    all.texts.push_back(outcome_text(r.outcome) + (r.note.empty() ? "" : ": " + r.note));
  });
  return all;
}

using texts = std::vector<std::string>;

TEST(BenchChildren, EmitEveryMeasurementInOrder) {
  const outcomes all = run(request_of("sound", {16, 32, 64}));
  EXPECT_EQ(all.x_labels, (texts{"16", "32", "64"}));
  EXPECT_EQ(all.texts, (texts{"ok", "ok", "ok"}));
}

TEST(BenchChildren, LoseOneMeasurementToAnAllocatorThatHangs) {
  bench_request request = request_of("hangs", {64, 16, 256});
  request.timeout = 5;
  const outcomes all = run(request);
  EXPECT_EQ(all.x_labels, (texts{"64", "16", "256"}));
  EXPECT_EQ(all.texts, (texts{"timed out: after 5 s", "ok", "ok"}));
}

TEST(BenchChildren, LoseOneMeasurementToAnAllocatorThatCrashes) {
  const outcomes all = run(request_of("crashes", {16, 64, 256}));
  EXPECT_EQ(all.x_labels, (texts{"16", "64", "256"}));
  EXPECT_EQ(all.texts, (texts{"ok", "crashed: signal 11", "ok"}));
}

TEST(BenchChildren, LoseOneMeasurementToAnException) {
  const outcomes all = run(request_of("throws", {16, 64, 256}));
  EXPECT_EQ(all.texts, (texts{"ok", "failed: deliberate", "ok"}));
}

TEST(BenchChildren, DoNotRunTheRestOfARequestAfterTwoLostMeasurements) {
  const outcomes all = run(request_of("crashes", {16, 64, 64, 256, 16}));
  EXPECT_EQ(all.x_labels, (texts{"16", "64", "64", "256", "16"}));
  const std::string rest = "not run: 2 data points before this one were lost";
  EXPECT_EQ(all.texts, (texts{"ok", "crashed: signal 11", "crashed: signal 11", rest, rest}));
}

TEST(BenchChildren, ReportTheExitCodeOfAProcessThatExits) {
  EXPECT_EQ(run(request_of("exits", {16})).texts, (texts{"crashed: exit code 7"}));
}

TEST(BenchChildren, KeepTheResultsOfOtherRequestsInTheSameProcess) {
  bench_request hanging = request_of("hangs", {16, 64});
  hanging.timeout = 5;
  const std::vector<bench_request> requests = {request_of("sound", {16}), hanging,
                                               request_of("crashes", {64, 16}),
                                               request_of("sound", {32, 64})};
  std::vector<std::string> all;
  measure_in_children(requests, [&](std::size_t number, const bench_measurement& m,
                                    const bench_result& r) {
    all.push_back(requests[number].allocator + " " + m.x_label + ": " + outcome_text(r.outcome));
  });
  EXPECT_EQ(all, (texts{"sound 16: ok", "hangs 16: ok", "hangs 64: timed out",
                        "crashes 64: crashed", "crashes 16: ok", "sound 32: ok", "sound 64: ok"}));
}

TEST(BenchChildren, GiveUpMeasurementsWithMoreWorkThanOneThatTimedOut) {
  bench_request request = request_of("hangs", {16, 64, 128, 32});
  request.timeout = 3;
  request.time_limit = 0.5;
  const outcomes all = run(request);
  EXPECT_EQ(all.texts, (texts{"ok", "timed out: after 3 s", "given up: 64 took 3.0 s", "ok"}));
}

TEST(BenchSlowFilter, SkipsMeasurementsOfTheSameCurveWithMoreWork) {
  bench_slow_filter filter(1);
  filter.note(measurement_of(64), 2.9);
  EXPECT_EQ(filter.reason_to_skip(measurement_of(128)), "");
  filter.note(measurement_of(128), 3.5);
  filter.note(measurement_of(64), 3.25);
  EXPECT_EQ(filter.reason_to_skip(measurement_of(128)), "64 took 3.2 s");
  EXPECT_EQ(filter.reason_to_skip(measurement_of(64)), "");  // not more work
  EXPECT_EQ(filter.reason_to_skip(measurement_of(32)), "");
  bench_measurement other = measurement_of(256);
  other.variant = "cold";
  EXPECT_EQ(filter.reason_to_skip(other), "");
}

}  // namespace
}  // namespace quarry::tool::children_test

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == quarry::tool::bench_child_command)
    return quarry::tool::bench_child(argv[2], quarry::tool::children_test::run_faulty);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

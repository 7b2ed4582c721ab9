// SPDX-License-Identifier: Apache-2.0
/// Deliberate faults of schedulers and workers: the oracle over the simulated network reports each
/// of them within a bounded number of seeds, and reports nothing on the same runs without a fault.

#include "directed_programs.hpp"
#include "random_run.hpp"

#include <gtest/gtest-spi.h>

namespace quarry::cluster::testing::fault_test {
namespace {

using detail::fault;

/// A program that runs on one cluster: seed, fault, and a function that tells when to end early.
using program = void (*)(std::uint64_t, fault, std::function<bool()>);

void random_calls(std::uint64_t seed, fault f, std::function<bool()> has_failed) {
  program_options options;
  options.has_failed = std::move(has_failed);
  run_random_program({16, {4, 4}, true, 96u << 20}, seed, 60, f, std::move(options));
}
void large_and_small(std::uint64_t seed, fault f, std::function<bool()>) {
  run_large_and_small_requests(seed, f);
}
void frees_before_send(std::uint64_t seed, fault f, std::function<bool()>) {
  run_frees_before_send(seed, f);
}
void creations_below_dying_parent(std::uint64_t seed, fault f, std::function<bool()>) {
  run_creations_below_dying_parent(seed, f);
}

struct faulty_run {
  const char* name;
  fault what;
  program run;
  std::uint64_t max_seeds;  // the fault is reported with one of the seeds 1 ... max_seeds

  /// GoogleTest names the parameter in its output: without this, by the bytes of the object.
  friend void PrintTo(const faulty_run& f, std::ostream* out) { *out << f.name; }
};

/// Runs the program and returns the first report of the oracle; empty if there is none. A program
/// that throws counts as reported: workers wait for ever, or the oracle's model is contradicted.
std::string first_report(program run, std::uint64_t seed, fault f) {
  ::testing::TestPartResultArray reports;
  const ::testing::ScopedFakeTestPartResultReporter intercept(
      ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &reports);
  try {
    run(seed, f, [&] { return reports.size() > 0; });
  } catch (const std::exception& e) {
    if (reports.size() == 0) return e.what();
  }
  return reports.size() == 0 ? "" : reports.GetTestPartResult(0).message();
}

class Fault : public ::testing::TestWithParam<faulty_run> {};

TEST_P(Fault, IsReportedByTheOracle) {
  const faulty_run& f = GetParam();
  for (std::uint64_t seed = 1; seed <= f.max_seeds; ++seed)
    if (const std::string report = first_report(f.run, seed, f.what); !report.empty()) {
      RecordProperty("seed", std::to_string(seed));
      RecordProperty("report", report);
      return;
    }
  FAIL() << "no seed up to " << f.max_seeds << " reports the fault";
}

TEST(FaultFree, RunsOfTheSameProgramsAreNotReported) {
  for (const program run :
       {random_calls, large_and_small, frees_before_send, creations_below_dying_parent})
    for (std::uint64_t seed = 1; seed <= 4; ++seed)
      EXPECT_EQ(first_report(run, seed, fault::none), "") << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(
    Cluster, Fault,
    ::testing::Values(
        faulty_run{"ReuseSlotBeforeRevocation", fault::reuse_slot_before_revocation, random_calls,
                   60},
        faulty_run{"OmitLeaseRecall", fault::omit_lease_recall, random_calls, 20},
        faulty_run{"KeepChildOfDeadParent", fault::keep_child_of_dead_parent,
                   creations_below_dying_parent, 20},
        faulty_run{"KeepReturnedPages", fault::keep_returned_pages, random_calls, 20},
        faulty_run{"FailSmallWithLargeRequest", fault::fail_small_with_large_request,
                   large_and_small, 30},
        faulty_run{"ServeDyingRegion", fault::serve_dying_region, creations_below_dying_parent, 20},
        faulty_run{"OmitLeaseRecord", fault::omit_lease_record, random_calls, 20},
        faulty_run{"FreeReleasedObjects", fault::free_released_objects, random_calls, 20},
        faulty_run{"OmitRemotePacking", fault::omit_remote_packing, random_calls, 20},
        faulty_run{"IgnoreLeaseRecall", fault::ignore_lease_recall, random_calls, 20},
        faulty_run{"KeepStaleSlabList", fault::keep_stale_slab_list, random_calls, 60},
        faulty_run{"DeferFrees", fault::defer_frees, frees_before_send, 20}),
    [](const auto& which) { return std::string(which.param.name); });

}  // namespace
}  // namespace quarry::cluster::testing::fault_test

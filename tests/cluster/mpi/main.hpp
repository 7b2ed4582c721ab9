// SPDX-License-Identifier: Apache-2.0
#pragma once
// GoogleTest in every worker of a cluster. All workers run the same tests in the same order, with a
// barrier before and after each. The first worker prints as usual, the others print failures only.
#include "cluster/mpi/watchdog.hpp"

#include <quarry/cluster/region_handle.hpp>
#include <quarry/cluster/run.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace quarry::cluster {

inline worker* this_worker = nullptr;
inline worker& w() { return *this_worker; }
inline unsigned me() { return w().number(); }
inline unsigned count() { return w().count(); }
inline unsigned next_worker() { return (me() + 1) % count(); }
inline unsigned worker_before() { return (me() + count() - 1) % count(); }

/// The value of a call that must succeed.
template <class T>
T got(const region_result<T>& r) {
  if (!r) throw region_error("a call that must succeed", r.status);
  return r.value();
}
constexpr region_status ok = region_status::ok;

class Cluster : public ::testing::Test {
 protected:
  void SetUp() override { w().barrier(); }
  void TearDown() override {
    EXPECT_EQ(w().flush(), ok) << "an unexpected deallocation failed";
    w().barrier();
  }
};

/// Prints the worker of a failure. A failed ASSERT ends the job: the others would wait for ever.
class failure_printer : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override { test_ = test.name(); }
  void OnTestPartResult(const ::testing::TestPartResult& r) override {
    if (!r.failed()) return;
    const std::string what = "worker " + std::to_string(me()) + ": " + test_ + ": " +
                             (r.file_name() == nullptr ? "?" : r.file_name()) + ":" +
                             std::to_string(r.line_number()) + ": " + r.message();
    std::fprintf(stderr, "%s\n", what.c_str());
    if (r.fatally_failed()) detail::end_job("a test cannot continue");
  }
  std::string test_;
};

inline int run_tests(worker& here) {
  this_worker = &here;
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (here.number() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new failure_printer);
  GTEST_FLAG_SET(catch_exceptions, false);
  const int result = RUN_ALL_TESTS();
  std::fflush(stdout);
  return result;
}

/// --name=value, or the default.
inline std::string option(int argc, char** argv, const std::string& name, std::string value) {
  const std::string start = "--" + name + "=";
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]).starts_with(start)) value = std::string(argv[i]).substr(start.size());
  return value;
}

/// --schedulers-each, --workers-each, --leases, --protect, --share, --part: see run_options.
inline run_options options_of(int argc, char** argv) {
  const auto number = [&](const char* name, unsigned long value) {
    return std::stoul(option(argc, argv, name, std::to_string(value)));
  };
  run_options o;
  o.tree.schedulers_each = static_cast<unsigned>(number("schedulers-each", o.tree.schedulers_each));
  o.tree.workers_each = static_cast<unsigned>(number("workers-each", o.tree.workers_each));
  o.worker.leases = number("leases", 1) != 0;
  o.protect = number("protect", 0) != 0;
  o.share_memory = number("share", 1) != 0;
  o.transfers.max_part = number("part", o.transfers.max_part);
  o.scheduler_timeout = static_cast<double>(number("timeout", 60));
  o.leaks = number("fail-on-leaks", 1) != 0 ? leak_policy::fail : leak_policy::report;
  return o;
}

}  // namespace quarry::cluster

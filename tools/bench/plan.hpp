// SPDX-License-Identifier: Apache-2.0
#pragma once
/// From what was typed to what is run.
///
///   plan   machine, scale and limits, all defaults filled in
///   job    cells of one experiment for one subject and one heap: a request
///   batch  jobs that share a process. Heaps of the system's malloc do not: what one leaves behind, the next
///          would find.

#include "bench/bench.hpp"
#include "bench/experiments/experiments.hpp"
#include "common/backend_info.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// The command line; 0 and "" stand for: as the machine and --quick say.
struct bench_options {
  std::string backend;
  std::string allocators = "all";
  std::string experiments;  // and groups
  std::string workloads;
  std::string heap_state = "warm";
  std::vector<size_range> sizes;
  std::string sizes_text;
  std::uint64_t lanes = 0;
  std::uint64_t repeats = 0;
  std::uint64_t heap = 0;
  std::uint64_t timeout = 20;
  double time_limit = 0;
  bool quick = false;
  bool json = false;
  bool list = false;
  std::string out;
};

struct bench_plan {
  backend_info backend;
  bench_environment where;
  std::vector<std::string_view> allocators;
  std::vector<const experiment*> experiments;
  bench_scale scale;
  bench_request request;       // what all requests have in common
  std::string common_options;  // of the command line, for the record

  bool gpu() const { return backend.name == "cuda"; }
  /// What to type to have the curve of an allocator again.
  std::string command(const experiment& e, std::string_view allocator) const;
};

/// Throws input_error.
bench_plan make_plan(const bench_options& options);

struct bench_job {
  bench_subject subject;
  bench_request request;
};
using bench_batch_of_jobs = std::vector<bench_job>;

/// All jobs of an experiment: first those that share a process, in order, then each of the others.
std::vector<bench_batch_of_jobs> jobs_of(const bench_plan& plan, const experiment& e);

}  // namespace quarry::tool

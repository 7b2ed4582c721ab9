// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Turns the options of the command line into requests.
///
///   plan    backend, scale and limits, with all defaults filled in
///   job     one request: measurements of one experiment for one subject and one heap
///   batch   jobs that share a process. Allocators over the system's malloc get a process each,
///           since that heap keeps what an earlier job left in it.

#include "bench/experiments/experiment.hpp"
#include "bench/request.hpp"
#include "common/backend_info.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// The options of the command line. 0 and "" stand for defaults that depend on backend and --quick.
struct bench_options {
  std::string backend;
  std::string allocators = "all";
  std::string experiments;  // ids and groups
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
  bench_request request;       // the part that all requests have in common
  std::string common_options;  // options for command()

  bool gpu() const { return backend.name == "cuda"; }
  /// Returns the command that measures the curve of an allocator again.
  std::string command(const experiment& e, std::string_view allocator) const;
};

/// Throws input_error if an option is invalid.
bench_plan make_plan(const bench_options& options);

struct bench_job {
  bench_subject subject;
  bench_request request;
};
using bench_job_batch = std::vector<bench_job>;

/// Returns all jobs of an experiment: first the batch of jobs that share a process, then one batch
/// for each job that needs its own process.
std::vector<bench_job_batch> jobs_of(const bench_plan& plan, const experiment& e);

}  // namespace quarry::tool

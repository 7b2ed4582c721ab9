// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The interface between the command line of `quarry bench` and the code that measures. Host code
/// and device code both include this header. The measuring code is a set of templates, compiled
/// once for each backend (kernels/).
///
///   experiment    a figure of a paper, or one of ours; a list of measurements (experiments/)
///   measurement   the parameters of one run: workload, sizes, lanes, heap
///   request       measurements of one experiment for one allocator and one heap
///   result        what a measurement gave: one data point, or a curve if the workload has steps

#include "common/parse.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace quarry::tool {

/// The pattern of calls that a measurement runs. Several experiments share a pattern.
enum class bench_workload : std::uint8_t {
  malloc_then_free,  // one kernel in which every lane allocates, one in which every lane frees
  churn,             // one kernel: malloc, write, free, `rounds` times
  batch,             // one kernel: `batch` mallocs, then `batch` frees
  random_walk,       // `rounds` launches: a lane allocates or frees, with probability 0.75
  fragmentation,     // all lanes allocate; in each of `rounds` rounds some free and allocate again
  fill,              // mallocs until one fails: the usable fraction of the heap
  produce,           // one kernel: every lane allocates and fills its block; a second kernel frees
  write,             // every lane fills its block; only the writes are timed
  latency,           // like malloc_then_free, with a clock around each call
  // Workloads with a curve as the result: one run over one heap, one data point for each step.
  steady_state,  // sizes drift and lifetimes mix, for `rounds` rounds
  recovery,      // fill the heap, free all blocks, fill it with another size, ...
  fill_levels    // a heap that is 99 %, 95 %, ..., 0 % full: the time of a call
};

/// `batch` mallocs of `size` bytes by each lane.
struct bench_load {
  std::uint32_t batch = 1;
  std::uint64_t size = 0;
};

struct bench_measurement {
  std::string experiment;
  std::string x_label;  // the x value as text
  double x = 0;         // the x value as a number
  std::string variant;  // distinguishes curves of one allocator; empty if there is only one
  bench_workload workload = bench_workload::malloc_then_free;
  size_range sizes;                   // of blocks; all sizes in the range are equally likely
  std::uint64_t lanes = 0;            // lanes that call; fill and fill_levels: lanes of a grid
  std::uint32_t lanes_per_warp = 32;  // the lowest lanes of each warp call
  std::uint32_t threads_per_block = 256;
  std::uint32_t batch = 1;
  std::uint32_t rounds = 1;
  std::vector<bench_load> loads;  // batch: run one after the other, instead of `batch` and `sizes`
  std::uint32_t turnover = 50;    // fragmentation: percent of lanes that free in a round, 50 or 100
  std::uint32_t occupied = 0;     // percent of the heap that blocks of 1 KiB occupy beforehand
  std::uint64_t heap_bytes = 0;   // 0: the heap size of the plan
  bool cold = false;              // every pass runs on a new heap

  std::vector<bench_load> all_loads() const {
    return loads.empty() ? std::vector<bench_load>{{batch, sizes.most}} : loads;
  }
  /// Returns the number of mallocs of one pass.
  std::uint64_t mallocs() const {
    std::uint64_t n = 0;
    for (const bench_load& l : all_loads()) n += lanes * l.batch * rounds;
    return n;
  }
  /// Returns an estimate of the work of a pass. Only measurements of one curve are comparable.
  double effort() const {
    if (workload == bench_workload::fill) return 1 / static_cast<double>(sizes.least);
    double bytes = 0;
    for (const bench_load& l : all_loads())
      bytes +=
          static_cast<double>(l.batch) * static_cast<double>(std::max<std::uint64_t>(l.size, 16));
    return bytes * static_cast<double>(lanes) * rounds;
  }
};

struct bench_request {
  std::string backend;           // "cpu" or "cuda"
  std::string allocator;         // a name of the library, or of kernels/variants.hpp
  std::uint64_t heap_bytes = 0;  // one heap serves all measurements
  std::uint64_t repeats = 5;
  double timeout = 20;    // seconds after which the parent kills the process of a measurement
  double time_limit = 2;  // seconds that a measurement should take
  // True: the GPU starts a pass when it has received all kernels of the pass, so that the time does
  // not depend on the speed of the host.
  bool queued = false;
  std::vector<bench_measurement> measurements;
};

/// Times of several passes in milliseconds. Negative: not measured.
struct bench_time {
  double median = -1;
  double min = -1;
  double max = -1;
  bool measured() const { return median >= 0; }
};

enum class bench_outcome : std::uint8_t {
  ok,         // the measurement ran; the counts of the result tell whether the blocks were sound
  skipped,    // the allocator does not support the workload
  given_up,   // a measurement of the same curve with less work took too long
  failed,     // the run ended with an exception
  timed_out,  // the parent killed the process
  crashed,    // the process died
  not_run     // too many measurements of the request were lost before
};

/// Further numbers, by the name that they have in records.
using bench_fields = std::map<std::string, double>;

/// One step of a measurement whose result is a curve.
struct bench_step {
  double x = 0;
  bench_time time;
  bench_time free_time;
  bench_fields fields;
};

struct bench_result {
  bench_outcome outcome = bench_outcome::ok;
  std::string note;            // the reason, unless the outcome is ok
  std::uint64_t repeats = 0;   // timed passes
  bench_time time;             // of the kernel that allocates, or of the only kernel
  bench_time free_time;        // of the kernel that frees, if there is one
  double atomics = -1;         // per call in the first kernel; CPU backend only
  double free_atomics = -1;    // per call in the second kernel; CPU backend only
  std::vector<double> values;  // fragmentation after each round, or the usable fraction
  bench_fields fields;
  std::vector<bench_step> curve;
  double seconds = 0;  // duration of the whole measurement
  // Counts of the untimed pass that writes every block and reads it back.
  std::uint64_t failures = 0;  // malloc returned nullptr
  std::uint64_t corrupt = 0;   // the block lost its content, or lies outside the pool
  std::uint64_t misaligned = 0;

  /// True if there is no result because something went wrong.
  bool lost() const {
    return outcome == bench_outcome::failed || outcome == bench_outcome::timed_out ||
           outcome == bench_outcome::crashed || outcome == bench_outcome::not_run;
  }
  bool sound() const { return !lost() && corrupt == 0 && misaligned == 0; }
};

/// Called once for each measurement, when its result is known.
using bench_callback = std::function<void(const bench_measurement&, const bench_result&)>;
/// Runs a request in this process. An exception ends the request; results that were passed to the
/// callback before remain valid.
using bench_runner = std::function<void(const bench_request&, const bench_callback&)>;

void run_bench_cpu(const bench_request& request, const bench_callback& emit);
void run_bench_cuda(const bench_request& request, const bench_callback& emit);

/// Hardware and software of a measurement, for the record. Unknown parts are empty.
struct bench_environment {
  std::string backend;
  std::string device;    // name of the GPU, or a description of the CPU backend
  std::string driver;    // version of NVIDIA's driver
  std::string cuda;      // version of the CUDA runtime
  std::string compiler;  // of the device code
  std::string commit;
  std::string date;
};

/// Return device, driver, version of CUDA and compiler.
bench_environment describe_bench_cpu();
bench_environment describe_bench_cuda();

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `quarry bench` asks of a machine, and what comes back. The run itself is a template, compiled once
/// a machine (bench_run.hpp); this header is all that both compilers and the command line share.
///
///   workload   a name people know ("churn"); its cells are the rows of its table
///   cell       one workload with all its numbers: what is measured at a time
///   request    the cells of one workload for one allocator: what a child process does

#include "parse.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quarry::tool {

/// How a cell is run; several workloads share a shape.
enum class bench_shape : std::uint8_t {
  blocks,  // a kernel in which every worker allocates, then one in which all free
  churn,   // one kernel: malloc, write, free, `rounds` times
  batch,   // one kernel: `batch` mallocs, then as many frees
  chance,  // `rounds` launches: a worker allocates or frees, with probability 0.75
  extent,  // all allocate; `rounds` times a random half frees and allocates again: how far blocks spread
  fill  // until a malloc fails: how much of the heap can be had
};

struct bench_cell {
  std::string workload;
  std::string row;  // what tells it from the workload's other cells, for people
  bench_shape shape = bench_shape::blocks;
  size_range sizes;            // bytes; each size between is equally likely
  std::uint64_t workers = 0;   // lanes that ask; fill: at a time
  std::uint32_t working = 32;  // of them in each warp, the lowest ones
  std::uint32_t batch = 1;
  std::uint32_t rounds = 1;
};

struct bench_request {
  std::string machine;  // "cpu", "cuda"
  std::string allocator;
  std::uint64_t heap = 0;  // bytes; made once for all cells
  std::uint64_t repeats = 5;
  double limit = 20;  // seconds a cell may take
  std::vector<bench_cell> cells;
};

/// Milliseconds; negative: not measured.
struct bench_time {
  double median = -1;
  double least = -1;
  double most = -1;
  bool measured() const { return median >= 0; }
};

enum class bench_outcome : std::uint8_t {
  ok,         // it ran; whether its blocks were sound is in the counts
  skipped,    // it makes no sense for this allocator
  failed,     // the run ended with an error
  timed_out,  // its process was ended
  crashed,    // its process died
  not_run     // given up after too many were lost
};

struct bench_figures {
  bench_outcome outcome = bench_outcome::ok;
  std::string note;           // why, where it is not ok
  std::uint64_t repeats = 0;  // timed passes
  bench_time time;            // of the kernel that allocates, or of the workload's one kernel
  bench_time free_time;       // of the kernel that frees, where there is one
  double atomics = -1;        // per call in the first; cpu only; negative: not counted
  double free_atomics = -1;
  std::vector<double> values;  // extent: spread after each round; fill: share of the heap
  // Of the untimed pass in which every block is written and read back:
  std::uint64_t failures = 0;  // malloc gave nullptr
  std::uint64_t corrupt = 0;   // blocks that held something else, or lay outside the pool
  std::uint64_t misaligned = 0;

  bool lost() const {
    return outcome == bench_outcome::failed || outcome == bench_outcome::timed_out ||
           outcome == bench_outcome::crashed || outcome == bench_outcome::not_run;
  }
  bool sound() const { return !lost() && corrupt == 0 && misaligned == 0; }
};

/// Called when a cell is done.
using bench_emit = std::function<void(const bench_cell&, const bench_figures&)>;
/// Does a request in this process. An exception ends it; the cells that were emitted count.
using bench_runner = std::function<void(const bench_request&, const bench_emit&)>;

void run_bench_cpu(const bench_request& request, const bench_emit& emit);
void run_bench_cuda(const bench_request& request, const bench_emit& emit);

/// Where figures were measured, for the record; empty where it is not known.
struct bench_environment {
  std::string machine;
  std::string device;    // the GPU's name, or what stands in for one
  std::string driver;    // NVIDIA's
  std::string cuda;      // the runtime's version
  std::string compiler;  // of the device code
  std::string commit;
  std::string date;
};

/// Device, driver, CUDA's version and the compiler.
bench_environment describe_bench_cpu();
bench_environment describe_bench_cuda();

}  // namespace quarry::tool

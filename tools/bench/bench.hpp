// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `quarry bench` asks of a machine, and what comes back. The run itself is a template, compiled once
/// a machine (bench_run.hpp); this header is all that both compilers and the command line share.
///
///   experiment   a figure that people know ("xmalloc-2"), made of cells (experiments.hpp)
///   cell         one experiment with all its numbers: what is measured at a time
///   request      cells of one experiment for one allocator and one heap
///   figures      what a cell gave: a point of a curve, or a whole one where the cell goes through steps

#include "common/parse.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace quarry::tool {

/// How a cell is run; several experiments share a shape.
enum class bench_shape : std::uint8_t {
  blocks,    // a kernel in which every worker allocates, then one in which all free
  churn,     // one kernel: malloc, write, free, `rounds` times
  batch,     // one kernel: `batch` mallocs, then as many frees
  chance,    // `rounds` launches: a worker allocates or frees, with probability 0.75
  extent,    // all allocate; `rounds` times some free and allocate again: how far blocks spread
  fill,      // until a malloc fails: how much of the heap can be had
  generate,  // one kernel: every worker allocates and fills its block; then one in which all free
  write,     // every worker fills its block: only that is timed
  latency,   // as blocks, with a clock around every call
  // Curves: one run over a heap, a step at a time.
  steady,    // sizes drift and lifetimes mix, `rounds` times: what is live, what is refused
  recovery,  // fill, free all, fill with another size, …
  levels     // a heap full to 99 %, 95 % … 0 %: what a call costs
};

/// Mallocs of a worker, and the bytes of each.
struct bench_load {
  std::uint32_t batch = 1;
  std::uint64_t size = 0;
};

struct bench_cell {
  std::string experiment;
  std::string row;      // its place on the experiment's axis, for people
  double x = 0;         // the same as a number
  std::string variant;  // tells a curve from others of the same allocator; empty: there is one
  bench_shape shape = bench_shape::blocks;
  size_range sizes;             // bytes; each size between is equally likely
  std::uint64_t workers = 0;    // lanes that ask; fill, levels: at a time
  std::uint32_t working = 32;   // of them in each warp, the lowest ones
  std::uint32_t threads = 256;  // a block
  std::uint32_t batch = 1;
  std::uint32_t rounds = 1;
  std::vector<bench_load> loads;  // batch: one after the other in place of `batch` and `sizes`
  std::uint32_t turnover = 50;    // extent: percent that free and allocate again, 50 or 100
  std::uint32_t occupied = 0;     // percent of the heap that was taken before, in blocks of 1 KiB
  std::uint64_t heap = 0;         // bytes; 0: the run's
  bool cold = false;              // every pass is the first on a new heap

  std::vector<bench_load> all_loads() const {
    return loads.empty() ? std::vector<bench_load>{{batch, sizes.most}} : loads;
  }
  /// Mallocs of a pass.
  std::uint64_t mallocs() const {
    std::uint64_t n = 0;
    for (const bench_load& l : all_loads()) n += workers * l.batch * rounds;
    return n;
  }
  /// Grows with what a pass has to do, among cells of one curve.
  double effort() const {
    if (shape == bench_shape::fill) return 1 / static_cast<double>(sizes.least);
    double bytes = 0;
    for (const bench_load& l : all_loads())
      bytes +=
          static_cast<double>(l.batch) * static_cast<double>(std::max<std::uint64_t>(l.size, 16));
    return bytes * static_cast<double>(workers) * rounds;
  }
};

struct bench_request {
  std::string backend;     // "cpu", "cuda"
  std::string allocator;   // a name of the library, or of bench_variants.hpp
  std::uint64_t heap = 0;  // bytes; made once for all cells
  std::uint64_t repeats = 5;
  double limit = 20;  // seconds after which a cell is lost
  double share = 2;   // seconds that a cell should take
  bool queued =
      false;  // a GPU begins when it has all kernels of a pass: how fast the host is does not matter
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
  given_up,   // a smaller one took too long
  failed,     // the run ended with an error
  timed_out,  // its process was ended
  crashed,    // its process died
  not_run     // too many before it were lost
};

/// Further figures by the name that records have for them.
using bench_fields = std::map<std::string, double>;

/// A step of a cell that goes through several.
struct bench_step {
  double x = 0;
  bench_time time;
  bench_time free_time;
  bench_fields fields;
};

struct bench_figures {
  bench_outcome outcome = bench_outcome::ok;
  std::string note;           // why, where it is not ok
  std::uint64_t repeats = 0;  // timed passes
  bench_time time;            // of the kernel that allocates, or of the shape's one kernel
  bench_time free_time;       // of the kernel that frees, where there is one
  double atomics = -1;        // per call in the first; cpu only; negative: not counted
  double free_atomics = -1;
  std::vector<double> values;  // extent: spread after each round; fill: share of the heap
  bench_fields fields;
  std::vector<bench_step> curve;
  double seconds = 0;  // all of it took
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
  std::string backend;
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

// SPDX-License-Identifier: Apache-2.0
/// Measures the default heap in all workloads of docs/design/slab.md, one after the other in one
/// heap. Each row shows the time beside the target for an NVIDIA H200. On the CPU backend the times
/// mean nothing, and the program serves as a test.
///
/// A row is a warm-up pass and `repeats` timed passes, of which the median counts. Then every block
/// is written and read back. The list of workloads runs `rounds` times in the same heap. The
/// workloads that fill a heap, need a cold heap, or measure fragmentation use heaps of their own,
/// since in a used heap the result depends on where free memory lies.

#include "bench/kernels/blocks.hpp"
#include "bench/kernels/calls.hpp"
#include "bench/kernels/dispatch.hpp"
#include "bench/kernels/loops.hpp"
#include "bench_main.hpp"

#include <quarry/heap.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {
namespace {

using backend = default_backend;
using heap_type = heap<slab, backend>;
constexpr bool gpu = QUARRY_CUDA != 0;

constexpr std::uint64_t vinkler_warps = gpu ? 960 : 96;  // in ACD and P
constexpr double no_target = std::numeric_limits<double>::infinity();

struct settings {
  std::uint64_t lanes = gpu ? 1 << 20 : 1 << 11;
  std::uint64_t heap = gpu ? std::uint64_t{16} << 30 : std::uint64_t{32} << 20;
  std::uint64_t repeats = gpu ? 21 : 1;  // odd; refills of many cursors slow down one or two passes
  std::uint64_t rounds = 1;
  bool queued = false;
};

/// The values of all rounds, and the target: an upper bound, or a lower bound if `is_minimum` is
/// set.
struct figure {
  double target = no_target;
  bool is_minimum = false;
  std::vector<double> values = {};

  bool met() const {
    return std::all_of(values.begin(), values.end(),
                       [this](double v) { return is_minimum ? v >= target : v <= target; });
  }
  std::string text() const {
    if (values.empty()) return "";
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    char text[64];
    if (values.size() == 1)
      std::snprintf(text, sizeof text, "%.4f", *low);
    else
      std::snprintf(text, sizeof text, "%.4f-%.4f", *low, *high);
    return text;
  }
  std::string target_text() const {
    if (target == no_target) return "";
    char text[32];
    std::snprintf(text, sizeof text, "%s %.3f", is_minimum ? ">=" : "<=", target);
    return text;
  }
};

struct row {
  std::string workload;
  bench_measurement measurement;
  // Milliseconds of the kernel that allocates, or of the only kernel. Fragmentation, fill: a ratio.
  figure first;
  figure second;  // milliseconds of the kernel that frees
};

// ---- the list of workloads -------------------------------------------------------------------

bench_measurement make(bench_workload workload, size_range sizes, std::uint64_t lanes) {
  bench_measurement c;
  c.workload = workload;
  c.sizes = sizes;
  c.lanes = lanes;
  return c;
}
bench_measurement one_lane_per_warp(bench_measurement c) { return c.lanes_per_warp = 1, c; }
bench_measurement batches(bench_measurement c, std::uint32_t batch) { return c.batch = batch, c; }
bench_measurement rounds(bench_measurement c, std::uint32_t n) { return c.rounds = n, c; }

std::vector<row> rows_of(const settings& s) {
  using enum bench_workload;
  std::vector<row> rows;
  for (std::uint64_t n = 16; n <= 8192; n *= 2)
    rows.push_back({"one block of " + std::to_string(n) + " B per lane",
                    make(malloc_then_free, {n, n}, s.lanes),
                    {n <= 256 ? 0.035 : 0.060},
                    {n <= 256 ? 0.022 : 0.025}});
  for (row r : {
           row{"16-1024 B per lane", make(malloc_then_free, {16, 1024}, s.lanes), {0.080}, {0.040}},
           row{"16-8192 B per lane", make(malloc_then_free, {16, 8192}, s.lanes), {0.150}, {0.045}},
           row{"64 B, lanes x 4", make(malloc_then_free, {64, 64}, 4 * s.lanes), {0.070}, {0.055}},
           row{"churn: lanes / 4, 32 x 64 B",
               rounds(make(churn, {64, 64}, s.lanes / 4), 32),
               {0.30},
               {}},
           row{"one lane per warp, 16 B",
               one_lane_per_warp(make(malloc_then_free, {16, 16}, s.lanes / 8)),
               {0.060},
               {0.038}},
           row{"one lane per warp, 64 KiB",
               one_lane_per_warp(make(malloc_then_free, {64 << 10, 64 << 10}, s.lanes / 8)),
               {0.24},
               {0.06}},
           row{"XMalloc test, 32 lanes per warp", make(churn, {4, 4}, s.lanes), {0.045}, {}},
           row{"XMalloc test, 1 lane per warp",
               one_lane_per_warp(make(churn, {4, 4}, s.lanes)),
               {0.55},
               {}},
           row{"ACD: one lane per warp, 100 x 16 B",
               batches(one_lane_per_warp(make(batch, {16, 16}, vinkler_warps)), 100),
               {0.18},
               {}},
           row{"P: ten launches, one lane per warp, 16 B",
               rounds(one_lane_per_warp(make(random_walk, {16, 16}, vinkler_warps)), 10),
               {0.049},
               {}},
           row{"lanes / 16, 16 x 64 B each",
               batches(make(batch, {64, 64}, s.lanes / 16), 16),
               {0.050},
               {}},
           row{"fragmentation after 5 rounds, 16-1024 B",
               rounds(make(fragmentation, {16, 1024}, s.lanes), 5),
               {1.36},
               {}},
           row{"fragmentation after 50 rounds, 16-1024 B",
               rounds(make(fragmentation, {16, 1024}, s.lanes), 50),
               {1.36},
               {}},
       })
    rows.push_back(std::move(r));
  return rows;
}

// ---- heaps that are filled -------------------------------------------------------------------

struct fill_kernel {
  heap_type::ref_type heap;
  std::uint64_t first;
  std::uint64_t lanes;
  bench_sizes sizes;
  void** blocks;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t i = simt::global_thread();
    if (i < lanes) blocks[first + i] = heap.malloc(sizes.in_round(first + i, 0));
  }
};

/// Fills a heap: grids allocate blocks until an allocation fails; then all blocks are written, read
/// back and freed.
class filling : public bench_fixture<slab, backend> {
 public:
  using bench_fixture::bench_fixture;

  struct outcome {
    double usable_fraction = 0;
    double milliseconds = 0;
  };
  outcome fill(size_range range, std::uint64_t max_lanes) {
    const bench_sizes sizes(range);
    const std::uint64_t room = request_.heap_bytes / ((range.least + range.most) / 2);
    const std::uint64_t lanes = std::clamp<std::uint64_t>(room / 4, 1, max_lanes);
    simt::array<void*, backend> blocks(room + room / 8 + 2 * lanes);
    outcome result;
    std::uint64_t requested = 0;
    std::uint64_t failed = 0;
    double bytes = 0;
    while (failed == 0 && requested + lanes <= blocks.size()) {
      result.milliseconds += timed(bench_lanes{lanes, 32}.launch_grid(),
                                   fill_kernel{ref(), requested, lanes, sizes, blocks.data()})
                                 .milliseconds;
      std::vector<void*> got(lanes);
      simt::memory<backend>::copy(got.data(), blocks.data() + requested, lanes * sizeof(void*));
      for (std::uint64_t i = 0; i < lanes; ++i) {
        failed += got[i] == nullptr ? 1 : 0;
        if (got[i] != nullptr) bytes += static_cast<double>(sizes.in_round(requested + i, 0));
      }
      requested += lanes;
    }
    const bench_write all = contents(blocks.data(), requested, sizes, 0);
    write(all);
    check(all);
    launch<backend>(bench_lanes{requested, 32}.launch_grid(),
                    bench_free<ref_type>{ref(), {requested, 32}, sizes, 0, blocks.data()});
    result.usable_fraction = bytes / static_cast<double>(request_.heap_bytes);
    return result;
  }
  /// Returns the number of damaged blocks since the last call.
  std::uint64_t take_damaged() {
    bench_result f;
    read_counts(f);
    clear_counts();
    return f.corrupt + f.misaligned;
  }
};

// ---- the run ---------------------------------------------------------------------------------

class default_heap {
 public:
  explicit default_heap(const settings& s) : settings_(s), rows_(rows_of(s)) {
    request_.heap_bytes = s.heap;
    request_.repeats = s.repeats;
    request_.time_limit = 1e6;  // no limit
    request_.queued = s.queued;
    heap_ = std::make_shared<heap_type>(bytes(s.heap));
  }

  void run_all() {
    for (std::uint64_t round = 0; round < settings_.rounds; ++round) {
      for (row& r : rows_) measure(r);
      fill_heaps();
      measure_cold();
      measure_launches();
    }
    if (const std::string problem = heap_->check_invariants(); !problem.empty()) {
      std::fprintf(stderr, "invariants of the heap do not hold: %s\n", problem.c_str());
      ++damaged_;
    }
  }

  /// Returns an exit code.
  int print() const {
    std::printf("| %-42s | %-15s | %-8s | %-15s | %-8s |\n", "workload", "ms, or ratio", "target",
                "ms to free", "target");
    std::printf("| --- | --- | --- | --- | --- |\n");
    std::size_t targets = 0;
    std::size_t met = 0;
    for (const std::vector<row>* rows : {&rows_, &extra_})
      for (const row& r : *rows) {
        std::printf("| %-42s | %-15s | %-8s | %-15s | %-8s |\n", r.workload.c_str(),
                    r.first.text().c_str(), r.first.target_text().c_str(), r.second.text().c_str(),
                    r.second.target_text().c_str());
        for (const figure* f : {&r.first, &r.second}) {
          targets += f->target != no_target ? 1 : 0;
          met += f->target != no_target && f->met() ? 1 : 0;
        }
      }
    std::printf("\n%zu of %zu targets met%s. %llu blocks damaged, %llu allocations failed.\n", met,
                targets, gpu ? "" : " (the targets are for a GPU)",
                static_cast<unsigned long long>(damaged_),
                static_cast<unsigned long long>(failed_));
    return damaged_ == 0 && failed_ == 0 ? 0 : 1;
  }

 private:
  void measure(row& r) {
    const bench_result f = run(r.measurement);
    count(f);
    const bool ratio = r.measurement.workload == bench_workload::fragmentation;
    r.first.values.push_back(ratio ? f.values.back() : f.time.median);
    if (f.free_time.measured() && !ratio) r.second.values.push_back(f.free_time.median);
  }

  bench_result run(const bench_measurement& measurement) {
    switch (kind_of(measurement.workload)) {
      case bench_runner_kind::loops:
        return loop_bench<slab, backend>(request_, heap_).run(measurement);
      case bench_runner_kind::calls:
        return call_bench<slab, backend>(request_, heap_).run(measurement);
      default:
        if (measurement.workload == bench_workload::fragmentation)
          return block_bench<slab, backend>(request_).run(measurement);
        return block_bench<slab, backend>(request_, heap_).run(measurement);
    }
  }

  void count(const bench_result& f) {
    damaged_ += f.corrupt + f.misaligned;
    failed_ += f.failures;
  }

  void fill_heaps() {
    bench_request small = request_;
    small.heap_bytes = settings_.heap / 16;
    filling fixture(small);
    const std::uint64_t max_lanes = settings_.lanes / 4;
    (void)fixture.fill({small.heap_bytes / 8, small.heap_bytes / 8}, 1);  // loads the kernels
    double all = 0;
    for (const size_range sizes : {size_range{256, 256}, {1000, 1000}, {16, 1024}}) {
      const filling::outcome o = fixture.fill(sizes, max_lanes);
      const std::string name = sizes.least == sizes.most ? std::to_string(sizes.least) : "16-1024";
      at("usable fraction, heap / 16, " + name + " B", {name == "256"    ? 0.98
                                                        : name == "1000" ? 0.97
                                                                         : 0.90,
                                                        true})
          .values.push_back(o.usable_fraction);
      all += o.milliseconds;
    }
    at("ms for these three, with failed calls", {10}).values.push_back(all);
    for (const std::uint64_t n : {64, 8192, 1 << (gpu ? 20 : 16)})
      at("usable fraction in turn, " + std::to_string(n) + " B", {0.97, true})
          .values.push_back(fixture.fill({n, n}, max_lanes).usable_fraction);
    damaged_ += fixture.take_damaged();
  }

  void measure_cold() {
    bench_measurement measurement =
        make(bench_workload::malloc_then_free, {64, 64}, settings_.lanes);
    measurement.cold = true;
    const bench_result f = block_bench<slab, backend>(request_).run(measurement);
    count(f);
    at("64 B per lane, first launch on a new heap", {0.08}).values.push_back(f.time.median);
  }

  /// Times kernels in which no lane calls: a lower bound for every allocator.
  void measure_launches() {
    at("a kernel in which no lane calls", {})
        .values.push_back(time_idle(1, bench_lanes{settings_.lanes, 32}.launch_grid()));
    at("ten launches in which no lane calls", {})
        .values.push_back(time_idle(10, bench_lanes{vinkler_warps, 1}.launch_grid()));
  }
  double time_idle(unsigned launches, const grid& g) const {
    const bench_random_walk<heap_type::ref_type> idle{heap_->ref(), {0, 1}, 16, 0, nullptr};
    const bench_clock<backend> clock(settings_.queued);
    std::vector<double> times;
    for (std::uint64_t i = 0; i <= settings_.repeats; ++i)
      times.push_back(clock
                          .time([&] {
                            for (unsigned n = 0; n < launches; ++n) clock.start(g, idle);
                          })
                          .milliseconds);
    times.erase(times.begin());  // warm-up
    return summary(times).median;
  }

  /// Returns the figure of an extra row, and adds the row at the first call.
  figure& at(const std::string& workload, const figure& initial) {
    for (row& r : extra_)
      if (r.workload == workload) return r.first;
    extra_.push_back({workload, {}, initial, {}});
    return extra_.back().first;
  }

  settings settings_;
  std::vector<row> rows_;
  std::vector<row> extra_;
  bench_request request_;
  std::shared_ptr<heap_type> heap_;
  std::uint64_t damaged_ = 0;
  std::uint64_t failed_ = 0;
};

constexpr std::string_view usage =
    "usage: default_heap_bench [--repeats N] [--rounds N] [--lanes N] [--heap SIZE]\n"
    "                          [--clock WHAT]\n"
    "\n"
    "Measures all workloads of docs/design/slab.md, one after the other in one heap, beside their\n"
    "targets.\n"
    "\n"
    "  --repeats N   timed passes of each row, of which the median counts\n"
    "  --rounds N    runs the list N times, and prints the smallest and the largest median\n"
    "  --lanes N     lanes of a grid (the targets are for 1048576)\n"
    "  --heap SIZE   for example 16G\n"
    "  --clock WHAT  host: times start when the host begins to launch kernels; gpu: when the GPU "
    "has\n"
    "                received all kernels, so that the host's speed does not matter [host]\n";

settings parse(int count, char** words) {
  settings s;
  read_options(count, words,
               {count_option("--repeats", s.repeats, 1, 1'000'000),
                count_option("--rounds", s.rounds, 1, 1'000'000),
                count_option("--lanes", s.lanes, 1024, 1 << 24), size_option("--heap", s.heap),
                choice_option("--clock", s.queued, "host", "gpu")});
  return s;
}

}  // namespace
}  // namespace quarry::tool

int main(int count, char** words) {
  using namespace quarry::tool;
  return bench_main("default_heap_bench", usage, count, words, [&] {
    default_heap all(parse(count, words));
    all.run_all();
    return all.print();
  });
}

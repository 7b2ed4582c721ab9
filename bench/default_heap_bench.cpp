// SPDX-License-Identifier: Apache-2.0
/// The default heap at all its work, one kind after the other in one heap that is made once: the table of
/// docs/design/slab.md. Each row stands beside the aim that was set for an NVIDIA H200; on the CPU the times mean nothing,
/// and the program is a test.
///
/// A row is a warm-up and `repeats` timed passes, of which the median counts; then every block is written and read back.
/// The list is gone through `rounds` times, in the same heap. Heaps that are filled, the cold one, and those in which it is
/// measured how far blocks spread, are their own: in a used one they lie where free memory is.

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
constexpr double no_aim = std::numeric_limits<double>::infinity();

struct settings {
  std::uint64_t lanes = gpu ? 1 << 20 : 1 << 11;
  std::uint64_t heap = gpu ? std::uint64_t{16} << 30 : std::uint64_t{32} << 20;
  std::uint64_t repeats = gpu ? 21 : 1;  // a burst of renewals takes one or two of them
  std::uint64_t rounds = 1;
  bool queued = false;
};

/// What was measured in each round, and what it should be at most; where `least`, at least.
struct figure {
  double aim = no_aim;
  bool least = false;
  std::vector<double> seen = {};

  bool met() const {
    return std::all_of(seen.begin(), seen.end(),
                       [this](double v) { return least ? v >= aim : v <= aim; });
  }
  std::string text() const {
    if (seen.empty()) return "";
    const auto [low, high] = std::minmax_element(seen.begin(), seen.end());
    char text[64];
    if (seen.size() == 1)
      std::snprintf(text, sizeof text, "%.4f", *low);
    else
      std::snprintf(text, sizeof text, "%.4f-%.4f", *low, *high);
    return text;
  }
  std::string aim_text() const {
    if (aim == no_aim) return "";
    char text[32];
    std::snprintf(text, sizeof text, "%s %.3f", least ? ">=" : "<=", aim);
    return text;
  }
};

struct row {
  std::string work;
  bench_cell cell;
  figure
      first;  // milliseconds of the kernel that allocates, or of all; of `extent` and `fill` a ratio
  figure second;  // milliseconds of the kernel that frees
};

// ---- the list --------------------------------------------------------------------------------------

bench_cell work(bench_shape shape, size_range sizes, std::uint64_t workers) {
  bench_cell c;
  c.shape = shape;
  c.sizes = sizes;
  c.workers = workers;
  return c;
}
bench_cell of_one_lane(bench_cell c) { return c.working = 1, c; }
bench_cell batches(bench_cell c, std::uint32_t batch) { return c.batch = batch, c; }
bench_cell rounds(bench_cell c, std::uint32_t n) { return c.rounds = n, c; }

std::vector<row> rows_of(const settings& s) {
  using enum bench_shape;
  std::vector<row> rows;
  for (std::uint64_t n = 16; n <= 8192; n *= 2)
    rows.push_back({"a block of " + std::to_string(n) + " B a lane",
                    work(blocks, {n, n}, s.lanes),
                    {n <= 256 ? 0.035 : 0.060},
                    {n <= 256 ? 0.022 : 0.025}});
  for (row r : {
           row{"16-1024 B a lane", work(blocks, {16, 1024}, s.lanes), {0.080}, {0.040}},
           row{"16-8192 B a lane", work(blocks, {16, 8192}, s.lanes), {0.150}, {0.045}},
           row{"64 B, four times as many lanes",
               work(blocks, {64, 64}, 4 * s.lanes),
               {0.070},
               {0.055}},
           row{"churn: a quarter of the lanes, 32 x 64 B",
               rounds(work(churn, {64, 64}, s.lanes / 4), 32),
               {0.30},
               {}},
           row{"one lane a warp, 16 B",
               of_one_lane(work(blocks, {16, 16}, s.lanes / 8)),
               {0.060},
               {0.038}},
           row{"one lane a warp, 64 KiB",
               of_one_lane(work(blocks, {64 << 10, 64 << 10}, s.lanes / 8)),
               {0.24},
               {0.06}},
           row{"XMalloc's test, 32 workers a warp", work(churn, {4, 4}, s.lanes), {0.045}, {}},
           row{"XMalloc's test, 1 worker a warp",
               of_one_lane(work(churn, {4, 4}, s.lanes)),
               {0.55},
               {}},
           row{"ACD: one lane a warp, 100 x 16 B",
               batches(of_one_lane(work(batch, {16, 16}, vinkler_warps)), 100),
               {0.18},
               {}},
           row{"P: ten launches, one lane a warp, 16 B",
               rounds(of_one_lane(work(chance, {16, 16}, vinkler_warps)), 10),
               {0.049},
               {}},
           row{"a sixteenth of the lanes, 16 x 64 B each",
               batches(work(batch, {64, 64}, s.lanes / 16), 16),
               {0.050},
               {}},
           row{"extent / live after 5 rounds, 16-1024 B",
               rounds(work(extent, {16, 1024}, s.lanes), 5),
               {1.36},
               {}},
           row{"extent / live after 50 rounds",
               rounds(work(extent, {16, 1024}, s.lanes), 50),
               {1.36},
               {}},
       })
    rows.push_back(std::move(r));
  return rows;
}

// ---- heaps that are filled -----------------------------------------------------------------------------

struct take_blocks {
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

/// Grids of lanes take blocks until one of them is refused; all are written, read back and freed.
class filling : public bench_site<slab, backend> {
 public:
  using bench_site::bench_site;

  struct outcome {
    double share = 0;
    double milliseconds = 0;
  };
  outcome fill(size_range range, std::uint64_t most_lanes) {
    const bench_sizes sizes(range);
    const std::uint64_t room = request_.heap / ((range.least + range.most) / 2);
    const std::uint64_t lanes = std::clamp<std::uint64_t>(room / 4, 1, most_lanes);
    simt::array<void*, backend> blocks(room + room / 8 + 2 * lanes);
    outcome result;
    std::uint64_t asked = 0;
    std::uint64_t refused = 0;
    double bytes = 0;
    while (refused == 0 && asked + lanes <= blocks.size()) {
      result.milliseconds += timed(bench_team{lanes, 32}.launch_grid(),
                                   take_blocks{ref(), asked, lanes, sizes, blocks.data()})
                                 .milliseconds;
      std::vector<void*> got(lanes);
      simt::memory<backend>::copy(got.data(), blocks.data() + asked, lanes * sizeof(void*));
      for (std::uint64_t i = 0; i < lanes; ++i) {
        refused += got[i] == nullptr ? 1 : 0;
        if (got[i] != nullptr) bytes += static_cast<double>(sizes.in_round(asked + i, 0));
      }
      asked += lanes;
    }
    const bench_write all = contents(blocks.data(), asked, sizes, 0);
    write(all);
    check(all);
    launch<backend>(bench_team{asked, 32}.launch_grid(),
                    bench_free<ref_type>{ref(), {asked, 32}, sizes, 0, blocks.data()});
    result.share = bytes / static_cast<double>(request_.heap);
    return result;
  }
  /// Blocks that were damaged or misplaced since the last question.
  std::uint64_t unsound() {
    bench_figures f;
    take_counts(f);
    clear_counts();
    return f.corrupt + f.misaligned;
  }
};

// ---- running -------------------------------------------------------------------------------------------

class default_heap {
 public:
  explicit default_heap(const settings& s) : settings_(s), rows_(rows_of(s)) {
    request_.heap = s.heap;
    request_.repeats = s.repeats;
    request_.share = 1e6;  // no pass is left out
    request_.queued = s.queued;
    heap_ = std::make_shared<heap_type>(bytes(s.heap));
  }

  void go() {
    for (std::uint64_t round = 0; round < settings_.rounds; ++round) {
      for (row& r : rows_) measure(r);
      fill_heaps();
      measure_cold();
      measure_launches();
    }
    if (const std::string wrong = heap_->check_invariants(); !wrong.empty()) {
      std::fprintf(stderr, "the heap is damaged: %s\n", wrong.c_str());
      ++unsound_;
    }
  }

  /// Returns an exit code.
  int print() const {
    std::printf("| %-42s | %-15s | %-8s | %-15s | %-8s |\n", "work", "ms, or ratio", "aim",
                "ms to free", "aim");
    std::printf("| --- | --- | --- | --- | --- |\n");
    std::size_t aims = 0;
    std::size_t met = 0;
    for (const std::vector<row>* rows : {&rows_, &extra_})
      for (const row& r : *rows) {
        std::printf("| %-42s | %-15s | %-8s | %-15s | %-8s |\n", r.work.c_str(),
                    r.first.text().c_str(), r.first.aim_text().c_str(), r.second.text().c_str(),
                    r.second.aim_text().c_str());
        for (const figure* f : {&r.first, &r.second}) {
          aims += f->aim != no_aim ? 1 : 0;
          met += f->aim != no_aim && f->met() ? 1 : 0;
        }
      }
    std::printf("\n%zu of %zu aims%s. %llu blocks damaged, %llu requests refused.\n", met, aims,
                gpu ? "" : " (they are set for a GPU)", static_cast<unsigned long long>(unsound_),
                static_cast<unsigned long long>(refused_));
    return unsound_ == 0 && refused_ == 0 ? 0 : 1;
  }

 private:
  void measure(row& r) {
    const bench_figures f = run(r.cell);
    note(f);
    const bool ratio = r.cell.shape == bench_shape::extent;
    r.first.seen.push_back(ratio ? f.values.back() : f.time.median);
    if (f.free_time.measured() && !ratio) r.second.seen.push_back(f.free_time.median);
  }

  bench_figures run(const bench_cell& cell) {
    switch (kind_of(cell.shape)) {
      case bench_kind::loops: return loop_bench<slab, backend>(request_, heap_).run(cell);
      case bench_kind::calls: return call_bench<slab, backend>(request_, heap_).run(cell);
      default:
        if (cell.shape == bench_shape::extent)
          return block_bench<slab, backend>(request_).run(cell);
        return block_bench<slab, backend>(request_, heap_).run(cell);
    }
  }

  void note(const bench_figures& f) {
    unsound_ += f.corrupt + f.misaligned;
    refused_ += f.failures;
  }

  void fill_heaps() {
    bench_request small = request_;
    small.heap = settings_.heap / 16;
    filling site(small);
    const std::uint64_t at_a_time = settings_.lanes / 4;
    (void)site.fill({small.heap / 8, small.heap / 8}, 1);  // the kernels are loaded
    double all = 0;
    for (const size_range sizes : {size_range{256, 256}, {1000, 1000}, {16, 1024}}) {
      const filling::outcome o = site.fill(sizes, at_a_time);
      const std::string name = sizes.least == sizes.most ? std::to_string(sizes.least) : "16-1024";
      at("share of a smaller heap, " + name + " B", {name == "256"    ? 0.98
                                                     : name == "1000" ? 0.97
                                                                      : 0.90,
                                                     true})
          .seen.push_back(o.share);
      all += o.milliseconds;
    }
    at("ms for these three, refusals included", {10}).seen.push_back(all);
    for (const std::uint64_t n : {64, 8192, 1 << (gpu ? 20 : 16)})
      at("share in turn, " + std::to_string(n) + " B", {0.97, true})
          .seen.push_back(site.fill({n, n}, at_a_time).share);
    unsound_ += site.unsound();
  }

  void measure_cold() {
    bench_cell cell = work(bench_shape::blocks, {64, 64}, settings_.lanes);
    cell.cold = true;
    const bench_figures f = block_bench<slab, backend>(request_).run(cell);
    note(f);
    at("a new heap's first 64 B a lane", {0.08}).seen.push_back(f.time.median);
  }

  /// Kernels in which nobody calls: no allocator is faster.
  void measure_launches() {
    at("a kernel in which no lane calls", {})
        .seen.push_back(time_idle(1, bench_team{settings_.lanes, 32}.launch_grid()));
    at("P's ten launches if nobody calls", {})
        .seen.push_back(time_idle(10, bench_team{vinkler_warps, 1}.launch_grid()));
  }
  double time_idle(unsigned launches, const grid& g) const {
    const bench_chance<heap_type::ref_type> idle{heap_->ref(), {0, 1}, 16, 0, nullptr};
    const bench_clock<backend> clock(settings_.queued);
    std::vector<double> times;
    for (std::uint64_t i = 0; i <= settings_.repeats; ++i)
      times.push_back(clock
                          .time([&] {
                            for (unsigned n = 0; n < launches; ++n) clock.start(g, idle);
                          })
                          .milliseconds);
    times.erase(times.begin());  // to warm up
    return summary(times).median;
  }

  /// The figure of a row beyond the list, made when it is first asked for.
  figure& at(const std::string& work, const figure& wanted) {
    for (row& r : extra_)
      if (r.work == work) return r.first;
    extra_.push_back({work, {}, wanted, {}});
    return extra_.back().first;
  }

  settings settings_;
  std::vector<row> rows_;
  std::vector<row> extra_;
  bench_request request_;
  std::shared_ptr<heap_type> heap_;
  std::uint64_t unsound_ = 0;
  std::uint64_t refused_ = 0;
};

constexpr std::string_view usage =
    "usage: default_heap_bench [--repeats N] [--rounds N] [--lanes N] [--heap SIZE]\n"
    "                          [--clock WHAT]\n"
    "\n"
    "All kinds of work of docs/design/slab.md, one after the other in one heap, beside their "
    "aims.\n"
    "\n"
    "  --repeats N   timed passes of each row, of which the median counts\n"
    "  --rounds N    goes through the list so often, and prints the least and the largest median\n"
    "  --lanes N     of a row (aims are set for 1048576)\n"
    "  --heap SIZE   such as 16G\n"
    "  --clock WHAT  host: from when the host begins to launch kernels; gpu: from when the\n"
    "                GPU has them all, so that the host's speed does not matter [host]\n";

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
    all.go();
    return all.print();
  });
}

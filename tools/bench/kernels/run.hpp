// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What all shapes of a benchmark share: the heap, the clock, repeating, and judging blocks.
///
/// A cell is one warm-up pass (on the CPU a second one, in which atomics are counted), timed passes, and a
/// last pass, untimed, in which every block is written and read back: after so much use there is more to
/// find. The heap is reset before a cell, where it can be, so that cells do not depend on each other. A
/// pass leaves it as it was: it frees what it took, or the heap is reset where nothing can be freed. Timed
/// passes stop early when half of the cell's share of time is gone; the figures say how many there were.
///
/// A heap that is lent is never made new: cells find it as those before them left it.
///
/// A cold cell has no warm-up: kernels are loaded by a launch in which nobody works, and every pass is the
/// first on a heap that was just made. Where the system owns the heap there is one such pass a process.

#include "bench/bench.hpp"
#include "bench/kernels/checks.hpp"
#include "bench/kernels/clock.hpp"
#include "bench/kernels/kernels.hpp"
#include "bench/patience.hpp"

#include <quarry/heap.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::tool {

inline bench_time summary(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const std::size_t half = times.size() / 2;
  const double median = times.size() % 2 != 0 ? times[half] : (times[half - 1] + times[half]) / 2;
  return {median, times.front(), times.back()};
}

class bench_timer {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

inline bench_figures skipped(std::string why) {
  bench_figures f;
  f.outcome = bench_outcome::skipped;
  f.note = std::move(why);
  return f;
}

template <class Allocator, class Backend>
class bench_site {
 public:
  using heap_type = heap<Allocator, Backend>;
  using ref_type = typename heap_type::ref_type;
  static constexpr abilities can = Allocator::can;

  explicit bench_site(const bench_request& request)
      : request_(request), counts_(bench_judge::kinds) {
    if (request.heap >= can.min_pool) heap_ = std::make_shared<heap_type>(bytes(request.heap));
  }
  bench_site(const bench_request& request, std::shared_ptr<heap_type> lent)
      : request_(request), heap_(std::move(lent)), counts_(bench_judge::kinds), is_lent_(true) {}

 protected:
  /// One pass: the kernel that allocates (or does everything), and the one that frees.
  struct pass_times {
    bench_measured first;
    bench_measured second{-1, -1};
  };

  ref_type ref() const { return heap_->ref(); }

  static bench_team team_of(const bench_cell& cell) {
    return {cell.workers, cell.working, cell.threads};
  }

  /// What cells find in the heap: done again whenever it was made new. Where the heap can not be, `undo`
  /// gives back what was there before.
  void furnish(std::function<void()> prepare, std::function<void()> undo) {
    prepare_ = {};
    renew();
    prepare_ = std::move(prepare);
    undo_ = std::move(undo);
    if (prepare_) prepare_();
  }
  /// After a cell.
  void clear() { furnish({}, {}); }

  /// The heap as new, where that is possible, and furnished.
  void renew() {
    if (is_lent_) {
      if (undo_) undo_();
    } else if constexpr (can.frees_all) {
      heap_->reset();
    } else if constexpr (can.frees_one) {
      if (undo_) undo_();
    } else {
      make_anew();
      return;
    }
    if (prepare_) prepare_();
  }
  /// After a pass: frees what nobody can free one by one.
  void renew_if_full() {
    if constexpr (!can.frees_one) renew();
  }

  template <class Kernel>
  bench_measured timed(const grid& g, const Kernel& kernel) const {
    return clock_.time([&] { clock_.start(g, kernel); });
  }

  /// Why a cell makes no sense for this allocator; empty: it does.
  std::string objection(const bench_cell& cell) const {
    if (!heap_) return "needs a heap of " + to_text(can.min_pool);
    std::uint64_t most = 0;
    std::uint64_t asked = 0;
    for (const bench_load& l : cell.all_loads()) {
      most = std::max(most, l.size);
      asked = std::max(asked, saturating_multiply(cell.workers * l.batch * cell.rounds,
                                                  align_up(l.size, block_alignment)));
    }
    asked = saturating_add(asked, cell.occupied * (request_.heap / 100));
    if (most > can.max_size) return "serves at most " + to_text(can.max_size);
    if (can.overwrites && asked > heap_->pool_bytes())
      return "would overwrite: a pass asks for " + to_text(asked);
    return {};
  }

  /// `calls` of a pass: in its first and in its second kernel. `pass` is given the workers.
  template <class Pass>
  void time_passes(bench_figures& f, const bench_cell& cell, double calls, double second_calls,
                   Pass&& pass) {
    const bench_timer timer;
    const auto time_left = [&] { return timer.seconds() < request_.share / 2; };
    const bench_team everybody = team_of(cell);
    std::vector<pass_times> passes;
    pass_times counted;
    if (cell.cold) {
      (void)pass({0, cell.working, cell.threads});
      do {
        if (can.owns_pool) make_anew();
        passes.push_back(pass(everybody));
      } while (can.owns_pool && passes.size() < request_.repeats && time_left());
      if (can.owns_pool) make_anew();
      clock_.count(true);
      if (can.owns_pool && bench_clock<Backend>::counts) counted = pass(everybody);
    } else {
      clock_.count(true);
      counted = pass(everybody);
      if (bench_clock<Backend>::counts) counted = pass(everybody);  // of a warm heap
      clock_.count(false);
      if (!bench_clock<Backend>::counts && !time_left()) passes.push_back(counted);  // slow enough
      while (passes.empty() || (passes.size() < request_.repeats && time_left()))
        passes.push_back(pass(everybody));
    }
    clock_.count(false);
    if (counted.first.atomics >= 0) f.atomics = counted.first.atomics / calls;
    if (counted.second.atomics >= 0) f.free_atomics = counted.second.atomics / second_calls;
    std::vector<double> first;
    std::vector<double> second;
    for (const pass_times& p : passes) {
      first.push_back(p.first.milliseconds);
      if (p.second.milliseconds >= 0) second.push_back(p.second.milliseconds);
    }
    f.repeats = first.size();
    f.time = summary(first);
    f.free_time = summary(second);
  }

  bench_judge judge() const {
    const memory_range pool = heap_->pool();
    const auto begin = reinterpret_cast<std::uintptr_t>(pool.begin);
    if (!can.owns_pool) return {0, ~std::uintptr_t{0}, counts_.data()};
    return {begin, begin + pool.size, counts_.data()};
  }

  /// What lies in `blocks` after `round`, for the kernels that write and check all of it.
  bench_write contents(void* const* blocks, std::uint64_t count, const bench_sizes& sizes,
                       std::uint32_t round) const {
    constexpr std::uint32_t helpers = std::is_same_v<Backend, cpu> ? 1 : 32;
    return {blocks, count, helpers, sizes, round, judge()};
  }
  void write(const bench_write& all) const { launch<Backend>(all.launch_grid(), all); }
  void check(const bench_write& all) const {
    simt::array<std::uint32_t, Backend> spoilt(all.count);
    launch<Backend>(all.launch_grid(), bench_check{all, spoilt.data()});
  }
  void clear_counts() { counts_.fill_zero(); }
  void take_counts(bench_figures& f) const {
    const std::vector<std::uint64_t> n = counts_.to_host();
    f.failures = n[bench_judge::failures];
    f.corrupt = n[bench_judge::corrupt];
    f.misaligned = n[bench_judge::misaligned];
  }

  bench_request request_;
  std::shared_ptr<heap_type> heap_;  // none: it would be too small
  simt::array<std::uint64_t, Backend> counts_;
  bench_clock<Backend> clock_{request_.queued};

 private:
  void make_anew() {
    heap_.reset();  // before there is another
    heap_ = std::make_shared<heap_type>(bytes(request_.heap));
    if (prepare_) prepare_();
  }

  bool is_lent_ = false;
  std::function<void()> prepare_;
  std::function<void()> undo_;
};

/// All cells of a request, with Bench<Allocator, Backend>. An error is emitted as the cell's outcome and
/// thrown on: a GPU is of no use to this process after one.
template <class Bench>
void run_cells(const bench_request& request, const bench_emit& emit) {
  std::size_t number = 0;
  bench_patience patience(request.share);
  try {
    Bench bench(request);
    for (; number < request.cells.size(); ++number) {
      const bench_cell& cell = request.cells[number];
      const std::string slower = patience.objection(cell);
      const bench_timer timer;
      bench_figures f = slower.empty() ? bench.run(cell) : given_up(slower);
      f.seconds = timer.seconds();
      patience.note(cell, f.seconds);
      emit(cell, f);
    }
  } catch (const std::exception& e) {
    bench_figures f;
    f.outcome = bench_outcome::failed;
    f.note = e.what();
    emit(request.cells[number], f);
    throw;
  }
}

}  // namespace quarry::tool

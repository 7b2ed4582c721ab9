// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What all shapes of a benchmark share: the heap, the clock, repeating, and judging blocks.
///
/// A cell is one warm-up pass (on the CPU a second one, in which atomics are counted), timed passes, and a
/// last pass, untimed, in which every block is written and read back: after so much use there is more to
/// find. The heap is reset before a cell, where it can be, so that cells do not depend on each other. A
/// pass leaves it empty: it frees what it took, or the heap is reset where nothing can be freed. Timed
/// passes stop early when half of the cell's time is gone; the figures say how many there were.

#include "bench.hpp"
#include "bench_clock.hpp"
#include "bench_kernels.hpp"

#include <quarry/heap.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace quarry::tool {

inline bench_time summary(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const std::size_t half = times.size() / 2;
  const double median = times.size() % 2 != 0 ? times[half] : (times[half - 1] + times[half]) / 2;
  return {median, times.front(), times.back()};
}

template <class Allocator, class Machine>
class bench_site {
 public:
  using heap_type = heap<Allocator, Machine>;
  using ref_type = typename heap_type::ref_type;
  static constexpr abilities can = Allocator::can;

  explicit bench_site(const bench_request& request)
      : request_(request), heap_(std::in_place, bytes(request.heap)), counts_(bench_judge::kinds) {}

 protected:
  /// One pass: the kernel that allocates (or does everything), and the one that frees.
  struct pass_times {
    bench_measured first;
    bench_measured second{-1, -1};
  };

  ref_type ref() const { return heap_->ref(); }

  /// Before a cell: the heap as new, where that is possible.
  void renew() {
    if constexpr (can.frees_all) {
      heap_->reset();
    } else if constexpr (!can.frees_one) {
      heap_.reset();
      heap_.emplace(bytes(request_.heap));
    }
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
  std::string objection(const bench_cell& cell, std::uint64_t mallocs) const {
    if (cell.sizes.most > can.max_size) return "serves at most " + to_text(can.max_size);
    const std::uint64_t asked =
        saturating_multiply(mallocs, align_up(cell.sizes.most, block_alignment));
    if (can.overwrites && asked > heap_->pool_bytes())
      return "would overwrite: a pass asks for " + to_text(asked);
    return {};
  }

  /// `calls` of a pass: in its first and in its second kernel.
  template <class Pass>
  void time_passes(bench_figures& f, double calls, double second_calls, Pass&& pass) {
    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    clock_.count(true);
    pass_times counted = pass();
    if constexpr (bench_clock<Machine>::counts) counted = pass();  // of a warm heap
    clock_.count(false);
    if (counted.first.atomics >= 0) f.atomics = counted.first.atomics / calls;
    if (counted.second.atomics >= 0) f.free_atomics = counted.second.atomics / second_calls;
    std::vector<double> first;
    std::vector<double> second;
    do {
      const pass_times now = pass();
      first.push_back(now.first.milliseconds);
      if (now.second.milliseconds >= 0) second.push_back(now.second.milliseconds);
    } while (first.size() < request_.repeats && elapsed() < request_.limit / 2);
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
    constexpr std::uint32_t helpers = std::is_same_v<Machine, cpu> ? 1 : 32;
    return {blocks, count, helpers, sizes, round, judge()};
  }
  void write(const bench_write& all) const { launch<Machine>(all.launch_grid(), all); }
  void check(const bench_write& all) const {
    simt::array<std::uint32_t, Machine> spoilt(all.count);
    launch<Machine>(all.launch_grid(), bench_check{all, spoilt.data()});
  }
  void clear_counts() { counts_.fill_zero(); }
  void take_counts(bench_figures& f) const {
    const std::vector<std::uint64_t> n = counts_.to_host();
    f.failures = n[bench_judge::failures];
    f.corrupt = n[bench_judge::corrupt];
    f.misaligned = n[bench_judge::misaligned];
  }

  bench_request request_;
  std::optional<heap_type> heap_;
  simt::array<std::uint64_t, Machine> counts_;
  bench_clock<Machine> clock_;
};

/// All cells of a request, with Bench<Allocator, Machine>. An error is emitted as the cell's outcome and
/// thrown on: a GPU is of no use to this process after one.
template <class Bench>
void run_cells(const bench_request& request, const bench_emit& emit) {
  std::size_t number = 0;
  try {
    Bench bench(request);
    for (; number < request.cells.size(); ++number)
      emit(request.cells[number], bench.run(request.cells[number]));
  } catch (const std::exception& e) {
    bench_figures f;
    f.outcome = bench_outcome::failed;
    f.note = e.what();
    emit(request.cells[number], f);
    throw;
  }
}

}  // namespace quarry::tool

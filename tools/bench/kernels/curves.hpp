// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Workloads whose result is a curve: one run over one heap, one data point for each step. A run
/// ends early when its time limit is exceeded; the note of the result says so.

#include "bench/kernels/blocks.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

template <class Allocator, class Backend>
class curve_bench : public block_fixture<Allocator, Backend> {
  using base = block_fixture<Allocator, Backend>;
  using base::can;
  using typename base::block_array;

 public:
  using base::base;

  bench_result run(const bench_measurement& m) {
    bench_result f;
    std::string why = this->reason_to_skip(m);
    if (!can.frees_one) why = "cannot free single blocks";
    if (!why.empty()) return skipped(why);
    this->clear_counts();
    this->clear();
    this->load_kernels(bench_sizes(m.sizes));
    switch (m.workload) {
      case bench_workload::steady_state: run_steady_state(m, f); break;
      case bench_workload::recovery: run_recovery(m, f); break;
      default: run_fill_levels(m, f); break;
    }
    this->read_counts(f);
    f.failures = 0;  // failed allocations are a field of the curve
    this->clear();
    return f;
  }

 private:
  /// In every round some lanes free their blocks and allocate new ones. Sizes drift up and down,
  /// and long-lived blocks lie between short-lived ones.
  void run_steady_state(const bench_measurement& m, bench_result& f) {
    const bench_lanes lanes = this->lanes_of(m);
    bench_sizes sizes(m.sizes);
    sizes.cycle = 32;
    sizes.selected.lanes = bench_selection::lifetimes;
    block_array blocks(m.lanes);
    const bench_timer timer;
    std::uint32_t round = 0;
    std::vector<double> times;
    for (; round < m.rounds && (round < 2 || this->has_time_left(timer)); ++round) {
      bench_step step;
      step.x = round;
      if (round != 0)
        step.free_time =
            summary({this->free_blocks(lanes, sizes, round, blocks.data()).milliseconds});
      times.push_back(this->allocate_blocks(lanes, sizes, round, blocks.data()).milliseconds);
      step.time = summary({times.back()});
      describe(step, blocks.to_host(), sizes, round);
      f.curve.push_back(step);
    }
    this->check_all(blocks.data(), m.lanes, sizes, round - 1);
    bench_sizes all = sizes;
    all.selected.lanes = bench_selection::all_lanes;
    (void)this->free_blocks(lanes, all, 0, blocks.data());
    f.repeats = 1;
    f.time = summary(times);
    this->note_missing_steps(f, round, m.rounds);
  }

  void describe(bench_step& step, const std::vector<void*>& blocks, const bench_sizes& sizes,
                std::uint32_t round) const {
    const bench_fragmentation live(blocks, sizes, round);
    std::uint64_t requested = 0;
    std::uint64_t failed = 0;
    for (std::uint64_t caller = 0; caller < blocks.size(); ++caller) {
      if (!sizes.selected(caller, round)) continue;
      ++requested;
      if (blocks[caller] == nullptr) ++failed;
    }
    step.fields = {
        {"live", static_cast<double>(live.live) / static_cast<double>(this->request_.heap_bytes)},
        {"fragmentation", live.ratio},
        {"failed_fraction",
         requested == 0 ? 0 : static_cast<double>(failed) / static_cast<double>(requested)}};
  }

  /// Fills the heap, frees all blocks, fills the heap with another size; each size twice.
  void run_recovery(const bench_measurement& m, bench_result& f) {
    constexpr std::array<std::uint64_t, 4> sizes_in_turn = {64, 1024, 256, 4096};
    const bench_timer timer;
    std::uint32_t done = 0;
    double milliseconds = 0;
    for (; done < m.rounds && (done < 2 || this->has_time_left(timer)); ++done) {
      const std::uint64_t size = sizes_in_turn[done % sizes_in_turn.size()];
      const bench_sizes sizes({size, size});
      const auto full = this->fill_up(size, m.lanes);
      this->check_all(full.blocks.data(), full.requested, sizes, 0);
      const bench_measured freed =
          this->free_blocks({full.requested, 32}, sizes, 0, full.blocks.data());
      milliseconds += full.milliseconds;
      f.curve.push_back(
          {static_cast<double>(done + 1),
           summary({full.milliseconds}),
           summary({freed.milliseconds}),
           {{"usable_fraction", full.usable_fraction}, {"size", static_cast<double>(size)}}});
    }
    f.repeats = 1;
    f.time = summary({milliseconds});
    this->note_missing_steps(f, done, m.rounds);
  }

  /// Fills the heap, then frees blocks at random until the heap is 99 %, 95 %, ... full. Times
  /// malloc and free at each level.
  void run_fill_levels(const bench_measurement& m, bench_result& f) {
    constexpr std::array<std::uint32_t, 8> percents = {99, 95, 90, 75, 50, 25, 10, 0};
    const bench_timer timer;
    const bench_sizes sizes(m.sizes);
    const auto full = this->fill_up(m.sizes.least, std::uint64_t{1} << 14);
    bench_sizes freed = sizes;
    freed.selected = {bench_selection::rank_range, 0, 10'000};
    std::vector<double> times;
    std::uint32_t done = 0;
    for (const std::uint32_t percent : percents) {
      if (done >= 2 && !this->has_time_left(timer)) break;
      freed.selected.from = percent * 100;
      (void)this->free_blocks({full.requested, 32}, freed, 0, full.blocks.data());
      freed.selected.to = freed.selected.from;
      f.curve.insert(f.curve.begin(), measure_level(m, percent));
      times.push_back(f.curve.front().time.median);
      ++done;
    }
    freed.selected.from = 0;
    (void)this->free_blocks({full.requested, 32}, freed, 0, full.blocks.data());
    f.repeats = this->request_.repeats;
    f.time = summary(times);
    this->note_missing_steps(f, done, percents.size());
  }

  bench_step measure_level(const bench_measurement& m, std::uint32_t percent) {
    const bench_lanes lanes = this->lanes_of(m);
    const bench_sizes sizes(m.sizes);
    block_array blocks(m.lanes);
    std::vector<double> mallocs;
    std::vector<double> frees;
    for (std::uint64_t i = 0; i <= this->request_.repeats; ++i) {
      const double taken = this->allocate_blocks(lanes, sizes, 0, blocks.data()).milliseconds;
      const double freed = this->free_blocks(lanes, sizes, 0, blocks.data()).milliseconds;
      if (i == 0) continue;  // warm-up
      mallocs.push_back(taken);
      frees.push_back(freed);
    }
    launch<Backend>(lanes.launch_grid(),
                    this->template malloc_kernel<true>(lanes, sizes, 0, blocks.data()));
    this->check(this->contents(blocks.data(), m.lanes, sizes, 0));
    const std::vector<void*> allocated = blocks.to_host();
    const auto failed = std::count(allocated.begin(), allocated.end(), nullptr);
    (void)this->free_blocks(lanes, sizes, 0, blocks.data());
    return {static_cast<double>(percent),
            summary(mallocs),
            summary(frees),
            {{"failed_fraction", static_cast<double>(failed) / static_cast<double>(m.lanes)}}};
  }

  bool has_time_left(const bench_timer& timer) const {
    return timer.seconds() < this->request_.time_limit;
  }
  static void note_missing_steps(bench_result& f, std::uint64_t done, std::uint64_t all) {
    if (done < all)
      f.note = "time limit exceeded after " + std::to_string(done) + " of " + std::to_string(all) +
               " steps";
  }
};

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Benchmarks in which what came before matters: one run over a heap, a figure at each step. Steps end when
/// the cell's share of time is gone; the note says so.

#include "bench/kernels/blocks.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

template <class Allocator, class Backend>
class curve_bench : public block_site<Allocator, Backend> {
  using base = block_site<Allocator, Backend>;
  using base::can;
  using typename base::block_array;

 public:
  using base::base;

  bench_figures run(const bench_cell& cell) {
    bench_figures f;
    std::string why = this->objection(cell);
    if (!can.frees_one) why = "frees no single block";
    if (!why.empty()) return skipped(why);
    this->clear_counts();
    this->clear();
    this->load_kernels(bench_sizes(cell.sizes));
    switch (cell.shape) {
      case bench_shape::steady: go_steadily(cell, f); break;
      case bench_shape::recovery: exhaust_and_recover(cell, f); break;
      default: go_down_levels(cell, f); break;
    }
    this->take_counts(f);
    f.failures = 0;  // who was refused is a figure of its own
    this->clear();
    return f;
  }

 private:
  /// Every round some workers free their blocks and take others. Sizes drift to and fro, and what lives
  /// long keeps lying between what comes and goes.
  void go_steadily(const bench_cell& cell, bench_figures& f) {
    const bench_team team = this->team_of(cell);
    bench_sizes sizes(cell.sizes);
    sizes.cycle = 32;
    sizes.drawn.who = bench_draw::lifetimes;
    block_array blocks(cell.workers);
    const bench_timer timer;
    std::uint32_t round = 0;
    std::vector<double> times;
    for (; round < cell.rounds && (round < 2 || this->time_is_left(timer)); ++round) {
      bench_step step;
      step.x = round;
      if (round != 0)
        step.free_time = summary({this->give_back(team, sizes, round, blocks.data()).milliseconds});
      times.push_back(this->take(team, sizes, round, blocks.data()).milliseconds);
      step.time = summary({times.back()});
      describe(step, blocks.to_host(), sizes, round);
      f.curve.push_back(step);
    }
    this->judge_all(blocks.data(), cell.workers, sizes, round - 1);
    bench_sizes everything = sizes;
    everything.drawn.who = bench_draw::everybody;
    (void)this->give_back(team, everything, 0, blocks.data());
    f.repeats = 1;
    f.time = summary(times);
    this->say_how_far(f, round, cell.rounds);
  }

  void describe(bench_step& step, const std::vector<void*>& blocks, const bench_sizes& sizes,
                std::uint32_t round) const {
    const bench_spread all(blocks, sizes, round);
    std::uint64_t asked = 0;
    std::uint64_t refused = 0;
    for (std::uint64_t worker = 0; worker < blocks.size(); ++worker) {
      if (!sizes.drawn(worker, round)) continue;
      ++asked;
      if (blocks[worker] == nullptr) ++refused;
    }
    step.fields = {
        {"live", static_cast<double>(all.live) / static_cast<double>(this->request_.heap)},
        {"fragmentation", all.ratio},
        {"failed_fraction",
         asked == 0 ? 0 : static_cast<double>(refused) / static_cast<double>(asked)}};
  }

  /// Fills the heap, frees all, fills it with another size; each size twice.
  void exhaust_and_recover(const bench_cell& cell, bench_figures& f) {
    constexpr std::array<std::uint64_t, 4> turns = {64, 1024, 256, 4096};
    const bench_timer timer;
    std::uint32_t done = 0;
    double milliseconds = 0;
    for (; done < cell.rounds && (done < 2 || this->time_is_left(timer)); ++done) {
      const std::uint64_t size = turns[done % turns.size()];
      const bench_sizes sizes({size, size});
      const auto full = this->fill_up(size, cell.workers);
      this->judge_all(full.blocks.data(), full.asked, sizes, 0);
      const bench_measured freed = this->give_back({full.asked, 32}, sizes, 0, full.blocks.data());
      milliseconds += full.milliseconds;
      f.curve.push_back({static_cast<double>(done + 1),
                         summary({full.milliseconds}),
                         summary({freed.milliseconds}),
                         {{"usable_fraction", full.share}, {"size", static_cast<double>(size)}}});
    }
    f.repeats = 1;
    f.time = summary({milliseconds});
    this->say_how_far(f, done, cell.rounds);
  }

  /// A heap that is full, then less so, with holes at random places: what a malloc costs in it.
  void go_down_levels(const bench_cell& cell, bench_figures& f) {
    constexpr std::array<std::uint32_t, 8> percents = {99, 95, 90, 75, 50, 25, 10, 0};
    const bench_timer timer;
    const bench_sizes sizes(cell.sizes);
    const auto full = this->fill_up(cell.sizes.least, std::uint64_t{1} << 14);
    bench_sizes layer = sizes;
    layer.drawn = {bench_draw::layer, 0, 10'000};
    std::vector<double> times;
    std::uint32_t done = 0;
    for (const std::uint32_t percent : percents) {
      if (done >= 2 && !this->time_is_left(timer)) break;
      layer.drawn.from = percent * 100;
      (void)this->give_back({full.asked, 32}, layer, 0, full.blocks.data());
      layer.drawn.to = layer.drawn.from;
      f.curve.insert(f.curve.begin(), at_level(cell, percent));
      times.push_back(f.curve.front().time.median);
      ++done;
    }
    layer.drawn.from = 0;
    (void)this->give_back({full.asked, 32}, layer, 0, full.blocks.data());
    f.repeats = this->request_.repeats;
    f.time = summary(times);
    this->say_how_far(f, done, percents.size());
  }

  bench_step at_level(const bench_cell& cell, std::uint32_t percent) {
    const bench_team team = this->team_of(cell);
    const bench_sizes sizes(cell.sizes);
    block_array blocks(cell.workers);
    std::vector<double> mallocs;
    std::vector<double> frees;
    for (std::uint64_t i = 0; i <= this->request_.repeats; ++i) {
      const double taken = this->take(team, sizes, 0, blocks.data()).milliseconds;
      const double freed = this->give_back(team, sizes, 0, blocks.data()).milliseconds;
      if (i == 0) continue;  // to warm up
      mallocs.push_back(taken);
      frees.push_back(freed);
    }
    launch<Backend>(team.launch_grid(), this->template asking<true>(team, sizes, 0, blocks.data()));
    this->check(this->contents(blocks.data(), cell.workers, sizes, 0));
    const std::vector<void*> got = blocks.to_host();
    const auto refused = std::count(got.begin(), got.end(), nullptr);
    (void)this->give_back(team, sizes, 0, blocks.data());
    return {
        static_cast<double>(percent),
        summary(mallocs),
        summary(frees),
        {{"failed_fraction", static_cast<double>(refused) / static_cast<double>(cell.workers)}}};
  }

  bool time_is_left(const bench_timer& timer) const {
    return timer.seconds() < this->request_.share;
  }
  static void say_how_far(bench_figures& f, std::uint64_t done, std::uint64_t all) {
    if (done < all)
      f.note =
          "out of time after " + std::to_string(done) + " of " + std::to_string(all) + " steps";
  }
};

}  // namespace quarry::tool

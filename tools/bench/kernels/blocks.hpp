// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Benchmarks in which blocks outlive a kernel: allocate in one, free in another.

#include "bench/kernels/run.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace quarry::tool {

/// (end of the highest block - the lowest) / bytes that are live.
struct bench_spread {
  double ratio = 0;
  std::uint64_t live = 0;  // bytes

  bench_spread(const std::vector<void*>& blocks, const bench_sizes& sizes, std::uint32_t round) {
    std::uintptr_t lowest = std::numeric_limits<std::uintptr_t>::max();
    std::uintptr_t end = 0;
    for (std::uint64_t worker = 0; worker < blocks.size(); ++worker) {
      const auto address = reinterpret_cast<std::uintptr_t>(blocks[worker]);
      if (address == 0) continue;
      const std::uint64_t size = sizes.held(worker, round);
      lowest = std::min(lowest, address);
      end = std::max(end, address + size);
      live += size;
    }
    if (live != 0) ratio = static_cast<double>(end - lowest) / static_cast<double>(live);
  }
};

/// The two kernels and what is made of them.
template <class Allocator, class Backend>
class block_site : public bench_site<Allocator, Backend> {
  using base = bench_site<Allocator, Backend>;

 public:
  using base::base;

 protected:
  using base::can;
  using typename base::ref_type;
  using block_array = simt::array<void*, Backend>;

  bench_measured take(const bench_team& team, const bench_sizes& sizes, std::uint32_t round,
                      void** blocks) {
    return this->timed(team.launch_grid(), asking<false>(team, sizes, round, blocks));
  }
  template <bool Verify>
  bench_malloc<ref_type, Verify> asking(const bench_team& team, const bench_sizes& sizes,
                                        std::uint32_t round, void** blocks) const {
    return {this->ref(), team, sizes, round, blocks, this->judge()};
  }
  /// What was drawn in `round`. Where nothing can be freed: all, untimed.
  bench_measured give_back(const bench_team& team, const bench_sizes& sizes, std::uint32_t round,
                           void* const* blocks) {
    if constexpr (can.frees_one) {
      return this->timed(team.launch_grid(),
                         bench_free<ref_type>{this->ref(), team, sizes, round, blocks});
    } else {
      this->renew_if_full();
      return {-1, -1};
    }
  }

  /// Where there is no warm-up pass: CUDA loads a kernel when it first runs.
  void load_kernels(const bench_sizes& sizes) {
    block_array none(1);
    (void)take({0, 32}, sizes, 0, none.data());
    (void)give_back({0, 32}, sizes, 0, none.data());
  }

  /// Takes blocks until a malloc fails. Grids grow no larger than an eighth of what could still be there,
  /// so that few lanes search in vain: a failing call may walk the whole pool.
  struct filled {
    block_array blocks;
    std::uint64_t asked = 0;
    std::uint64_t got = 0;
    double milliseconds = 0;
    double share = 0;  // bytes asked for and got / heap
  };
  filled fill_up(std::uint64_t size, std::uint64_t at_a_time) {
    const std::uint64_t largest_grid = std::max<std::uint64_t>(at_a_time, bench_threads);
    const std::uint64_t heap = this->request_.heap;
    const bench_sizes sizes({size, size});
    // Somewhat more than fit: the system's heap may be larger than it was asked to be.
    const std::uint64_t most = heap / size + heap / size / 4 + largest_grid;
    filled f{block_array(most)};
    while (f.asked < most && f.got == f.asked) {
      const std::uint64_t left = heap / size > f.got ? heap / size - f.got : 0;
      const std::uint64_t lanes = std::min(
          most - f.asked, std::clamp<std::uint64_t>(left / 8, bench_threads, largest_grid));
      f.milliseconds += take({lanes, 32}, sizes, 0, f.blocks.data() + f.asked).milliseconds;
      f.got += served(f.blocks.data() + f.asked, lanes);
      f.asked += lanes;
    }
    f.share = static_cast<double>(f.got) * static_cast<double>(size) / static_cast<double>(heap);
    return f;
  }
  /// Writes and reads back what lies in `blocks` now.
  void judge_all(void* const* blocks, std::uint64_t count, const bench_sizes& sizes,
                 std::uint32_t round) {
    const bench_write all = this->contents(blocks, count, sizes, round);
    this->write(all);
    this->check(all);
  }

 private:
  static std::uint64_t served(void* const* blocks, std::uint64_t lanes) {
    std::vector<void*> host(lanes);
    simt::memory<Backend>::copy(host.data(), blocks, lanes * sizeof(void*));
    return lanes - static_cast<std::uint64_t>(std::count(host.begin(), host.end(), nullptr));
  }
};

template <class Allocator, class Backend>
class block_bench : public block_site<Allocator, Backend> {
  using base = block_site<Allocator, Backend>;
  using base::can;
  using typename base::block_array;
  using typename base::pass_times;

 public:
  using base::base;

  bench_figures run(const bench_cell& cell) {
    bench_figures f;
    std::string why = this->objection(cell);
    if (cell.shape == bench_shape::extent && !can.frees_one) why = "frees no single block";
    if (cell.shape == bench_shape::fill && can.overwrites) why = "overwrites: never full";
    if (!why.empty()) return skipped(why);
    this->clear_counts();
    furnish(cell);
    switch (cell.shape) {
      case bench_shape::extent: measure_extent(cell, f); break;
      case bench_shape::fill: fill(cell, f); break;
      case bench_shape::write: time_writes(cell, f); break;
      default: time_blocks(cell, f); break;
    }
    this->clear();
    return f;
  }

 private:
  void furnish(const bench_cell& cell) {
    if (cell.occupied == 0) return this->clear();
    const std::uint64_t count = this->request_.heap / 100 * cell.occupied / 1024;
    const bench_sizes sizes({1024, 1024});
    occupied_ = block_array(count);
    this->base::furnish(
        [=, this] {
          (void)this->take({count, 32}, sizes, 0, occupied_.data());
        },
        [=, this] {
          (void)this->give_back({count, 32}, sizes, 0, occupied_.data());
        });
  }

  /// Everybody allocates (and writes), then everybody frees.
  void time_blocks(const bench_cell& cell, bench_figures& f) {
    const bench_sizes sizes(cell.sizes);
    block_array blocks(cell.workers);
    const auto calls = static_cast<double>(cell.workers);
    this->time_passes(f, cell, calls, calls, [&](const bench_team& team) {
      pass_times t;
      t.first = cell.shape == bench_shape::generate
                    ? this->timed(team.launch_grid(),
                                  this->template asking<true>(team, sizes, 0, blocks.data()))
                    : this->take(team, sizes, 0, blocks.data());
      t.second = this->give_back(team, sizes, 0, blocks.data());
      return t;
    });
    this->clear_counts();
    const bench_team team = this->team_of(cell);
    launch<Backend>(team.launch_grid(), this->template asking<true>(team, sizes, 0, blocks.data()));
    this->check(this->contents(blocks.data(), cell.workers, sizes, 0));
    (void)this->give_back(team, sizes, 0, blocks.data());
    this->take_counts(f);
  }

  /// Every lane fills the block that it was given: how well do neighbours' blocks lie for that?
  void time_writes(const bench_cell& cell, bench_figures& f) {
    const bench_sizes sizes(cell.sizes);
    const bench_team team = this->team_of(cell);
    block_array blocks(cell.workers);
    (void)this->take(team, sizes, 0, blocks.data());
    const auto calls = static_cast<double>(cell.workers);
    this->time_passes(f, cell, calls, calls, [&](const bench_team& those) {
      const bench_write all{blocks.data(), those.workers, 1, sizes, 0, this->judge()};
      return pass_times{this->timed(all.launch_grid(), all)};
    });
    f.atomics = -1;  // nobody allocates
    this->clear_counts();
    this->judge_all(blocks.data(), cell.workers, sizes, 0);
    (void)this->give_back(team, sizes, 0, blocks.data());
    this->take_counts(f);
  }

  /// One pass over a new heap: how far apart blocks lie after rounds of freeing and allocating again.
  void measure_extent(const bench_cell& cell, bench_figures& f) {
    const bench_team team = this->team_of(cell);
    bench_sizes sizes(cell.sizes);
    sizes.drawn.who = cell.turnover == 100 ? bench_draw::everybody : bench_draw::half;
    this->load_kernels(sizes);
    block_array blocks(cell.workers);
    double milliseconds = this->take(team, sizes, 0, blocks.data()).milliseconds;
    f.values.push_back(bench_spread(blocks.to_host(), sizes, 0).ratio);
    const bench_timer timer;
    std::uint32_t round = 0;
    while (round < cell.rounds && (round < 5 || timer.seconds() < this->request_.share)) {
      ++round;
      milliseconds += this->give_back(team, sizes, round, blocks.data()).milliseconds;
      milliseconds += this->take(team, sizes, round, blocks.data()).milliseconds;
      f.values.push_back(bench_spread(blocks.to_host(), sizes, round).ratio);
    }
    this->judge_all(blocks.data(), cell.workers, sizes, round);
    (void)this->give_back(team, sizes, 0, blocks.data());
    this->take_counts(f);
    f.repeats = 1;
    f.time = summary({milliseconds});
    f.fields = {{"fragmentation", f.values.back()},
                {"first_fragmentation", f.values.front()},
                {"max_fragmentation", *std::max_element(f.values.begin(), f.values.end())},
                {"rounds_done", round}};
  }

  void fill(const bench_cell& cell, bench_figures& f) {
    const bench_sizes sizes(cell.sizes);
    this->load_kernels(sizes);
    const auto full = this->fill_up(cell.sizes.least, cell.workers);
    this->judge_all(full.blocks.data(), full.asked, sizes, 0);
    (void)this->give_back({full.asked, 32}, sizes, 0, full.blocks.data());
    this->take_counts(f);
    f.failures = 0;  // the heap was to be filled
    f.repeats = 1;
    f.time = summary({full.milliseconds});
    f.values = {full.share};
    f.fields = {{"usable_fraction", full.share}};
  }

  block_array occupied_{0};
};

}  // namespace quarry::tool

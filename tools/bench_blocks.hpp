// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Benchmarks in which blocks outlive a kernel: allocate in one, free in another.

#include "bench_run.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace quarry::tool {

template <class Allocator, class Machine>
class block_bench : public bench_site<Allocator, Machine> {
  using base = bench_site<Allocator, Machine>;
  using base::can;
  using typename base::pass_times;
  using typename base::ref_type;

 public:
  using base::base;

  bench_figures run(const bench_cell& cell) {
    bench_figures f;
    f.note = this->objection(cell, cell.workers);
    if (cell.shape == bench_shape::extent && !can.frees_one) f.note = "frees no single block";
    if (cell.shape == bench_shape::fill && can.overwrites) f.note = "overwrites: never full";
    if (!f.note.empty()) {
      f.outcome = bench_outcome::skipped;
      return f;
    }
    this->clear_counts();
    this->renew();
    switch (cell.shape) {
      case bench_shape::extent:
        load_kernels(cell);
        measure_extent(cell, f);
        break;
      case bench_shape::fill:
        load_kernels(cell);
        fill(cell, f);
        break;
      default: time_blocks(cell, f); break;
    }
    return f;
  }

 private:
  /// Where there is no warm-up pass: CUDA loads a kernel when it first runs.
  void load_kernels(const bench_cell& cell) {
    simt::array<void*, Machine> block(1);
    const bench_sizes sizes(cell.sizes);
    (void)take({1, 32}, sizes, 0, block.data());
    (void)give_back({1, 32}, sizes, 0, block.data());
    this->renew();
  }

  /// Everybody allocates, then everybody frees.
  void time_blocks(const bench_cell& cell, bench_figures& f) {
    const bench_team team{cell.workers, cell.working};
    const bench_sizes sizes(cell.sizes);
    simt::array<void*, Machine> blocks(cell.workers);
    const auto calls = static_cast<double>(cell.workers);
    this->time_passes(f, calls, calls, [&] {
      pass_times t;
      t.first = take(team, sizes, 0, blocks.data());
      t.second = give_back(team, sizes, 0, blocks.data());
      return t;
    });
    launch<Machine>(team.launch_grid(), asking<true>(team, sizes, 0, blocks.data()));
    this->check(this->contents(blocks.data(), cell.workers, sizes, 0));
    (void)give_back(team, sizes, 0, blocks.data());
    this->take_counts(f);
  }

  /// One pass over a new heap: how far apart blocks lie after rounds of freeing a half and allocating again.
  void measure_extent(const bench_cell& cell, bench_figures& f) {
    const bench_team team{cell.workers, cell.working};
    const bench_sizes sizes(cell.sizes);
    simt::array<void*, Machine> blocks(cell.workers);
    double milliseconds = take(team, sizes, 0, blocks.data()).milliseconds;
    f.values.push_back(spread(blocks.to_host(), sizes, 0));
    for (std::uint32_t round = 1; round <= cell.rounds; ++round) {
      milliseconds += give_back(team, sizes, round, blocks.data()).milliseconds;
      milliseconds += take(team, sizes, round, blocks.data()).milliseconds;
      f.values.push_back(spread(blocks.to_host(), sizes, round));
    }
    const bench_write all = this->contents(blocks.data(), cell.workers, sizes, cell.rounds);
    this->write(all);
    this->check(all);
    (void)give_back(team, sizes, 0, blocks.data());
    this->take_counts(f);
    f.repeats = 1;
    f.time = summary({milliseconds});
  }

  /// (end of the highest block - the lowest) / bytes that are live.
  static double spread(const std::vector<void*>& blocks, const bench_sizes& sizes,
                       std::uint32_t round) {
    std::uintptr_t lowest = std::numeric_limits<std::uintptr_t>::max();
    std::uintptr_t end = 0;
    std::uint64_t live = 0;
    for (std::uint64_t worker = 0; worker < blocks.size(); ++worker) {
      const auto address = reinterpret_cast<std::uintptr_t>(blocks[worker]);
      if (address == 0) continue;
      const std::uint64_t size = sizes.held(worker, round);
      lowest = std::min(lowest, address);
      end = std::max(end, address + size);
      live += size;
    }
    return live == 0 ? 0 : static_cast<double>(end - lowest) / static_cast<double>(live);
  }

  /// Grids grow no larger than an eighth of what could still be there, so that few lanes search in vain: a
  /// failing call may walk the whole pool.
  void fill(const bench_cell& cell, bench_figures& f) {
    const std::uint64_t largest_grid = std::max<std::uint64_t>(cell.workers, bench_threads);
    const std::uint64_t heap = this->request_.heap;
    const std::uint64_t size = cell.sizes.least;
    const bench_sizes sizes(cell.sizes);
    // Somewhat more than fit: the system's heap may be larger than it was asked to be.
    const std::uint64_t most = heap / size + heap / size / 4 + largest_grid;
    simt::array<void*, Machine> blocks(most);
    std::uint64_t asked = 0;
    std::uint64_t got = 0;
    double milliseconds = 0;
    while (asked < most && got == asked) {
      const std::uint64_t left = heap / size > got ? heap / size - got : 0;
      const std::uint64_t lanes =
          std::min(most - asked, std::clamp<std::uint64_t>(left / 8, bench_threads, largest_grid));
      milliseconds += take({lanes, 32}, sizes, 0, blocks.data() + asked).milliseconds;
      got += served(blocks.data() + asked, lanes);
      asked += lanes;
    }
    const bench_write all = this->contents(blocks.data(), asked, sizes, 0);
    this->write(all);
    this->check(all);
    (void)give_back({asked, 32}, sizes, 0, blocks.data());
    this->take_counts(f);
    f.failures = 0;  // the heap was to be filled
    f.repeats = 1;
    f.time = summary({milliseconds});
    f.values = {static_cast<double>(got) * static_cast<double>(size) / static_cast<double>(heap)};
  }

  static std::uint64_t served(void* const* blocks, std::uint64_t lanes) {
    std::vector<void*> host(lanes);
    simt::memory<Machine>::copy(host.data(), blocks, lanes * sizeof(void*));
    return lanes - static_cast<std::uint64_t>(std::count(host.begin(), host.end(), nullptr));
  }

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
};

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Benchmarks in which a kernel both allocates and frees.

#include "bench_run.hpp"

#include <cstdint>

namespace quarry::tool {

template <class Allocator, class Machine>
class loop_bench : public bench_site<Allocator, Machine> {
  using base = bench_site<Allocator, Machine>;
  using base::can;
  using typename base::pass_times;
  using typename base::ref_type;

 public:
  using base::base;

  bench_figures run(const bench_cell& cell) {
    bench_figures f;
    const std::uint64_t mallocs = cell.workers * cell.batch * cell.rounds;
    f.note = this->objection(cell, mallocs);
    if (!f.note.empty()) {
      f.outcome = bench_outcome::skipped;
      return f;
    }
    this->clear_counts();
    this->renew();
    simt::array<void*, Machine> blocks(cell.workers * cell.batch);
    const std::uint64_t calls =
        cell.shape == bench_shape::chance ? walk_calls(cell) : calls_of(mallocs);
    this->time_passes(f, static_cast<double>(calls), 0, [&] {
      pass_times t;
      t.first = pass(cell, blocks.data());
      this->renew_if_full();
      return t;
    });
    cell.shape == bench_shape::chance ? watch_walk(cell, blocks) : verify_loop(cell, blocks);
    this->take_counts(f);
    return f;
  }

 private:
  static std::uint64_t calls_of(std::uint64_t mallocs) {
    return can.frees_one ? 2 * mallocs : mallocs;
  }

  bench_measured pass(const bench_cell& cell, void** blocks) {
    const bench_team team{cell.workers, cell.working};
    const grid g = team.launch_grid();
    const std::uint64_t size = cell.sizes.least;
    switch (cell.shape) {
      case bench_shape::churn:
        return this->timed(g, bench_churn<ref_type>{this->ref(), team, size, cell.rounds});
      case bench_shape::batch:
        return this->timed(g, bench_batch<ref_type, false>{this->ref(), team, size, cell.batch,
                                                           cell.rounds, blocks, this->judge()});
      default: break;
    }
    const bench_measured all = this->clock_.time([&] {
      for (std::uint32_t i = 0; i < cell.rounds; ++i)
        this->clock_.start(g, step(team, size, i, blocks));
    });
    (void)this->timed(g, step(team, size, bench_chance<ref_type>::last, blocks));
    return all;
  }

  bench_chance<ref_type> step(const bench_team& team, std::uint64_t size, std::uint32_t i,
                              void** blocks) const {
    return {this->ref(), team, size, i, blocks};
  }

  void verify_loop(const bench_cell& cell, const simt::array<void*, Machine>& blocks) {
    const bench_team team{cell.workers, cell.working};
    launch<Machine>(team.launch_grid(),
                    bench_batch<ref_type, true>{this->ref(), team, cell.sizes.least, cell.batch,
                                                cell.rounds, blocks.data(), this->judge()});
  }

  void watch_walk(const bench_cell& cell, const simt::array<void*, Machine>& blocks) {
    const bench_team team{cell.workers, cell.working};
    const grid g = team.launch_grid();
    const std::uint64_t size = cell.sizes.least;
    simt::array<void*, Machine> before(cell.workers);
    for (std::uint32_t i = 0; i < cell.rounds; ++i) {
      launch<Machine>(g, step(team, size, i, blocks.data()));
      launch<Machine>(g, bench_watch{team, size, i, blocks.data(), before.data(), this->judge()});
    }
    launch<Machine>(g, step(team, size, bench_chance<ref_type>::last, blocks.data()));
  }

  /// Mallocs and frees of a random walk in which every malloc is served.
  static std::uint64_t walk_calls(const bench_cell& cell) {
    std::uint64_t calls = 0;
    for (std::uint64_t worker = 0; worker < cell.workers; ++worker) {
      bool holds = false;
      for (std::uint32_t i = 0; i < cell.rounds; ++i) {
        if (!bench_acts(worker, i)) continue;
        calls += !holds || can.frees_one ? 1 : 0;
        holds = !holds;
      }
    }
    return calls;
  }
};

}  // namespace quarry::tool

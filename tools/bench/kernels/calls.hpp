// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Benchmarks that look at single calls: a random walk between holding a block and holding none, and the
/// latency of each malloc and free.

#include "bench/kernels/run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

/// Nearest rank, 0 < share <= 1. `sorted` is not empty.
inline double percentile(const std::vector<std::uint64_t>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1]);
}

inline void put_percentiles(bench_fields& fields, const std::string& prefix,
                            std::vector<std::uint64_t> ticks) {
  if (ticks.empty()) return;
  std::sort(ticks.begin(), ticks.end());
  fields[prefix + "p50"] = percentile(ticks, 0.5);
  fields[prefix + "p90"] = percentile(ticks, 0.9);
  fields[prefix + "p99"] = percentile(ticks, 0.99);
  fields[prefix + "p999"] = percentile(ticks, 0.999);
  fields[prefix + "max"] = percentile(ticks, 1);
}

template <class Allocator, class Backend>
class call_bench : public bench_site<Allocator, Backend> {
  using base = bench_site<Allocator, Backend>;
  using base::can;
  using typename base::pass_times;
  using typename base::ref_type;
  using block_array = simt::array<void*, Backend>;

 public:
  using base::base;

  bench_figures run(const bench_cell& cell) {
    bench_figures f;
    const std::string why = this->objection(cell);
    if (!why.empty()) return skipped(why);
    this->clear_counts();
    this->clear();
    const block_array blocks(cell.workers);
    if (cell.shape == bench_shape::latency)
      time_calls(cell, blocks, f);
    else
      time_walk(cell, blocks, f);
    this->take_counts(f);
    this->clear();
    return f;
  }

 private:
  // ---- the walk ----------------------------------------------------------------------------------

  void time_walk(const bench_cell& cell, const block_array& blocks, bench_figures& f) {
    const auto calls = static_cast<double>(walk_calls(cell));
    this->time_passes(f, cell, calls, 0, [&](const bench_team& team) {
      pass_times t;
      t.first = this->clock_.time([&] {
        for (std::uint32_t i = 0; i < cell.rounds; ++i)
          this->clock_.start(team.launch_grid(), step(cell, team, i, blocks.data()));
      });
      (void)this->timed(team.launch_grid(), step(cell, team, last, blocks.data()));
      this->renew_if_full();
      return t;
    });
    watch_walk(cell, blocks);
  }

  static constexpr std::uint32_t last = bench_chance<ref_type>::last;
  bench_chance<ref_type> step(const bench_cell& cell, const bench_team& team, std::uint32_t i,
                              void** blocks) const {
    return {this->ref(), team, cell.sizes.least, i, blocks};
  }

  void watch_walk(const bench_cell& cell, const block_array& blocks) {
    const bench_team team = this->team_of(cell);
    const grid g = team.launch_grid();
    block_array before(cell.workers);
    for (std::uint32_t i = 0; i < cell.rounds; ++i) {
      launch<Backend>(g, step(cell, team, i, blocks.data()));
      launch<Backend>(
          g, bench_watch{team, cell.sizes.least, i, blocks.data(), before.data(), this->judge()});
    }
    launch<Backend>(g, step(cell, team, last, blocks.data()));
  }

  /// Mallocs and frees of a walk in which every malloc is served.
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

  // ---- latency -----------------------------------------------------------------------------------

  /// The percentiles are those of the last pass.
  void time_calls(const bench_cell& cell, const block_array& blocks, bench_figures& f) {
    simt::array<std::uint64_t, Backend> ticks(cell.workers);
    const auto kernel = [&](const bench_team& team, bool frees) {
      return bench_timed_call<ref_type>{this->ref(), team,          cell.sizes.least,
                                        frees,       blocks.data(), ticks.data()};
    };
    std::vector<std::uint64_t> mallocs;
    std::vector<std::uint64_t> frees;
    const auto calls = static_cast<double>(cell.workers);
    this->time_passes(f, cell, calls, calls, [&](const bench_team& team) {
      pass_times t;
      t.first = this->timed(team.launch_grid(), kernel(team, false));
      mallocs = ticks.to_host();
      if (can.frees_one) {
        t.second = this->timed(team.launch_grid(), kernel(team, true));
        frees = ticks.to_host();
      }
      this->renew_if_full();
      return t;
    });
    put_percentiles(f.fields, "", mallocs);
    put_percentiles(f.fields, "free_", frees);
    const bench_team team = this->team_of(cell);
    launch<Backend>(team.launch_grid(), kernel(team, false));
    const bench_write all = this->contents(blocks.data(), cell.workers, bench_sizes(cell.sizes), 0);
    this->write(all);
    this->check(all);
    if (can.frees_one) launch<Backend>(team.launch_grid(), kernel(team, true));
  }
};

}  // namespace quarry::tool

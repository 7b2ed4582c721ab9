// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Benchmarks in which one kernel both allocates and frees.

#include "bench/kernels/run.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

template <class Allocator, class Backend>
class loop_bench : public bench_site<Allocator, Backend> {
  using base = bench_site<Allocator, Backend>;
  using base::can;
  using typename base::pass_times;
  using typename base::ref_type;
  using block_array = simt::array<void*, Backend>;
  static constexpr bool arenas = bench_has_arenas<ref_type>;

 public:
  using base::base;

  bench_figures run(const bench_cell& cell) {
    bench_figures f;
    const std::string why = this->objection(cell);
    if (!why.empty()) return skipped(why);
    this->clear_counts();
    furnish(cell);
    std::uint32_t most = 1;
    for (const bench_load& l : cell.all_loads()) most = std::max(most, l.batch);
    const block_array blocks(cell.workers * most);
    const std::uint64_t calls = (can.frees_one && !arenas ? 2 : 1) * cell.mallocs();
    this->time_passes(f, cell, static_cast<double>(calls), 0, [&](const bench_team& team) {
      pass_times t;
      t.first = pass(cell, team, blocks.data());
      this->renew_if_full();
      return t;
    });
    put_rates(cell, f);
    verify(cell, blocks.data());
    this->take_counts(f);
    this->clear();
    return f;
  }

 private:
  void furnish(const bench_cell& cell) {
    if constexpr (arenas) {
      this->clear();  // nobody asks for more
    } else {
      if (cell.occupied == 0) return this->clear();
      const bench_load load{1, 1024};
      const bench_team team{this->request_.heap / 100 * cell.occupied / load.size, 32};
      occupied_ = block_array(team.workers);
      const auto run = [=, this](bench_part part) {
        auto kernel = work<false>(team, load, 1, occupied_.data());
        kernel.part = part;
        launch<Backend>(team.launch_grid(), kernel);
      };
      base::furnish([=] { run(bench_part::mallocs); }, [=] { run(bench_part::frees); });
    }
  }

  template <bool Verify>
  auto work(const bench_team& team, const bench_load& load, std::uint32_t rounds,
            void** blocks) const {
    return bench_batch<ref_type, Verify>{this->ref(), team,   load.size,    load.batch,
                                         rounds,      blocks, this->judge()};
  }

  /// The mean over all loads.
  bench_measured pass(const bench_cell& cell, const bench_team& team, void** blocks) {
    const grid g = team.launch_grid();
    if constexpr (!arenas)
      if (cell.shape == bench_shape::churn)
        return this->timed(g,
                           bench_churn<ref_type>{this->ref(), team, cell.sizes.least, cell.rounds});
    const std::vector<bench_load> loads = cell.all_loads();
    bench_measured all{0, 0};
    for (const bench_load& load : loads) {
      if (&load != &loads.front()) this->renew_if_full();
      const bench_measured one = this->timed(g, work<false>(team, load, cell.rounds, blocks));
      all.milliseconds += one.milliseconds / static_cast<double>(loads.size());
      all.atomics = one.atomics < 0 ? -1 : all.atomics + one.atomics;
    }
    return all;
  }

  void verify(const bench_cell& cell, void** blocks) {
    const bench_team team = this->team_of(cell);
    for (const bench_load& load : cell.all_loads()) {
      launch<Backend>(team.launch_grid(), work<true>(team, load, cell.rounds, blocks));
      this->renew_if_full();
    }
  }

  /// Nanoseconds for each object, and for each warp that asked.
  static void put_rates(const bench_cell& cell, bench_figures& f) {
    const auto loads = static_cast<double>(cell.all_loads().size());
    const double objects = static_cast<double>(cell.mallocs()) / loads;
    f.fields["ns_per_object"] = f.time.median * 1e6 / objects;
    f.fields["ns_per_request"] = f.time.median * 1e6 / objects * cell.working;
  }

  block_array occupied_{0};
};

}  // namespace quarry::tool

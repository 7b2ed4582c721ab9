// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Workloads in which one kernel both allocates and frees.

#include "bench/kernels/run.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

template <class Allocator, class Backend>
class loop_bench : public bench_fixture<Allocator, Backend> {
  using base = bench_fixture<Allocator, Backend>;
  using base::can;
  using typename base::pass_times;
  using typename base::ref_type;
  using block_array = simt::array<void*, Backend>;
  static constexpr bool arenas = bench_has_arenas<ref_type>;

 public:
  using base::base;

  bench_result run(const bench_measurement& m) {
    bench_result f;
    const std::string why = this->reason_to_skip(m);
    if (!why.empty()) return skipped(why);
    this->clear_counts();
    prefill(m);
    std::uint32_t max_batch = 1;
    for (const bench_load& l : m.all_loads()) max_batch = std::max(max_batch, l.batch);
    const block_array blocks(m.lanes * max_batch);
    const std::uint64_t calls = (can.frees_one && !arenas ? 2 : 1) * m.mallocs();
    this->time_passes(f, m, static_cast<double>(calls), 0, [&](const bench_lanes& lanes) {
      pass_times t;
      t.first = pass(m, lanes, blocks.data());
      this->reset_if_frees_nothing();
      return t;
    });
    add_rates(m, f);
    verify(m, blocks.data());
    this->read_counts(f);
    this->clear();
    return f;
  }

 private:
  void prefill(const bench_measurement& m) {
    if constexpr (arenas) {
      this->clear();  // no experiment fills the heap before it measures arenas
    } else {
      if (m.occupied == 0) return this->clear();
      const bench_load load{1, 1024};
      const bench_lanes lanes{this->request_.heap_bytes / 100 * m.occupied / load.size, 32};
      occupied_ = block_array(lanes.count);
      const auto launch_part = [=, this](bench_part part) {
        auto kernel = batch_kernel<false>(lanes, load, 1, occupied_.data());
        kernel.part = part;
        launch<Backend>(lanes.launch_grid(), kernel);
      };
      base::prefill([=] { launch_part(bench_part::mallocs); },
                    [=] { launch_part(bench_part::frees); });
    }
  }

  template <bool Verify>
  auto batch_kernel(const bench_lanes& lanes, const bench_load& load, std::uint32_t rounds,
                    void** blocks) const {
    return bench_batch<ref_type, Verify>{this->ref(), lanes,  load.size,      load.batch,
                                         rounds,      blocks, this->checker()};
  }

  /// Returns the mean time over all loads.
  bench_measured pass(const bench_measurement& m, const bench_lanes& lanes, void** blocks) {
    const grid g = lanes.launch_grid();
    if constexpr (!arenas)
      if (m.workload == bench_workload::churn)
        return this->timed(g, bench_churn<ref_type>{this->ref(), lanes, m.sizes.least, m.rounds});
    const std::vector<bench_load> loads = m.all_loads();
    bench_measured all{0, 0};
    for (const bench_load& load : loads) {
      if (&load != &loads.front()) this->reset_if_frees_nothing();
      const bench_measured one = this->timed(g, batch_kernel<false>(lanes, load, m.rounds, blocks));
      all.milliseconds += one.milliseconds / static_cast<double>(loads.size());
      all.atomics = one.atomics < 0 ? -1 : all.atomics + one.atomics;
    }
    return all;
  }

  void verify(const bench_measurement& m, void** blocks) {
    const bench_lanes lanes = this->lanes_of(m);
    for (const bench_load& load : m.all_loads()) {
      launch<Backend>(lanes.launch_grid(), batch_kernel<true>(lanes, load, m.rounds, blocks));
      this->reset_if_frees_nothing();
    }
  }

  /// Adds the time per object, and per warp request (a coalesced request counts once).
  static void add_rates(const bench_measurement& m, bench_result& f) {
    const auto loads = static_cast<double>(m.all_loads().size());
    const double objects = static_cast<double>(m.mallocs()) / loads;
    f.fields["ns_per_object"] = f.time.median * 1e6 / objects;
    f.fields["ns_per_request"] = f.time.median * 1e6 / objects * m.lanes_per_warp;
  }

  block_array occupied_{0};
};

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Workloads about single calls: a random walk between holding a block and holding none, and the
/// latency of each malloc and free.

#include "bench/kernels/run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

/// Returns the percentile by the nearest-rank method. Requires: 0 < fraction <= 1; `sorted` is not
/// empty.
inline double percentile(const std::vector<std::uint64_t>& sorted, double fraction) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1]);
}

inline void add_percentiles(bench_fields& fields, const std::string& prefix,
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
class call_bench : public bench_fixture<Allocator, Backend> {
  using base = bench_fixture<Allocator, Backend>;
  using base::can;
  using typename base::pass_times;
  using typename base::ref_type;
  using block_array = simt::array<void*, Backend>;

 public:
  using base::base;

  bench_result run(const bench_measurement& m) {
    bench_result f;
    const std::string why = this->reason_to_skip(m);
    if (!why.empty()) return skipped(why);
    this->clear_counts();
    this->clear();
    const block_array blocks(m.lanes);
    if (m.workload == bench_workload::latency)
      time_calls(m, blocks, f);
    else
      time_walk(m, blocks, f);
    this->read_counts(f);
    this->clear();
    return f;
  }

 private:
  // ---- random walk ------------------------------------------------------------------------------

  void time_walk(const bench_measurement& m, const block_array& blocks, bench_result& f) {
    const auto calls = static_cast<double>(count_walk_calls(m));
    this->time_passes(f, m, calls, 0, [&](const bench_lanes& lanes) {
      pass_times t;
      t.first = this->clock_.time([&] {
        for (std::uint32_t i = 0; i < m.rounds; ++i)
          this->clock_.start(lanes.launch_grid(), step(m, lanes, i, blocks.data()));
      });
      (void)this->timed(lanes.launch_grid(), step(m, lanes, last, blocks.data()));
      this->reset_if_frees_nothing();
      return t;
    });
    check_walk(m, blocks);
  }

  static constexpr std::uint32_t last = bench_random_walk<ref_type>::last;
  bench_random_walk<ref_type> step(const bench_measurement& m, const bench_lanes& lanes,
                                   std::uint32_t i, void** blocks) const {
    return {this->ref(), lanes, m.sizes.least, i, blocks};
  }

  void check_walk(const bench_measurement& m, const block_array& blocks) {
    const bench_lanes lanes = this->lanes_of(m);
    const grid g = lanes.launch_grid();
    block_array before(m.lanes);
    for (std::uint32_t i = 0; i < m.rounds; ++i) {
      launch<Backend>(g, step(m, lanes, i, blocks.data()));
      launch<Backend>(g, bench_check_walk{lanes, m.sizes.least, i, blocks.data(), before.data(),
                                          this->checker()});
    }
    launch<Backend>(g, step(m, lanes, last, blocks.data()));
  }

  /// Returns the number of mallocs and frees of a walk in which no malloc fails.
  static std::uint64_t count_walk_calls(const bench_measurement& m) {
    std::uint64_t calls = 0;
    for (std::uint64_t caller = 0; caller < m.lanes; ++caller) {
      bool holds = false;
      for (std::uint32_t i = 0; i < m.rounds; ++i) {
        if (!bench_walk_acts(caller, i)) continue;
        calls += !holds || can.frees_one ? 1 : 0;
        holds = !holds;
      }
    }
    return calls;
  }

  // ---- latency ----------------------------------------------------------------------------------

  /// Reports the percentiles of the last timed pass.
  void time_calls(const bench_measurement& m, const block_array& blocks, bench_result& f) {
    simt::array<std::uint64_t, Backend> ticks(m.lanes);
    const auto kernel = [&](const bench_lanes& lanes, bool frees) {
      return bench_timed_call<ref_type>{this->ref(), lanes,         m.sizes.least,
                                        frees,       blocks.data(), ticks.data()};
    };
    std::vector<std::uint64_t> mallocs;
    std::vector<std::uint64_t> frees;
    const auto calls = static_cast<double>(m.lanes);
    this->time_passes(f, m, calls, calls, [&](const bench_lanes& lanes) {
      pass_times t;
      t.first = this->timed(lanes.launch_grid(), kernel(lanes, false));
      mallocs = ticks.to_host();
      if (can.frees_one) {
        t.second = this->timed(lanes.launch_grid(), kernel(lanes, true));
        frees = ticks.to_host();
      }
      this->reset_if_frees_nothing();
      return t;
    });
    add_percentiles(f.fields, "", mallocs);
    add_percentiles(f.fields, "free_", frees);
    const bench_lanes lanes = this->lanes_of(m);
    launch<Backend>(lanes.launch_grid(), kernel(lanes, false));
    const bench_write all = this->contents(blocks.data(), m.lanes, bench_sizes(m.sizes), 0);
    this->write(all);
    this->check(all);
    if (can.frees_one) launch<Backend>(lanes.launch_grid(), kernel(lanes, true));
  }
};

}  // namespace quarry::tool

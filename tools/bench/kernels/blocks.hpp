// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Workloads in which blocks outlive a kernel: one kernel allocates, another frees.

#include "bench/kernels/run.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace quarry::tool {

/// Address-range fragmentation: (end of the highest block - begin of the lowest) / live bytes.
struct bench_fragmentation {
  double ratio = 0;
  std::uint64_t live = 0;  // bytes

  bench_fragmentation(const std::vector<void*>& blocks, const bench_sizes& sizes,
                      std::uint32_t round) {
    std::uintptr_t lowest = std::numeric_limits<std::uintptr_t>::max();
    std::uintptr_t end = 0;
    for (std::uint64_t caller = 0; caller < blocks.size(); ++caller) {
      const auto address = reinterpret_cast<std::uintptr_t>(blocks[caller]);
      if (address == 0) continue;
      const std::uint64_t size = sizes.held(caller, round);
      lowest = std::min(lowest, address);
      end = std::max(end, address + size);
      live += size;
    }
    if (live != 0) ratio = static_cast<double>(end - lowest) / static_cast<double>(live);
  }
};

/// The fixture with the two kernels, and operations composed of them.
template <class Allocator, class Backend>
class block_fixture : public bench_fixture<Allocator, Backend> {
  using base = bench_fixture<Allocator, Backend>;

 public:
  using base::base;

 protected:
  using base::can;
  using typename base::ref_type;
  using block_array = simt::array<void*, Backend>;

  bench_measured allocate_blocks(const bench_lanes& lanes, const bench_sizes& sizes,
                                 std::uint32_t round, void** blocks) {
    return this->timed(lanes.launch_grid(), malloc_kernel<false>(lanes, sizes, round, blocks));
  }
  template <bool Verify>
  bench_malloc<ref_type, Verify> malloc_kernel(const bench_lanes& lanes, const bench_sizes& sizes,
                                               std::uint32_t round, void** blocks) const {
    return {this->ref(), lanes, sizes, round, blocks, this->checker()};
  }
  /// Frees the blocks of the lanes that are selected in `round`. If the allocator frees no single
  /// block, resets the heap instead, untimed.
  bench_measured free_blocks(const bench_lanes& lanes, const bench_sizes& sizes,
                             std::uint32_t round, void* const* blocks) {
    if constexpr (can.frees_one) {
      return this->timed(lanes.launch_grid(),
                         bench_free<ref_type>{this->ref(), lanes, sizes, round, blocks});
    } else {
      this->reset_if_frees_nothing();
      return {-1, -1};
    }
  }

  /// Launches both kernels with no calling lane. CUDA loads a kernel at its first launch; a
  /// workload without a warm-up pass must not time that.
  void load_kernels(const bench_sizes& sizes) {
    block_array none(1);
    (void)allocate_blocks({0, 32}, sizes, 0, none.data());
    (void)free_blocks({0, 32}, sizes, 0, none.data());
  }

  struct filled {
    block_array blocks;
    std::uint64_t requested = 0;  // blocks
    std::uint64_t allocated = 0;  // blocks
    double milliseconds = 0;
    double usable_fraction = 0;  // requested bytes of allocated blocks / bytes of the heap
  };
  /// Allocates blocks until a malloc fails. A grid requests at most an eighth of the free memory,
  /// so that few calls fail: a failing call may search the whole pool.
  filled fill_up(std::uint64_t size, std::uint64_t max_lanes) {
    const std::uint64_t largest_grid = std::max<std::uint64_t>(max_lanes, bench_threads);
    const std::uint64_t heap = this->request_.heap_bytes;
    const bench_sizes sizes({size, size});
    // More blocks than should fit: CUDA may make its heap larger than requested.
    const std::uint64_t max_blocks = heap / size + heap / size / 4 + largest_grid;
    filled f{block_array(max_blocks)};
    while (f.requested < max_blocks && f.allocated == f.requested) {
      const std::uint64_t left = heap / size > f.allocated ? heap / size - f.allocated : 0;
      const std::uint64_t lanes =
          std::min(max_blocks - f.requested,
                   std::clamp<std::uint64_t>(left / 8, bench_threads, largest_grid));
      f.milliseconds +=
          allocate_blocks({lanes, 32}, sizes, 0, f.blocks.data() + f.requested).milliseconds;
      f.allocated += count_allocated(f.blocks.data() + f.requested, lanes);
      f.requested += lanes;
    }
    f.usable_fraction =
        static_cast<double>(f.allocated) * static_cast<double>(size) / static_cast<double>(heap);
    return f;
  }
  /// Writes all blocks and reads them back.
  void check_all(void* const* blocks, std::uint64_t count, const bench_sizes& sizes,
                 std::uint32_t round) {
    const bench_write all = this->contents(blocks, count, sizes, round);
    this->write(all);
    this->check(all);
  }

 private:
  static std::uint64_t count_allocated(void* const* blocks, std::uint64_t lanes) {
    std::vector<void*> host(lanes);
    simt::memory<Backend>::copy(host.data(), blocks, lanes * sizeof(void*));
    return lanes - static_cast<std::uint64_t>(std::count(host.begin(), host.end(), nullptr));
  }
};

template <class Allocator, class Backend>
class block_bench : public block_fixture<Allocator, Backend> {
  using base = block_fixture<Allocator, Backend>;
  using base::can;
  using typename base::block_array;
  using typename base::pass_times;

 public:
  using base::base;

  bench_result run(const bench_measurement& m) {
    bench_result f;
    std::string why = this->reason_to_skip(m);
    if (m.workload == bench_workload::fragmentation && !can.frees_one)
      why = "cannot free single blocks";
    if (m.workload == bench_workload::fill && can.overwrites)
      why = "overwrites old blocks: the heap is never full";
    if (!why.empty()) return skipped(why);
    this->clear_counts();
    prefill(m);
    switch (m.workload) {
      case bench_workload::fragmentation: measure_fragmentation(m, f); break;
      case bench_workload::fill: fill(m, f); break;
      case bench_workload::write: time_writes(m, f); break;
      default: time_malloc_then_free(m, f); break;
    }
    this->clear();
    return f;
  }

 private:
  void prefill(const bench_measurement& m) {
    if (m.occupied == 0) return this->clear();
    const std::uint64_t count = this->request_.heap_bytes / 100 * m.occupied / 1024;
    const bench_sizes sizes({1024, 1024});
    occupied_ = block_array(count);
    this->base::prefill(
        [=, this] {
          (void)this->allocate_blocks({count, 32}, sizes, 0, occupied_.data());
        },
        [=, this] {
          (void)this->free_blocks({count, 32}, sizes, 0, occupied_.data());
        });
  }

  /// All lanes allocate (and, for `produce`, write), then all lanes free.
  void time_malloc_then_free(const bench_measurement& m, bench_result& f) {
    const bench_sizes sizes(m.sizes);
    block_array blocks(m.lanes);
    const auto calls = static_cast<double>(m.lanes);
    this->time_passes(f, m, calls, calls, [&](const bench_lanes& lanes) {
      pass_times t;
      t.first = m.workload == bench_workload::produce
                    ? this->timed(lanes.launch_grid(), this->template malloc_kernel<true>(
                                                           lanes, sizes, 0, blocks.data()))
                    : this->allocate_blocks(lanes, sizes, 0, blocks.data());
      t.second = this->free_blocks(lanes, sizes, 0, blocks.data());
      return t;
    });
    this->clear_counts();
    const bench_lanes lanes = this->lanes_of(m);
    launch<Backend>(lanes.launch_grid(),
                    this->template malloc_kernel<true>(lanes, sizes, 0, blocks.data()));
    this->check(this->contents(blocks.data(), m.lanes, sizes, 0));
    (void)this->free_blocks(lanes, sizes, 0, blocks.data());
    this->read_counts(f);
  }

  /// Every lane fills its block. The time shows how well the writes of neighbouring lanes coalesce.
  void time_writes(const bench_measurement& m, bench_result& f) {
    const bench_sizes sizes(m.sizes);
    const bench_lanes lanes = this->lanes_of(m);
    block_array blocks(m.lanes);
    (void)this->allocate_blocks(lanes, sizes, 0, blocks.data());
    const auto calls = static_cast<double>(m.lanes);
    this->time_passes(f, m, calls, calls, [&](const bench_lanes& calling) {
      const bench_write all{blocks.data(), calling.count, 1, sizes, 0, this->checker()};
      return pass_times{this->timed(all.launch_grid(), all)};
    });
    f.atomics = -1;  // the timed kernel does not allocate
    this->clear_counts();
    this->check_all(blocks.data(), m.lanes, sizes, 0);
    (void)this->free_blocks(lanes, sizes, 0, blocks.data());
    this->read_counts(f);
  }

  /// One pass over a new heap: address-range fragmentation after rounds of free and malloc.
  void measure_fragmentation(const bench_measurement& m, bench_result& f) {
    const bench_lanes lanes = this->lanes_of(m);
    bench_sizes sizes(m.sizes);
    sizes.selected.lanes = m.turnover == 100 ? bench_selection::all_lanes : bench_selection::half;
    this->load_kernels(sizes);
    block_array blocks(m.lanes);
    double milliseconds = this->allocate_blocks(lanes, sizes, 0, blocks.data()).milliseconds;
    f.values.push_back(bench_fragmentation(blocks.to_host(), sizes, 0).ratio);
    const bench_timer timer;
    std::uint32_t round = 0;
    while (round < m.rounds && (round < 5 || timer.seconds() < this->request_.time_limit)) {
      ++round;
      milliseconds += this->free_blocks(lanes, sizes, round, blocks.data()).milliseconds;
      milliseconds += this->allocate_blocks(lanes, sizes, round, blocks.data()).milliseconds;
      f.values.push_back(bench_fragmentation(blocks.to_host(), sizes, round).ratio);
    }
    this->check_all(blocks.data(), m.lanes, sizes, round);
    (void)this->free_blocks(lanes, sizes, 0, blocks.data());
    this->read_counts(f);
    f.repeats = 1;
    f.time = summary({milliseconds});
    f.fields = {{"fragmentation", f.values.back()},
                {"first_fragmentation", f.values.front()},
                {"max_fragmentation", *std::max_element(f.values.begin(), f.values.end())},
                {"rounds_done", round}};
  }

  void fill(const bench_measurement& m, bench_result& f) {
    const bench_sizes sizes(m.sizes);
    this->load_kernels(sizes);
    const auto full = this->fill_up(m.sizes.least, m.lanes);
    this->check_all(full.blocks.data(), full.requested, sizes, 0);
    (void)this->free_blocks({full.requested, 32}, sizes, 0, full.blocks.data());
    this->read_counts(f);
    f.failures = 0;  // the last allocations of this workload fail by design
    f.repeats = 1;
    f.time = summary({full.milliseconds});
    f.values = {full.usable_fraction};
    f.fields = {{"usable_fraction", full.usable_fraction}};
  }

  block_array occupied_{0};
};

}  // namespace quarry::tool

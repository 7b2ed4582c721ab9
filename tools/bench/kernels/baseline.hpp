// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What people do without an allocator: every lane says how much it will produce, a prefix sum gives each its
/// place in one array, and a second kernel produces. The yardstick for the shapes `generate` and `write`.
///
///   lengths   | 12 | 40 | 8 | …       one kernel
///   places    |  0 | 12 | 52 | …      exclusive sum: CUB on a GPU, std::exclusive_scan on the CPU
///   array     |…12…|……40……|…8…| …     one kernel
///
/// The array is there before; the sum and both kernels are timed.

#include "bench/kernels/run.hpp"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#if QUARRY_CUDA
#include <cub/device/device_scan.cuh>
#endif

namespace quarry::tool {

inline constexpr const char* baseline_name = "prefix sum";

/// Exclusive sums of `count` numbers.
template <class Backend>
class bench_prefix_sum;

template <>
class bench_prefix_sum<cpu> {
 public:
  explicit bench_prefix_sum(std::uint64_t count) : count_(count) {}
  void start(const std::uint64_t* in, std::uint64_t* out) const {
    std::exclusive_scan(in, in + count_, out, std::uint64_t{0});
  }

 private:
  std::uint64_t count_;
};

#if QUARRY_CUDA
template <>
class bench_prefix_sum<cuda> {
 public:
  explicit bench_prefix_sum(std::uint64_t count) : count_(count), scratch_(scratch_bytes(count)) {}
  void start(const std::uint64_t* in, std::uint64_t* out) const {
    std::size_t size = scratch_.size();
    simt::check_cuda(cub::DeviceScan::ExclusiveSum(scratch_.data(), size, in, out, count_),
                     "a prefix sum");
  }

 private:
  static std::size_t scratch_bytes(std::uint64_t count) {
    std::size_t size = 0;
    const std::uint64_t* in = nullptr;
    std::uint64_t* out = nullptr;
    simt::check_cuda(cub::DeviceScan::ExclusiveSum(nullptr, size, in, out, count),
                     "asking what a prefix sum needs");
    return size;
  }
  std::uint64_t count_;
  simt::array<std::byte, cuda> scratch_;
};
#endif

/// Patterns are written by the word.
QUARRY_DEVICE constexpr std::uint64_t bench_packed(std::uint64_t size) {
  return align_up(size, std::uint64_t{4});
}

struct bench_say_lengths {
  bench_team team;
  bench_sizes sizes;
  std::uint64_t* lengths;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (team.find(worker)) lengths[worker] = bench_packed(sizes.in_round(worker, 0));
  }
};

/// Finds a worker's place, and fills it if that is asked for.
struct bench_produce {
  bench_team team;
  bench_sizes sizes;
  const std::uint64_t* places;
  std::byte* array;
  void** blocks;
  bool fills;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (!team.find(worker)) return;
    std::byte* const block = array + places[worker];
    blocks[worker] = block;
    if (fills) bench_block{block, worker, sizes.in_round(worker, 0)}.write();
  }
};

template <class Backend>
class baseline_bench {
 public:
  explicit baseline_bench(const bench_request& request)
      : request_(request), counts_(bench_judge::kinds) {}

  bench_figures run(const bench_cell& cell) {
    if (cell.shape != bench_shape::generate && cell.shape != bench_shape::write)
      return skipped("nothing is allocated");
    const bench_team team{cell.workers, cell.working, cell.threads};
    const bench_sizes sizes(cell.sizes);
    std::uint64_t total = 0;
    for (std::uint64_t worker = 0; worker < cell.workers; ++worker)
      total += bench_packed(sizes.in_round(worker, 0));
    const simt::array<std::byte, Backend> array(total);
    const simt::array<std::uint64_t, Backend> lengths(cell.workers);
    const simt::array<std::uint64_t, Backend> places(cell.workers);
    const simt::array<void*, Backend> blocks(cell.workers);
    const bench_prefix_sum<Backend> sum(cell.workers);
    const bench_judge judge{0, ~std::uintptr_t{0}, counts_.data()};
    const bench_write all{blocks.data(), cell.workers, 1, sizes, 0, judge};

    const auto produce = [&](bool fills) {
      clock_.start(team.launch_grid(), bench_say_lengths{team, sizes, lengths.data()});
      sum.start(lengths.data(), places.data());
      clock_.start(team.launch_grid(),
                   bench_produce{team, sizes, places.data(), array.data(), blocks.data(), fills});
    };
    const bool generates = cell.shape == bench_shape::generate;
    (void)clock_.time([&] { produce(generates); });
    bench_figures f;
    f.time = repeat([&] {
      return generates ? clock_.time([&] { produce(true); })
                       : clock_.time([&] { clock_.start(all.launch_grid(), all); });
    });
    f.repeats = request_.repeats;
    counts_.fill_zero();
    const simt::array<std::uint32_t, Backend> spoilt(cell.workers);
    launch<Backend>(all.launch_grid(), bench_check{all, spoilt.data()});
    f.corrupt = counts_.to_host()[bench_judge::corrupt];
    return f;
  }

 private:
  template <class Pass>
  bench_time repeat(Pass&& pass) const {
    (void)pass();  // to warm up
    std::vector<double> times;
    while (times.size() < request_.repeats) times.push_back(pass().milliseconds);
    return summary(times);
  }

  bench_request request_;
  simt::array<std::uint64_t, Backend> counts_;
  bench_clock<Backend> clock_{request_.queued};
};

}  // namespace quarry::tool

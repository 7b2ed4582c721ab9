// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The baseline for the workloads `produce` and `write`: a program without an allocator. Every lane
/// stores the length of its output, a prefix sum assigns each lane its offset in one array, and a
/// second kernel writes the output.
///
///   lengths   | 12 | 40 | 8 | …       one kernel
///   offsets   |  0 | 12 | 52 | …      exclusive sum: CUB, or std::exclusive_scan on the CPU
///   array     |…12…|……40……|…8…| …     one kernel
///
/// The array exists beforehand. The sum and both kernels are timed.

#include "bench/kernels/run.hpp"

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#if QUARRY_CUDA
#include <cub/device/device_scan.cuh>
#endif

namespace quarry::tool {

inline constexpr const char* baseline_name = "prefix sum";

/// Computes the exclusive prefix sum of `count` numbers.
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
                     "querying the scratch memory of a prefix sum");
    return size;
  }
  std::uint64_t count_;
  simt::array<std::byte, cuda> scratch_;
};
#endif

/// Returns the room of a block in the array: bench_block writes whole words.
QUARRY_DEVICE constexpr std::uint64_t bench_packed_size(std::uint64_t size) {
  return align_up(size, std::uint64_t{4});
}

struct bench_store_lengths {
  bench_lanes lanes;
  bench_sizes sizes;
  std::uint64_t* lengths;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (lanes.find(caller)) lengths[caller] = bench_packed_size(sizes.in_round(caller, 0));
  }
};

/// Computes the address of each block, and fills the block if `fills` is set.
struct bench_store_blocks {
  bench_lanes lanes;
  bench_sizes sizes;
  const std::uint64_t* offsets;
  std::byte* array;
  void** blocks;
  bool fills;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (!lanes.find(caller)) return;
    std::byte* const block = array + offsets[caller];
    blocks[caller] = block;
    if (fills) bench_block{block, caller, sizes.in_round(caller, 0)}.write();
  }
};

template <class Backend>
class baseline_bench {
 public:
  explicit baseline_bench(bench_request request)
      : request_(std::move(request)), counts_(bench_checker::kinds) {}

  bench_result run(const bench_measurement& m) {
    if (m.workload != bench_workload::produce && m.workload != bench_workload::write)
      return skipped("the baseline does not allocate");
    const bench_lanes lanes{m.lanes, m.lanes_per_warp, m.threads_per_block};
    const bench_sizes sizes(m.sizes);
    std::uint64_t total = 0;
    for (std::uint64_t caller = 0; caller < m.lanes; ++caller)
      total += bench_packed_size(sizes.in_round(caller, 0));
    const simt::array<std::byte, Backend> array(total);
    const simt::array<std::uint64_t, Backend> lengths(m.lanes);
    const simt::array<std::uint64_t, Backend> offsets(m.lanes);
    const simt::array<void*, Backend> blocks(m.lanes);
    const bench_prefix_sum<Backend> sum(m.lanes);
    const bench_checker checker{0, ~std::uintptr_t{0}, counts_.data()};
    const bench_write all{blocks.data(), m.lanes, 1, sizes, 0, checker};

    const auto launch_all = [&](bool fills) {
      clock_.start(lanes.launch_grid(), bench_store_lengths{lanes, sizes, lengths.data()});
      sum.start(lengths.data(), offsets.data());
      clock_.start(lanes.launch_grid(), bench_store_blocks{lanes, sizes, offsets.data(),
                                                           array.data(), blocks.data(), fills});
    };
    const bool produces = m.workload == bench_workload::produce;
    (void)clock_.time([&] { launch_all(produces); });
    bench_result f;
    f.time = repeat([&] {
      return produces ? clock_.time([&] { launch_all(true); })
                      : clock_.time([&] { clock_.start(all.launch_grid(), all); });
    });
    f.repeats = request_.repeats;
    counts_.fill_zero();
    const simt::array<std::uint32_t, Backend> corrupt_flags(m.lanes);
    launch<Backend>(all.launch_grid(), bench_check{all, corrupt_flags.data()});
    f.corrupt = counts_.to_host()[bench_checker::corrupt];
    return f;
  }

 private:
  template <class Pass>
  bench_time repeat(Pass&& pass) const {
    (void)pass();  // warm-up
    std::vector<double> times;
    while (times.size() < request_.repeats) times.push_back(pass().milliseconds);
    return summary(times);
  }

  bench_request request_;
  simt::array<std::uint64_t, Backend> counts_;
  bench_clock<Backend> clock_{request_.queued};
};

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The demo on one backend: every allocator serves one block to each of many lanes, and its
/// contract is checked.
///
///   checked round   all lanes allocate and fill one block concurrently; the host checks that the
///                   blocks are aligned, inside the pool and disjoint; a later kernel checks the
///                   contents. Then each block is freed by a lane other than its owner (or the heap
///                   is reset), and the invariants of the metadata are checked.
///   timed rounds    the pool must serve the same requests again; malloc and free are timed
///                   separately.
///
/// The pool is several times larger than the requested bytes, so that an allocator which overwrites
/// old blocks does not wrap around within a round.

#include "demo/demo.hpp"
#include "demo/kernels.hpp"

#include <quarry/check/text.hpp>
#include <quarry/heap.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace quarry::tool {

/// time(grid, kernel) runs a kernel and returns its duration in seconds. One specialization per
/// backend.
template <class Backend>
struct stopwatch;

template <>
struct stopwatch<cpu> {
  template <class Kernel>
  static double time(const grid& g, const Kernel& kernel) {
    const auto begin = std::chrono::steady_clock::now();
    launch<cpu>(g, kernel);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

template <class Allocator, class Backend>
class demo_run {
 public:
  demo_run(const demo_plan& plan, demo_row& row)
      : plan_(plan),
        row_(row),
        sizes_{plan.sizes.least,
               std::max(plan.sizes.least, std::min(plan.sizes.most, can.max_size))},
        heap_(bytes(std::max(plan.pool, can.min_pool))),
        blocks_(plan.lanes) {
    row_.pool = heap_.pool_bytes();
    row_.metadata = heap_.metadata_bytes();
  }

  template <class Stage>
  void run(Stage&& stage) {
    if (sizes_.least > can.max_size) return fail("serves at most " + to_text(can.max_size));
    stage("allocating and filling blocks", 0.0);
    (void)launch_timed(
        malloc_kernel<ref_type, true>{heap_.ref(), sizes_, plan_.lanes, blocks_.data()});
    stage("checking addresses", 0.2);
    const std::uint64_t served = check_addresses();
    stage("checking contents", 0.4);
    read_back();
    stage("freeing all blocks", 0.6);
    (void)free_all(plan_.lanes / 2);
    check_metadata();
    double spent = 0;
    for (unsigned round = 0; ok() && round < plan_.timed_rounds && spent < max_timed_seconds;
         ++round) {
      stage("timing malloc and free", 0.7 + 0.3 * round / plan_.timed_rounds);
      spent += timed_round(served);
    }
    if (ok()) row_.checked = served;
  }

 private:
  static constexpr abilities can = Allocator::can;
  static constexpr double max_timed_seconds = 0.5;  // no further round starts after that
  using heap_type = heap<Allocator, Backend>;
  using ref_type = typename heap_type::ref_type;

  bool ok() const { return row_.failure.empty(); }
  void fail(std::string why) {
    if (ok()) row_.failure = std::move(why);
  }

  template <class Kernel>
  double launch_timed(const Kernel& kernel) {
    constexpr std::uint32_t threads = 256;
    const auto blocks = static_cast<std::uint32_t>((plan_.lanes + threads - 1) / threads);
    return stopwatch<Backend>::time(grid{.blocks = blocks, .threads = threads}, kernel);
  }

  void read_back() {
    simt::array<std::uint8_t, Backend> corrupt(plan_.lanes);
    (void)launch_timed(check_kernel{sizes_, plan_.lanes, blocks_.data(), corrupt.data()});
    const std::vector<std::uint8_t> found = corrupt.to_host();
    const auto first = std::find(found.begin(), found.end(), 1);
    if (first == found.end()) return;
    fail(std::to_string(std::count(found.begin(), found.end(), 1)) +
         " blocks were overwritten by other lanes; the first belongs to lane " +
         std::to_string(first - found.begin()));
  }

  struct block_range {
    std::uintptr_t begin;
    std::uint64_t size;
    std::uint64_t lane;
    std::string text(memory_range pool) const {
      return std::to_string(size) + " bytes at " +
             address_text(pool, reinterpret_cast<const void*>(begin)) + " of lane " +
             std::to_string(lane);
    }
  };

  /// Returns the number of lanes that got a block.
  std::uint64_t check_addresses() {
    const std::vector<std::byte*> host = blocks_.to_host();
    std::vector<block_range> ranges;
    ranges.reserve(host.size());
    row_.requested = 0;
    for (std::uint64_t lane = 0; lane < host.size(); ++lane) {
      const std::uint64_t size = sizes_.of(lane);
      row_.requested += size;
      if (host[lane] != nullptr)
        ranges.push_back({reinterpret_cast<std::uintptr_t>(host[lane]), size, lane});
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const block_range& a, const block_range& b) { return a.begin < b.begin; });
    const memory_range pool = heap_.pool();
    const auto first = reinterpret_cast<std::uintptr_t>(pool.begin);
    for (std::size_t i = 0; ok() && i < ranges.size(); ++i) {
      const block_range& e = ranges[i];
      if (e.begin % block_alignment != 0)
        fail("a block is not aligned to 16 bytes: " + e.text(pool));
      if (can.owns_pool && (e.begin < first || e.begin + e.size > first + pool.size))
        fail("a block lies outside the pool: " + e.text(pool));
      if (i != 0 && e.begin < ranges[i - 1].begin + ranges[i - 1].size)
        fail("two blocks overlap: " + ranges[i - 1].text(pool) + ", " + e.text(pool));
    }
    if (ranges.size() != plan_.lanes)
      fail("served " + std::to_string(ranges.size()) + " of " + std::to_string(plan_.lanes) +
           " lanes, although its pool of " + to_text(heap_.pool_bytes()) + " is " +
           std::to_string(heap_.pool_bytes() / std::max<std::uint64_t>(row_.requested, 1)) +
           " times the requested bytes");
    return ranges.size();
  }

  /// Frees all blocks. Returns the duration in seconds; negative if the heap was reset instead.
  double free_all(std::uint64_t distance) {
    if constexpr (can.frees_one) {
      return launch_timed(
          free_kernel<ref_type>{heap_.ref(), plan_.lanes, blocks_.data(), distance});
    } else {
      heap_.reset();
      return -1;
    }
  }

  void check_metadata() {
    if (const std::string problem = heap_.check_invariants(); !problem.empty())
      return fail("inconsistent metadata after all blocks were freed: " + problem);
    const heap_statistics s = heap_.statistics();
    if (s.live_blocks.value_or(0) != 0)
      fail("after all blocks were freed, the heap counts " + std::to_string(*s.live_blocks) +
           " live blocks");
  }

  /// Returns the duration of the kernels in seconds.
  double timed_round(std::uint64_t served) {
    const double taking = launch_timed(
        malloc_kernel<ref_type, false>{heap_.ref(), sizes_, plan_.lanes, blocks_.data()});
    const std::uint64_t again = check_addresses();
    if (again != served)
      fail("served " + std::to_string(served) + " lanes at first, and " + std::to_string(again) +
           " after all blocks were freed");
    const double freeing = free_all(0);
    check_metadata();
    const auto lanes = static_cast<double>(plan_.lanes);
    row_.mallocs_per_second = std::max(row_.mallocs_per_second, lanes / taking);
    if (freeing > 0) row_.frees_per_second = std::max(row_.frees_per_second, lanes / freeing);
    return taking + std::max(freeing, 0.0);
  }

  demo_plan plan_;
  demo_row& row_;
  demo_sizes sizes_;
  heap_type heap_;
  simt::array<std::byte*, Backend> blocks_;
};

/// Runs the demo with every allocator of the library.
template <class Backend>
void run_demo(const demo_plan& plan, const demo_listener& listen, const demo_result& done) {
  double count = 0;
  for_each_allocator([&](auto) { ++count; });
  double number = 0;
  for_each_allocator([&](auto entry) {
    using allocator_type = typename decltype(entry)::type;
    demo_row row;
    row.name = entry.name;
    const auto stage = [&](const char* what, double part) {
      listen(row.name, what, (number + part) / count);
    };
    try {
      demo_run<allocator_type, Backend>(plan, row).run(stage);
    } catch (const std::exception& e) {
      row.failure = e.what();
    }
    ++number;
    done(row);
  });
}

}  // namespace quarry::tool

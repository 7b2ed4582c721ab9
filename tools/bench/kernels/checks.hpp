// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the benchmark that inspect blocks. None of them calls an allocator, so that nvcc
/// compiles each of them once.
///
///   bench_write, bench_check   write the expected content to blocks[], and compare it
///   bench_check_walk           does both after each step of the random walk

#include "bench/kernels/allocate.hpp"

#include <cstdint>

namespace quarry::tool {

/// Several lanes write one block, so that a GPU writes whole cache lines.
struct bench_write {
  void* const* blocks;
  std::uint64_t count;
  std::uint32_t lanes_per_memory_block;
  bench_sizes sizes;
  std::uint32_t round;
  bench_checker checker;

  grid launch_grid() const { return bench_lanes{count * lanes_per_memory_block, 32}.launch_grid(); }
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t at = simt::global_thread() / lanes_per_memory_block;
    if (at >= count) return;
    const std::uint64_t size = sizes.held(at, round);
    const auto part = static_cast<std::uint32_t>(simt::global_thread() % lanes_per_memory_block);
    const bool good =
        part == 0 ? checker.accept(blocks[at], size) : checker.usable(blocks[at], size);
    if (good) bench_block{blocks[at], at, size}.write(part, lanes_per_memory_block);
  }
};

struct bench_check {
  bench_write written;
  std::uint32_t* corrupt_flags;  // one word per block, initially 0: a block counts once

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t at = simt::global_thread() / written.lanes_per_memory_block;
    if (at >= written.count) return;
    const std::uint64_t size = written.sizes.held(at, written.round);
    const auto part =
        static_cast<std::uint32_t>(simt::global_thread() % written.lanes_per_memory_block);
    if (!written.checker.usable(written.blocks[at], size)) return;
    if (bench_block{written.blocks[at], at, size}.intact(part, written.lanes_per_memory_block))
      return;
    if (simt::atomic_ref<std::uint32_t>(corrupt_flags[at]).exchange(1, simt::relaxed) == 0)
      written.checker.count_corrupt();
  }
};

/// Runs after a launch of bench_random_walk: writes the new blocks and checks the older ones.
struct bench_check_walk {
  bench_lanes lanes;
  std::uint64_t size;
  std::uint32_t launch;
  void* const* blocks;
  void** before;
  bench_checker checker;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (!lanes.find(caller)) return;
    void* const held = blocks[caller];
    if (before[caller] == nullptr) {
      const bool asked = bench_walk_acts(caller, launch);
      if (asked && checker.accept(held, size)) bench_block{held, caller, size}.write();
    } else if (held != nullptr && checker.usable(held, size)) {
      if (!bench_block{held, caller, size}.intact()) checker.count_corrupt();
    }
    before[caller] = held;
  }
};

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the benchmark that look at blocks. None calls an allocator: they are compiled once.
///
///   bench_write, bench_check   fill blocks[] with a pattern, and see whether it is still there
///   bench_watch                the same after each step of the random walk

#include "bench/kernels/kernels.hpp"

#include <cstdint>

namespace quarry::tool {

/// Several lanes share the work on a block, so that a GPU writes whole lines.
struct bench_write {
  void* const* blocks;
  std::uint64_t count;
  std::uint32_t helpers;  // a block
  bench_sizes sizes;
  std::uint32_t round;
  bench_judge judge;

  grid launch_grid() const { return bench_team{count * helpers, 32}.launch_grid(); }
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t at = simt::global_thread() / helpers;
    if (at >= count) return;
    const std::uint64_t size = sizes.held(at, round);
    const auto part = static_cast<std::uint32_t>(simt::global_thread() % helpers);
    const bool good = part == 0 ? judge.accept(blocks[at], size) : judge.usable(blocks[at], size);
    if (good) bench_block{blocks[at], at, size}.write(part, helpers);
  }
};

struct bench_check {
  bench_write written;
  std::uint32_t* spoilt;  // a word a block, zero: so that each counts once

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t at = simt::global_thread() / written.helpers;
    if (at >= written.count) return;
    const std::uint64_t size = written.sizes.held(at, written.round);
    const auto part = static_cast<std::uint32_t>(simt::global_thread() % written.helpers);
    if (!written.judge.usable(written.blocks[at], size)) return;
    if (bench_block{written.blocks[at], at, size}.intact(part, written.helpers)) return;
    if (simt::atomic_ref<std::uint32_t>(spoilt[at]).exchange(1, simt::relaxed) == 0)
      written.judge.count_corrupt();
  }
};

/// After a launch of bench_chance: new blocks are written, those held before are checked.
struct bench_watch {
  bench_team team;
  std::uint64_t size;
  std::uint32_t launch;
  void* const* blocks;
  void** before;
  bench_judge judge;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (!team.find(worker)) return;
    void* const held = blocks[worker];
    if (before[worker] == nullptr) {
      const bool asked = bench_acts(worker, launch);
      if (asked && judge.accept(held, size)) bench_block{held, worker, size}.write();
    } else if (held != nullptr && judge.usable(held, size)) {
      if (!bench_block{held, worker, size}.intact()) judge.count_corrupt();
    }
    before[worker] = held;
  }
};

}  // namespace quarry::tool

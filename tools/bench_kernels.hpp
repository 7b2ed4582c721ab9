// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the benchmark. Those that call an allocator are templates over its heap_ref and few, since
/// nvcc compiles each for every allocator; those that write and check blocks are not.
///
///   bench_malloc, bench_free   a block a worker, kept in blocks[worker]
///   bench_churn                malloc, write, free in a register
///   bench_batch                several blocks a worker, kept in blocks[]; the form that verifies serves churn too
///   bench_chance               one step of a random walk between holding a block and holding none
///   bench_write, bench_check   fill blocks[] with a pattern, and see whether it is still there
///   bench_watch                the same after each step of the random walk

#include "bench_pattern.hpp"

#include <quarry/simt/atomic.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/launch.hpp>
#include <quarry/simt/random.hpp>

#include <cstdint>

namespace quarry::tool {

inline constexpr std::uint32_t bench_threads = 256;  // a block

/// Who works: the lowest `working` lanes of each warp, numbered through.
struct bench_team {
  std::uint64_t workers;
  std::uint32_t working;

  grid launch_grid() const {
    const std::uint64_t warps = (workers + working - 1) / working;
    const std::uint64_t per_block = bench_threads / 32;
    return {.blocks = static_cast<std::uint32_t>((warps + per_block - 1) / per_block),
            .threads = bench_threads};
  }
  /// Whether this lane works, and as which worker.
  QUARRY_DEVICE bool find(std::uint64_t& worker) const {
    const std::uint64_t thread = simt::global_thread();
    const auto lane = static_cast<std::uint32_t>(thread % 32);
    worker = thread / 32 * working + lane;
    return lane < working && worker < workers;
  }
};

/// The form that verifies fills the block at once, while others still ask for theirs.
template <class Ref, bool Verify>
struct bench_malloc {
  Ref heap;
  bench_team team;
  bench_sizes sizes;
  std::uint32_t round;
  void** blocks;
  bench_judge judge;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (!team.find(worker) || !sizes.drawn(worker, round)) return;
    const std::uint64_t size = sizes.in_round(worker, round);
    void* block = heap.malloc(size);
    blocks[worker] = block;
    if (Verify && judge.accept(block, size)) bench_block{block, worker, size}.write();
  }
};

/// Frees what those have that will allocate in `round`.
template <class Ref>
struct bench_free {
  Ref heap;
  bench_team team;
  bench_sizes sizes;
  std::uint32_t round;
  void* const* blocks;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (team.find(worker) && sizes.drawn(worker, round)) heap.free(blocks[worker]);
  }
};

template <class Ref>
struct bench_churn {
  Ref heap;
  bench_team team;
  std::uint64_t size;  // at least 4
  std::uint32_t rounds;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (!team.find(worker)) return;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      void* block = heap.malloc(size);
      if (block != nullptr) *static_cast<volatile std::uint32_t*>(block) = round;
      if constexpr (Ref::can.frees_one) heap.free(block);
    }
  }
};

template <class Ref, bool Verify>
struct bench_batch {
  Ref heap;
  bench_team team;
  std::uint64_t size;
  std::uint32_t batch;
  std::uint32_t rounds;
  void** blocks;  // batch * workers
  bench_judge judge;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (!team.find(worker)) return;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (std::uint32_t i = 0; i < batch; ++i) {
        const std::uint64_t at = i * team.workers + worker;
        void* block = heap.malloc(size);
        blocks[at] = block;
        if (Verify && judge.accept(block, size))
          bench_block{block, number(at, round), size}.write();
      }
      for (std::uint32_t i = 0; i < batch; ++i) {
        const std::uint64_t at = i * team.workers + worker;
        void* const block = blocks[at];
        if (Verify && judge.usable(block, size) &&
            !bench_block{block, number(at, round), size}.intact())
          judge.count_corrupt();
        if constexpr (Ref::can.frees_one) heap.free(block);
      }
    }
  }

 private:
  QUARRY_DEVICE static std::uint64_t number(std::uint64_t at, std::uint32_t round) {
    return at | std::uint64_t{round} << 40;
  }
};

/// Whether a worker does something in this launch of the random walk.
QUARRY_DEVICE inline bool bench_acts(std::uint64_t worker, std::uint32_t launch) {
  return simt::lane_random(worker | std::uint64_t{launch + 1} << 40).below(4) != 0;
}

template <class Ref>
struct bench_chance {
  static constexpr std::uint32_t last = ~std::uint32_t{0};  // frees what is left

  Ref heap;
  bench_team team;
  std::uint64_t size;
  std::uint32_t launch;
  void** blocks;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (!team.find(worker)) return;
    void* held = blocks[worker];
    if (launch == last ? held == nullptr : !bench_acts(worker, launch)) return;
    if (held == nullptr) {
      held = heap.malloc(size);
    } else {
      if constexpr (Ref::can.frees_one) heap.free(held);
      held = nullptr;
    }
    blocks[worker] = held;
  }
};

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

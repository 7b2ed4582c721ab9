// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the benchmark that call an allocator. They are templates over the heap_ref, and
/// they are few, since nvcc compiles each of them for every allocator. Kernels that only inspect
/// blocks are in checks.hpp.
///
///   bench_malloc, bench_free   one block per caller, stored in blocks[caller]
///   bench_churn                malloc, write, free; the pointer stays in a register
///   bench_batch                several blocks per caller, stored in blocks[]; the verifying form
///                              also checks churn. Uses the interface of warp_arena if there is one
///   bench_random_walk          one step of a random walk between holding a block and holding none
///   bench_timed_call           malloc or free, timed by the lane

#include "bench/kernels/pattern.hpp"

#include <quarry/simt/atomic.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/launch.hpp>
#include <quarry/simt/random.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace quarry::tool {

inline constexpr std::uint32_t bench_threads = 256;  // per thread block

/// The lanes of a grid that call the allocator: the lowest `per_warp` lanes of each warp. Callers
/// are numbered from 0 to count - 1.
struct bench_lanes {
  std::uint64_t count;
  std::uint32_t per_warp;
  std::uint32_t threads = bench_threads;  // per thread block; launch_grid() may use fewer

  grid launch_grid() const {
    const std::uint64_t warps = std::max<std::uint64_t>((count + per_warp - 1) / per_warp, 1);
    const std::uint64_t per_block = std::min<std::uint64_t>(threads / 32, warps);
    return {.blocks = static_cast<std::uint32_t>((warps + per_block - 1) / per_block),
            .threads = static_cast<std::uint32_t>(per_block) * 32};
  }
  /// Returns whether this lane calls, and sets `caller` to its number.
  QUARRY_DEVICE bool find(std::uint64_t& caller) const {
    const std::uint64_t thread = simt::global_thread();
    const auto lane = static_cast<std::uint32_t>(thread % 32);
    caller = thread / 32 * per_warp + lane;
    return lane < per_warp && caller < count;
  }
};

/// The verifying form fills the block at once, while other lanes are still in malloc.
template <class Ref, bool Verify>
struct bench_malloc {
  Ref heap;
  bench_lanes lanes;
  bench_sizes sizes;
  std::uint32_t round;
  void** blocks;
  bench_checker checker;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (!lanes.find(caller) || !sizes.selected(caller, round)) return;
    const std::uint64_t size = sizes.in_round(caller, round);
    void* block = heap.malloc(size);
    blocks[caller] = block;
    if (Verify && checker.accept(block, size)) bench_block{block, caller, size}.write();
  }
};

/// Frees the blocks of the lanes that allocate in `round`.
template <class Ref>
struct bench_free {
  Ref heap;
  bench_lanes lanes;
  bench_sizes sizes;
  std::uint32_t round;
  void* const* blocks;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (lanes.find(caller) && sizes.selected(caller, round)) heap.free(blocks[caller]);
  }
};

template <class Ref>
struct bench_churn {
  Ref heap;
  bench_lanes lanes;
  std::uint64_t size;  // at least 4
  std::uint32_t rounds;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (!lanes.find(caller)) return;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      void* block = heap.malloc(size);
      if (block != nullptr) *static_cast<volatile std::uint32_t*>(block) = round;
      if constexpr (Ref::can.frees_one) heap.free(block);
    }
  }
};

/// Heaps with warp arenas: a warp opens an arena, and frees the arena as a whole.
template <class Ref>
concept bench_has_arenas = requires(const Ref heap) {
  heap.allocator().start();
};

/// How the lanes of a batch call a heap: by malloc and free, or through a warp arena.
template <class Ref>
struct bench_call_style {
  Ref heap;

  QUARRY_DEVICE void* malloc(std::uint64_t size) const { return heap.malloc(size); }
  QUARRY_DEVICE void free(void* block) const {
    if constexpr (Ref::can.frees_one) heap.free(block);
  }
  QUARRY_DEVICE void end() const {}
};
template <bench_has_arenas Ref>
struct bench_call_style<Ref> {
  decltype(std::declval<const Ref&>().allocator().start()) arena;

  QUARRY_DEVICE explicit bench_call_style(const Ref& heap) : arena(heap.allocator().start()) {}
  QUARRY_DEVICE void* malloc(std::uint64_t size) { return arena.alloc(size); }
  QUARRY_DEVICE void free(void*) const {}  // end() frees all blocks
  QUARRY_DEVICE void end() { arena.end(); }
};

/// The calls of a batch that a kernel executes.
enum class bench_part : std::uint8_t { both, mallocs, frees };

template <class Ref, bool Verify>
struct bench_batch {
  Ref heap;
  bench_lanes lanes;
  std::uint64_t size;
  std::uint32_t batch;
  std::uint32_t rounds;
  void** blocks;  // batch * lanes.count
  bench_checker checker;
  bench_part part = bench_part::both;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (!lanes.find(caller)) return;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      bench_call_style<Ref> calls{heap};
      for (std::uint32_t i = 0; part != bench_part::frees && i < batch; ++i) {
        const std::uint64_t at = i * lanes.count + caller;
        void* block = calls.malloc(size);
        blocks[at] = block;
        if (Verify && checker.accept(block, size))
          bench_block{block, number(at, round), size}.write();
      }
      for (std::uint32_t i = 0; part != bench_part::mallocs && i < batch; ++i) {
        const std::uint64_t at = i * lanes.count + caller;
        void* const block = blocks[at];
        if (Verify && checker.usable(block, size) &&
            !bench_block{block, number(at, round), size}.intact())
          checker.count_corrupt();
        calls.free(block);
      }
      calls.end();
    }
  }

 private:
  QUARRY_DEVICE static std::uint64_t number(std::uint64_t at, std::uint32_t round) {
    return at | std::uint64_t{round} << 40;
  }
};

/// Returns whether a caller takes a step in this launch of the random walk.
QUARRY_DEVICE inline bool bench_walk_acts(std::uint64_t caller, std::uint32_t launch) {
  return simt::lane_random(caller | std::uint64_t{launch + 1} << 40).below(4) != 0;
}

template <class Ref>
struct bench_random_walk {
  static constexpr std::uint32_t last =
      ~std::uint32_t{0};  // the launch that frees the remaining blocks

  Ref heap;
  bench_lanes lanes;
  std::uint64_t size;
  std::uint32_t launch;
  void** blocks;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (!lanes.find(caller)) return;
    void* held = blocks[caller];
    if (launch == last ? held == nullptr : !bench_walk_acts(caller, launch)) return;
    if (held == nullptr) {
      held = heap.malloc(size);
    } else {
      if constexpr (Ref::can.frees_one) heap.free(held);
      held = nullptr;
    }
    blocks[caller] = held;
  }
};

/// Returns the clock cycles of the multiprocessor since `begin`. On the CPU backend: the accesses
/// to shared memory by the OS thread that runs the lane.
QUARRY_DEVICE inline std::uint64_t bench_ticks_since(std::uint64_t begin) {
#if QUARRY_DEVICE_CODE
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) : : "memory");
  return now - begin;
#else
  return simt::clock() - static_cast<std::uint32_t>(begin);  // the executor counts in 32 bits
#endif
}

template <class Ref>
struct bench_timed_call {
  Ref heap;
  bench_lanes lanes;
  std::uint64_t size;
  bool frees;
  void** blocks;
  std::uint64_t* ticks;  // for each caller

  QUARRY_DEVICE void operator()() const {
    std::uint64_t caller;
    if (!lanes.find(caller)) return;
    void* block = frees ? blocks[caller] : nullptr;
    const std::uint64_t begin = bench_ticks_since(0);
    if (!frees) {
      block = heap.malloc(size);
    } else {
      if constexpr (Ref::can.frees_one) heap.free(block);
      block = nullptr;
    }
    // The store depends on the result, so that the clock is read after the call has returned.
    *const_cast<void* volatile*>(blocks + caller) = block;
    ticks[caller] = bench_ticks_since(begin);
  }
};

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the benchmark that call an allocator: templates over its heap_ref, and few, since nvcc
/// compiles each for every allocator. What looks at blocks afterwards is in bench_checks.hpp.
///
///   bench_malloc, bench_free   a block a worker, kept in blocks[worker]
///   bench_churn                malloc, write, free in a register
///   bench_batch                several blocks a worker, kept in blocks[]; the form that verifies serves churn too.
///                              With warp_arena's own calls, where it has them: start, alloc, end
///   bench_chance               one step of a random walk between holding a block and holding none
///   bench_timed_call           malloc or free with a clock around it

#include "bench/kernels/pattern.hpp"

#include <quarry/simt/atomic.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/launch.hpp>
#include <quarry/simt/random.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace quarry::tool {

inline constexpr std::uint32_t bench_threads = 256;  // a block

/// Who works: the lowest `working` lanes of each warp, numbered through.
struct bench_team {
  std::uint64_t workers;
  std::uint32_t working;
  std::uint32_t threads = bench_threads;  // a block; fewer where there is little to do

  grid launch_grid() const {
    const std::uint64_t warps = std::max<std::uint64_t>((workers + working - 1) / working, 1);
    const std::uint64_t per_block = std::min<std::uint64_t>(threads / 32, warps);
    return {.blocks = static_cast<std::uint32_t>((warps + per_block - 1) / per_block),
            .threads = static_cast<std::uint32_t>(per_block) * 32};
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

/// Heaps whose lanes open an arena for their warp, and free it as a whole.
template <class Ref>
concept bench_has_arenas = requires(const Ref heap) {
  heap.allocator().start();
};

/// How the lanes of a batch call a heap: each for itself, or as an arena's users do.
template <class Ref>
struct bench_caller {
  Ref heap;

  QUARRY_DEVICE void* malloc(std::uint64_t size) const { return heap.malloc(size); }
  QUARRY_DEVICE void free(void* block) const {
    if constexpr (Ref::can.frees_one) heap.free(block);
  }
  QUARRY_DEVICE void end() const {}
};
template <bench_has_arenas Ref>
struct bench_caller<Ref> {
  decltype(std::declval<const Ref&>().allocator().start()) arena;

  QUARRY_DEVICE explicit bench_caller(const Ref& heap) : arena(heap.allocator().start()) {}
  QUARRY_DEVICE void* malloc(std::uint64_t size) { return arena.alloc(size); }
  QUARRY_DEVICE void free(void*) const {}  // at the end, with all others
  QUARRY_DEVICE void end() { arena.end(); }
};

/// What of a batch a kernel does.
enum class bench_part : std::uint8_t { both, mallocs, frees };

template <class Ref, bool Verify>
struct bench_batch {
  Ref heap;
  bench_team team;
  std::uint64_t size;
  std::uint32_t batch;
  std::uint32_t rounds;
  void** blocks;  // batch * workers
  bench_judge judge;
  bench_part part = bench_part::both;

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (!team.find(worker)) return;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      bench_caller<Ref> caller{heap};
      for (std::uint32_t i = 0; part != bench_part::frees && i < batch; ++i) {
        const std::uint64_t at = i * team.workers + worker;
        void* block = caller.malloc(size);
        blocks[at] = block;
        if (Verify && judge.accept(block, size))
          bench_block{block, number(at, round), size}.write();
      }
      for (std::uint32_t i = 0; part != bench_part::mallocs && i < batch; ++i) {
        const std::uint64_t at = i * team.workers + worker;
        void* const block = blocks[at];
        if (Verify && judge.usable(block, size) &&
            !bench_block{block, number(at, round), size}.intact())
          judge.count_corrupt();
        caller.free(block);
      }
      caller.end();
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

/// Cycles of the multiprocessor; on the CPU, shared accesses of the OS thread that runs the lane.
QUARRY_DEVICE inline std::uint64_t bench_ticks_since(std::uint64_t begin) {
#if QUARRY_DEVICE_CODE
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) : : "memory");
  return now - begin;
#else
  return simt::clock() - static_cast<std::uint32_t>(begin);  // in 32 bits, as it counts
#endif
}

template <class Ref>
struct bench_timed_call {
  Ref heap;
  bench_team team;
  std::uint64_t size;
  bool frees;
  void** blocks;
  std::uint64_t* ticks;  // of each worker

  QUARRY_DEVICE void operator()() const {
    std::uint64_t worker;
    if (!team.find(worker)) return;
    void* block = frees ? blocks[worker] : nullptr;
    const std::uint64_t begin = bench_ticks_since(0);
    if (!frees) {
      block = heap.malloc(size);
    } else {
      if constexpr (Ref::can.frees_one) heap.free(block);
      block = nullptr;
    }
    // A store of the result: no lane passes it before it has the result.
    *const_cast<void* volatile*>(blocks + worker) = block;
    ticks[worker] = bench_ticks_since(begin);
  }
};

}  // namespace quarry::tool

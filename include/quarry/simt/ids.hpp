// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Who a lane is. Outside any kernel the calling thread counts as a grid of one lane.

#include <quarry/simt/backend.hpp>
#include <quarry/simt/bits.hpp>
#include <quarry/simt/executor/executor.hpp>

#include <cstdint>

namespace quarry::simt {

namespace exec {
// Reads something of the running lane; `alone` answers outside kernels.
template <class Read>
auto ask(Read&& read, decltype(read(std::declval<executor&>())) alone) {
  executor* e = executor::here();
  if (e == nullptr) return alone;
  unseen guard;
  return read(*e);
}
}  // namespace exec

/// In the warp, 0 … 31.
QUARRY_DEVICE inline unsigned lane_id() {
#if QUARRY_DEVICE_CODE
  unsigned id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
#else
  return exec::ask([](exec::executor& e) { return e.current().index; }, 0);
#endif
}

/// The lanes of the warp with a smaller number.
QUARRY_DEVICE inline lane_mask lanes_below() {
#if QUARRY_DEVICE_CODE
  lane_mask mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
#else
  return (lane_mask{1} << lane_id()) - 1;
#endif
}

/// In the block; blocks and grids are one-dimensional here, and CUDA's are read in x only.
QUARRY_DEVICE inline unsigned thread_id() {
#if QUARRY_DEVICE_CODE
  return threadIdx.x;
#else
  return exec::ask([](exec::executor& e) { return e.current().thread_in_block; }, 0);
#endif
}

QUARRY_DEVICE inline unsigned warp_id() { return thread_id() / warp_size; }

QUARRY_DEVICE inline unsigned block_id() {
#if QUARRY_DEVICE_CODE
  return blockIdx.x;
#else
  return exec::ask([](exec::executor& e) { return e.current().block; }, 0);
#endif
}

QUARRY_DEVICE inline unsigned block_size() {
#if QUARRY_DEVICE_CODE
  return blockDim.x;
#else
  return exec::ask([](exec::executor& e) { return e.work().threads; }, 1);
#endif
}

QUARRY_DEVICE inline unsigned grid_blocks() {
#if QUARRY_DEVICE_CODE
  return gridDim.x;
#else
  return exec::ask([](exec::executor& e) { return e.work().blocks; }, 1);
#endif
}

/// In the grid.
QUARRY_DEVICE inline std::uint64_t global_thread() {
  return std::uint64_t{block_id()} * block_size() + thread_id();
}
QUARRY_DEVICE inline std::uint64_t grid_threads() {
  return std::uint64_t{grid_blocks()} * block_size();
}

/// The multiprocessor that runs this lane now: a hint for where to start, never a promise.
QUARRY_DEVICE inline unsigned sm_id() {
#if QUARRY_DEVICE_CODE
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
#else
  return block_id() % cpu::multiprocessors;
#endif
}

/// Something that advances: for hashes. Deterministic under the explorer.
QUARRY_DEVICE inline std::uint32_t clock() {
#if QUARRY_DEVICE_CODE
  std::uint32_t ticks;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(ticks));
  return ticks;
#else
  return exec::ask([](exec::executor& e) { return static_cast<std::uint32_t>(e.ticks()); }, 0);
#endif
}

}  // namespace quarry::simt

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The position of the calling lane in its warp, block and grid. A host thread outside kernels
/// counts as a grid of one lane.

#include <quarry/simt/backend.hpp>
#include <quarry/simt/bits.hpp>
#include <quarry/simt/detail/executor_interface.hpp>

#include <cstdint>

namespace quarry::simt {

/// The index of the lane in its warp, 0 to 31.
QUARRY_DEVICE inline unsigned lane_id() {
#if QUARRY_DEVICE_CODE
  unsigned id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
#else
  return detail::read_executor([](detail::executor_interface& e) { return e.running().index; }, 0);
#endif
}

/// The mask of the lanes of the warp with a smaller index.
QUARRY_DEVICE inline lane_mask lanes_below() {
#if QUARRY_DEVICE_CODE
  lane_mask mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
#else
  return (lane_mask{1} << lane_id()) - 1;
#endif
}

/// The index of the thread in its block. Blocks and grids are one-dimensional; of CUDA's dimensions
/// only x is used.
QUARRY_DEVICE inline unsigned thread_id() {
#if QUARRY_DEVICE_CODE
  return threadIdx.x;
#else
  return detail::read_executor(
      [](detail::executor_interface& e) { return e.running().thread_in_block; }, 0);
#endif
}

QUARRY_DEVICE inline unsigned warp_id() { return thread_id() / warp_size; }

QUARRY_DEVICE inline unsigned block_id() {
#if QUARRY_DEVICE_CODE
  return blockIdx.x;
#else
  return detail::read_executor([](detail::executor_interface& e) { return e.running().block; }, 0);
#endif
}

QUARRY_DEVICE inline unsigned block_size() {
#if QUARRY_DEVICE_CODE
  return blockDim.x;
#else
  return detail::read_executor([](detail::executor_interface& e) { return e.work().threads; }, 1);
#endif
}

QUARRY_DEVICE inline unsigned grid_blocks() {
#if QUARRY_DEVICE_CODE
  return gridDim.x;
#else
  return detail::read_executor([](detail::executor_interface& e) { return e.work().blocks; }, 1);
#endif
}

/// The index of the thread in its grid.
QUARRY_DEVICE inline std::uint64_t global_thread() {
  return std::uint64_t{block_id()} * block_size() + thread_id();
}
QUARRY_DEVICE inline std::uint64_t grid_threads() {
  return std::uint64_t{grid_blocks()} * block_size();
}

/// The multiprocessor that runs the lane. It is a hint: the lane may move to another
/// multiprocessor.
QUARRY_DEVICE inline unsigned sm_id() {
#if QUARRY_DEVICE_CODE
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
#else
  return block_id() % cpu::multiprocessors;
#endif
}

/// A counter that grows while lanes run, as a seed for hashes. It is deterministic under the
/// explorer.
QUARRY_DEVICE inline std::uint32_t clock() {
#if QUARRY_DEVICE_CODE
  std::uint32_t ticks;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(ticks));
  return ticks;
#else
  return detail::read_executor(
      [](detail::executor_interface& e) { return static_cast<std::uint32_t>(e.ticks()); }, 0);
#endif
}

}  // namespace quarry::simt

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Collectives: operations that the lanes of a mask execute together.
///
/// All lanes of the mask must call the operation, and no lane assumes that its warp is converged.
/// active_mask() returns a set of lanes that are converged at the call. The lanes of the result,
/// and only these, may pass it as a mask. The set contains the caller; nothing else is guaranteed.
///
/// Memory ordering: sync_warp and sync_block order the accesses of their lanes. The other
/// operations order nothing.

#include <quarry/simt/bits.hpp>
#include <quarry/simt/detail/collective_kinds.hpp>
#include <quarry/simt/ids.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace quarry::simt {

/// Returns: lanes of the warp that execute this call together, the caller among them.
#if QUARRY_DEVICE_CODE
QUARRY_DEVICE inline lane_mask active_mask() { return __activemask(); }
#else
QUARRY_DEVICE inline lane_mask active_mask(const char* file = __builtin_FILE(),
                                           unsigned line = __builtin_LINE()) {
  return detail::read_executor(
      [&](detail::executor_interface& e) { return e.active_mask(file, line); }, 1);
}
#endif

/// Effects: suspends the lane for a short time, while it waits for another lane in a loop. `pause`
/// is the time in nanoseconds on a GPU. Longer pauses reduce contention when many lanes poll one
/// word.
QUARRY_DEVICE inline void spin([[maybe_unused]] unsigned pause = 32) {
#if QUARRY_DEVICE_CODE
  __nanosleep(pause);
#else
  detail::read_executor([](detail::executor_interface& e) { return e.spin(), 0; }, 0);
#endif
}

// ---- votes, shuffles, matches -------------------------------------------------------------------

template <class T>
concept lane_value = std::is_trivially_copyable_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

/// Returns: the lanes of the mask whose `vote` is true.
QUARRY_DEVICE inline lane_mask ballot([[maybe_unused]] lane_mask mask, bool vote) {
#if QUARRY_DEVICE_CODE
  return __ballot_sync(mask, vote);
#else
  return static_cast<lane_mask>(detail::run_collective(detail::ballot_kind, mask, vote).first);
#endif
}
QUARRY_DEVICE inline bool any(lane_mask mask, bool vote) {
#if QUARRY_DEVICE_CODE
  return __any_sync(mask, vote);
#else
  return ballot(mask, vote) != 0;
#endif
}
QUARRY_DEVICE inline bool all(lane_mask mask, bool vote) {
#if QUARRY_DEVICE_CODE
  return __all_sync(mask, vote);
#else
  return ballot(mask, !vote) == 0;
#endif
}

/// Returns: the value that lane `source` passes. Requires: `source` is in the mask.
template <lane_value T>
QUARRY_DEVICE T shuffle(lane_mask mask, T value, unsigned source) {
#if QUARRY_DEVICE_CODE
  if constexpr (sizeof(T) == 8) {
    return __builtin_bit_cast(T, __shfl_sync(mask, __builtin_bit_cast(unsigned long long, value),
                                             static_cast<int>(source)));
  } else {
    return __builtin_bit_cast(
        T, __shfl_sync(mask, __builtin_bit_cast(unsigned, value), static_cast<int>(source)));
  }
#else
  return detail::unpack<T>(
      detail::run_collective(detail::shuffle_kind, mask, detail::pack(value), source).first);
#endif
}

/// Returns: the lanes of the mask that pass the same value as the caller.
template <lane_value T>
QUARRY_DEVICE lane_mask match_any(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
  if constexpr (sizeof(T) == 8) {
    return __match_any_sync(mask, __builtin_bit_cast(unsigned long long, value));
  } else {
    return __match_any_sync(mask, __builtin_bit_cast(unsigned, value));
  }
#else
  return static_cast<lane_mask>(
      detail::run_collective(detail::match_kind, mask, detail::pack(value)).first);
#endif
}

// ---- barriers -----------------------------------------------------------------------------------

/// A barrier for the lanes of the mask. Accesses before it are visible to these lanes after it.
QUARRY_DEVICE inline void sync_warp(lane_mask mask) {
#if QUARRY_DEVICE_CODE
  __syncwarp(mask);
#else
  if (detail::executor_interface* e = detail::executor_interface::current()) {
    detail::tsan_ignore guard;
    e->sync_warp(mask);
  }
#endif
}

/// A barrier for all lanes of the block that have not exited. Accesses before it are visible to
/// these lanes after it.
QUARRY_DEVICE inline void sync_block() {
#if QUARRY_DEVICE_CODE
  __syncthreads();
#else
  detail::read_executor([](detail::executor_interface& e) { return e.sync_block(), 0; }, 0);
#endif
}

}  // namespace quarry::simt

#include <quarry/simt/reduce.hpp>

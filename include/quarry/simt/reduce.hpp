// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reductions and prefix sums over the lanes of a mask.
///
/// From sm_80 on, a warp reduces 32-bit words with one instruction. Wider words and older GPUs take
/// a shuffle per lane.
///
/// scan_add uses ballots. For each bit b that is set in the value of any lane, each lower lane with
/// this bit adds 2^b to the prefix sum of the caller. The method works for every mask and yields
/// the total as well. It takes one ballot if all lanes pass the same power of two, which is the
/// common case.

#include <quarry/simt/collective.hpp>

namespace quarry::simt {

template <class T>
struct scan_result {
  T before;  // the sum of the lanes of the mask with a smaller index
  T total;   // the sum of all lanes of the mask
};

template <class T>
concept reducible = std::integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

#if QUARRY_DEVICE_CODE
namespace gpu {

template <class T, class Combine>
__device__ T reduce_by_shuffles(lane_mask mask, T value, Combine combine) {
  T sum = shuffle(mask, value, lowest_bit(mask));
  for (lane_mask left = mask & (mask - 1); left != 0; left &= left - 1)
    sum = combine(sum, shuffle(mask, value, lowest_bit(left)));
  return sum;
}

}  // namespace gpu
#endif

template <reducible T>
QUARRY_DEVICE T reduce_and(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 4) {
    return static_cast<T>(__reduce_and_sync(mask, static_cast<unsigned>(value)));
  } else {
    const auto wide = static_cast<std::uint64_t>(value);
    const std::uint64_t high = __reduce_and_sync(mask, static_cast<unsigned>(wide >> 32));
    return static_cast<T>(high << 32 | __reduce_and_sync(mask, static_cast<unsigned>(wide)));
  }
#else
  return gpu::reduce_by_shuffles(mask, value, [](T a, T b) { return static_cast<T>(a & b); });
#endif
#else
  return detail::unpack<T>(
      detail::run_collective(detail::and_kind, mask, detail::pack(value)).first);
#endif
}

template <reducible T>
QUARRY_DEVICE T reduce_or(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 4) {
    return static_cast<T>(__reduce_or_sync(mask, static_cast<unsigned>(value)));
  } else {
    const auto wide = static_cast<std::uint64_t>(value);
    const std::uint64_t high = __reduce_or_sync(mask, static_cast<unsigned>(wide >> 32));
    return static_cast<T>(high << 32 | __reduce_or_sync(mask, static_cast<unsigned>(wide)));
  }
#else
  return gpu::reduce_by_shuffles(mask, value, [](T a, T b) { return static_cast<T>(a | b); });
#endif
#else
  return detail::unpack<T>(
      detail::run_collective(detail::or_kind, mask, detail::pack(value)).first);
#endif
}

template <reducible T>
QUARRY_DEVICE T reduce_xor(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 4) {
    return static_cast<T>(__reduce_xor_sync(mask, static_cast<unsigned>(value)));
  } else {
    const auto wide = static_cast<std::uint64_t>(value);
    const std::uint64_t high = __reduce_xor_sync(mask, static_cast<unsigned>(wide >> 32));
    return static_cast<T>(high << 32 | __reduce_xor_sync(mask, static_cast<unsigned>(wide)));
  }
#else
  return gpu::reduce_by_shuffles(mask, value, [](T a, T b) { return static_cast<T>(a ^ b); });
#endif
#else
  return detail::unpack<T>(
      detail::run_collective(detail::xor_kind, mask, detail::pack(value)).first);
#endif
}

template <reducible T>
QUARRY_DEVICE scan_result<T> scan_add(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
  using word = std::make_unsigned_t<T>;
  const auto mine = static_cast<word>(value);
  const lane_mask below = lanes_below();
  word before = 0;
  word total = 0;
  for (word bits = reduce_or(mask, mine); bits != 0; bits &= bits - 1) {
    const unsigned b = lowest_bit(bits);
    const lane_mask votes = ballot(mask, (mine >> b & 1) != 0);
    before += static_cast<word>(popc(votes & below)) << b;
    total += static_cast<word>(popc(votes)) << b;
  }
  return {static_cast<T>(before), static_cast<T>(total)};
#else
  const detail::collective_result sums =
      detail::run_collective(detail::scan_kind, mask, detail::pack(value));
  return {static_cast<T>(sums.first), static_cast<T>(sums.second)};
#endif
}

template <reducible T>
QUARRY_DEVICE T reduce_add(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 4)
    return static_cast<T>(__reduce_add_sync(mask, static_cast<unsigned>(value)));
  else
#endif
    return scan_add(mask, value).total;
#else
  return detail::unpack<T>(
      detail::run_collective(detail::add_kind<T>, mask, detail::pack(value)).first);
#endif
}

template <reducible T>
QUARRY_DEVICE T reduce_min(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 4) {
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(__reduce_min_sync(mask, static_cast<int>(value)));
    else
      return static_cast<T>(__reduce_min_sync(mask, static_cast<unsigned>(value)));
  } else
#endif
    return gpu::reduce_by_shuffles(mask, value, [](T a, T b) { return b < a ? b : a; });
#else
  return detail::unpack<T>(
      detail::run_collective(detail::min_kind<T>, mask, detail::pack(value)).first);
#endif
}

template <reducible T>
QUARRY_DEVICE T reduce_max(lane_mask mask, T value) {
#if QUARRY_DEVICE_CODE
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 4) {
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(__reduce_max_sync(mask, static_cast<int>(value)));
    else
      return static_cast<T>(__reduce_max_sync(mask, static_cast<unsigned>(value)));
  } else
#endif
    return gpu::reduce_by_shuffles(mask, value, [](T a, T b) { return a < b ? b : a; });
#else
  return detail::unpack<T>(
      detail::run_collective(detail::max_kind<T>, mask, detail::pack(value)).first);
#endif
}

}  // namespace quarry::simt

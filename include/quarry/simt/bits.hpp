// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Bit counting as a lane does it: one instruction on the GPU, <bit> elsewhere and in constants.

#include <quarry/simt/config.hpp>

#include <bit>
#include <cstdint>

#if QUARRY_CUDA
#include <cuda/std/bit>
#endif

namespace quarry::simt {

/// One bit per lane of a warp.
using lane_mask = std::uint32_t;

inline constexpr unsigned warp_size = 32;
inline constexpr lane_mask full_warp = 0xffffffffu;

namespace detail {
#if QUARRY_CUDA
namespace bit = ::cuda::std;
#else
namespace bit = ::std;
#endif
}  // namespace detail

QUARRY_DEVICE constexpr unsigned popc(std::uint32_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated()) return static_cast<unsigned>(__popc(x));
#endif
  return static_cast<unsigned>(detail::bit::popcount(x));
}

QUARRY_DEVICE constexpr unsigned popc(std::uint64_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated()) return static_cast<unsigned>(__popcll(x));
#endif
  return static_cast<unsigned>(detail::bit::popcount(x));
}

/// Index of the lowest set bit. Requires x != 0.
QUARRY_DEVICE constexpr unsigned lowest_bit(std::uint32_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated()) return static_cast<unsigned>(__ffs(static_cast<int>(x)) - 1);
#endif
  return static_cast<unsigned>(detail::bit::countr_zero(x));
}

QUARRY_DEVICE constexpr unsigned lowest_bit(std::uint64_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated()) return static_cast<unsigned>(__ffsll(static_cast<long long>(x)) - 1);
#endif
  return static_cast<unsigned>(detail::bit::countr_zero(x));
}

/// Index of the highest set bit. Requires x != 0.
QUARRY_DEVICE constexpr unsigned highest_bit(std::uint32_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated()) return static_cast<unsigned>(31 - __clz(static_cast<int>(x)));
#endif
  return static_cast<unsigned>(31 - detail::bit::countl_zero(x));
}

QUARRY_DEVICE constexpr unsigned highest_bit(std::uint64_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated()) return static_cast<unsigned>(63 - __clzll(static_cast<long long>(x)));
#endif
  return static_cast<unsigned>(63 - detail::bit::countl_zero(x));
}

}  // namespace quarry::simt

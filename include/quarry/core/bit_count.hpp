// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Population count and positions of set bits: one instruction on the GPU, the functions of <bit>
/// on the host and in constant expressions.

#include <quarry/core/config.hpp>

#include <bit>
#include <cstdint>

#if QUARRY_CUDA
#include <cuda/std/bit>
#endif

namespace quarry {

namespace detail {
#if QUARRY_CUDA
namespace bit_functions = ::cuda::std;
#else
namespace bit_functions = ::std;
#endif
}  // namespace detail

QUARRY_DEVICE constexpr unsigned popc(std::uint32_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated()) return static_cast<unsigned>(__popc(x));
#endif
  return static_cast<unsigned>(detail::bit_functions::popcount(x));
}

QUARRY_DEVICE constexpr unsigned popc(std::uint64_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated()) return static_cast<unsigned>(__popcll(x));
#endif
  return static_cast<unsigned>(detail::bit_functions::popcount(x));
}

/// Index of the lowest set bit. Requires x != 0.
QUARRY_DEVICE constexpr unsigned lowest_bit(std::uint32_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated())
    return static_cast<unsigned>(__ffs(static_cast<int>(x)) - 1);
#endif
  return static_cast<unsigned>(detail::bit_functions::countr_zero(x));
}

QUARRY_DEVICE constexpr unsigned lowest_bit(std::uint64_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated())
    return static_cast<unsigned>(__ffsll(static_cast<long long>(x)) - 1);
#endif
  return static_cast<unsigned>(detail::bit_functions::countr_zero(x));
}

/// Index of the highest set bit. Requires x != 0.
QUARRY_DEVICE constexpr unsigned highest_bit(std::uint32_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated())
    return static_cast<unsigned>(31 - __clz(static_cast<int>(x)));
#endif
  return static_cast<unsigned>(31 - detail::bit_functions::countl_zero(x));
}

QUARRY_DEVICE constexpr unsigned highest_bit(std::uint64_t x) {
#if QUARRY_DEVICE_CODE
  if (!__builtin_is_constant_evaluated())
    return static_cast<unsigned>(63 - __clzll(static_cast<long long>(x)));
#endif
  return static_cast<unsigned>(63 - detail::bit_functions::countl_zero(x));
}

}  // namespace quarry

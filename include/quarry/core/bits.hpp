// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Arithmetic on sizes and addresses: rounding, logarithms, saturating sums and products. All
/// functions are constexpr device code.
///
/// Sizes do not wrap around. malloc(SIZE_MAX - 7) must return nullptr, but `n + 15 & ~15` rounds
/// this size to 0. Therefore align_up, saturating_add and saturating_multiply return the largest
/// value of their type if the result does not fit; an allocation of that size fails. checked_add
/// and checked_multiply report whether the result fits.

#include <quarry/core/bit_count.hpp>
#include <quarry/core/config.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace quarry {

namespace detail {
__extension__ using uint128 = unsigned __int128;

template <class T>
using twice_as_wide_t = std::conditional_t<sizeof(T) == 4, std::uint64_t, uint128>;

template <class T>
inline constexpr unsigned width = sizeof(T) * 8;
}  // namespace detail

/// The unsigned integer types of sizes.
template <class T>
concept unsigned_word = (sizeof(T) == 4 || sizeof(T) == 8) && std::unsigned_integral<T>;

// ---- powers of two ------------------------------------------------------------------------------

template <unsigned_word T>
QUARRY_DEVICE constexpr bool is_power_of_two(T n) {
  return n != 0 && (n & (n - 1)) == 0;
}

/// Rounds down to a multiple of `alignment`. Requires: alignment is a power of two.
template <unsigned_word T>
QUARRY_DEVICE constexpr T align_down(T n, std::type_identity_t<T> alignment) {
  return n & ~(alignment - 1);
}

/// Rounds up to a multiple of `alignment`. Returns the largest value of T if no multiple fits.
/// Requires: alignment is a power of two.
template <unsigned_word T>
QUARRY_DEVICE constexpr T align_up(T n, std::type_identity_t<T> alignment) {
  const T up = n + (alignment - 1);
  return up < n ? static_cast<T>(~T{0}) : align_down(up, alignment);
}

template <unsigned_word T>
QUARRY_DEVICE constexpr bool is_aligned(T n, std::type_identity_t<T> alignment) {
  return (n & (alignment - 1)) == 0;
}

/// Largest k with 2^k <= n. Requires n != 0.
template <unsigned_word T>
QUARRY_DEVICE constexpr unsigned log2_floor(T n) {
  if constexpr (sizeof(T) == 8)
    return highest_bit(static_cast<std::uint64_t>(n));
  else
    return highest_bit(static_cast<std::uint32_t>(n));
}

/// Smallest k with 2^k >= n. Requires n != 0.
template <unsigned_word T>
QUARRY_DEVICE constexpr unsigned log2_ceil(T n) {
  return n == 1 ? 0 : log2_floor(static_cast<T>(n - 1)) + 1;
}

/// A permutation of 0 to `mask` that moves adjacent numbers far apart. Requires: mask + 1 is a
/// power of two. The multiplier is odd, so the map is bijective.
QUARRY_DEVICE constexpr std::uint32_t spread(std::uint32_t i, std::uint32_t mask) {
  return i * 0x9e3779b1u & mask;
}

/// ceil(n / d), without overflow. Requires d != 0.
template <unsigned_word T>
QUARRY_DEVICE constexpr T ceil_div(T n, std::type_identity_t<T> d) {
  return n / d + (n % d != 0 ? 1 : 0);
}

// ---- checked and saturating arithmetic ----------------------------------------------------------

/// Returns: whether a + b fits. Effects: stores the sum if it fits.
template <unsigned_word T>
QUARRY_DEVICE constexpr bool checked_add(T a, std::type_identity_t<T> b, T& sum) {
  const T s = a + b;
  if (s < a) return false;
  sum = s;
  return true;
}

template <unsigned_word T>
QUARRY_DEVICE constexpr bool checked_multiply(T a, std::type_identity_t<T> b, T& product) {
  const auto p = static_cast<detail::twice_as_wide_t<T>>(a) * b;
  if (static_cast<T>(p >> detail::width<T>) != 0) return false;
  product = static_cast<T>(p);
  return true;
}

template <unsigned_word T>
QUARRY_DEVICE constexpr T saturating_add(T a, std::type_identity_t<T> b) {
  T sum = ~T{0};
  checked_add(a, b, sum);
  return sum;
}

template <unsigned_word T>
QUARRY_DEVICE constexpr T saturating_multiply(T a, std::type_identity_t<T> b) {
  T product = ~T{0};
  checked_multiply(a, b, product);
  return product;
}

/// The upper 64 bits of the product.
QUARRY_DEVICE constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(static_cast<detail::uint128>(a) * b >> 64);
}

}  // namespace quarry

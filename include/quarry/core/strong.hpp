// SPDX-License-Identifier: Apache-2.0
#pragma once
/// strong: an integer type that does not convert to other integer types.
///
///   using word_number = strong<struct word_number_tag, std::uint32_t>;
///   using bit_number  = strong<struct bit_number_tag, std::uint64_t>;
///   word_number{3} == bit_number{3}      does not compile
///
/// The indices of words, bits, slots, segments and size classes are all small integers. Strong
/// types let the compiler find an index that is passed for another one. The tag distinguishes the
/// types. There is no cost at run time: a strong type has the size of its representation, is
/// trivially copyable, and all of its operations are constexpr device code.
///
/// The kind determines the arithmetic:
///
///   ordinal    An index, such as the third word. Distances are plain integers:
///              ordinal + n, ordinal - n, ++, --, ordinal - ordinal = n. No sum, no product.
///   quantity   A count, such as a number of slots. Sums and differences are quantities, and a
///              plain integer scales: q + q, q - q, q * n, n * q, q / n, q / q = n, q % q = q.
///
/// Overflow is not checked; bits.hpp has checked and saturating arithmetic.

#include <quarry/core/config.hpp>

#include <concepts>

namespace quarry {

enum class strong_kind : unsigned char { ordinal, quantity };

template <class Tag, std::integral Rep, strong_kind Kind = strong_kind::ordinal>
class strong {
 public:
  using rep = Rep;
  static constexpr strong_kind kind = Kind;

  strong() = default;
  QUARRY_DEVICE constexpr explicit strong(Rep value) : value_(value) {}

  QUARRY_DEVICE constexpr Rep value() const { return value_; }

  // The operators are not defaulted from <=>: nvcc treats std::strong_ordering as host code.
  friend QUARRY_DEVICE constexpr bool operator==(strong a, strong b) {
    return a.value_ == b.value_;
  }
  friend QUARRY_DEVICE constexpr bool operator<(strong a, strong b) { return a.value_ < b.value_; }
  friend QUARRY_DEVICE constexpr bool operator>(strong a, strong b) { return a.value_ > b.value_; }
  friend QUARRY_DEVICE constexpr bool operator<=(strong a, strong b) {
    return a.value_ <= b.value_;
  }
  friend QUARRY_DEVICE constexpr bool operator>=(strong a, strong b) {
    return a.value_ >= b.value_;
  }

 private:
  Rep value_ = 0;
};

namespace detail {
template <class T>
inline constexpr bool is_strong = false;
template <class Tag, class Rep, strong_kind Kind>
inline constexpr bool is_strong<strong<Tag, Rep, Kind>> = true;
}  // namespace detail

template <class T>
concept strong_ordinal = detail::is_strong<T> && T::kind == strong_kind::ordinal;
template <class T>
concept strong_quantity = detail::is_strong<T> && T::kind == strong_kind::quantity;

// ---- ordinals -----------------------------------------------------------------------------------

template <strong_ordinal S>
QUARRY_DEVICE constexpr S operator+(S a, typename S::rep n) {
  return S(static_cast<typename S::rep>(a.value() + n));
}
template <strong_ordinal S>
QUARRY_DEVICE constexpr S operator-(S a, typename S::rep n) {
  return S(static_cast<typename S::rep>(a.value() - n));
}
template <strong_ordinal S>
QUARRY_DEVICE constexpr typename S::rep operator-(S a, S b) {
  return static_cast<typename S::rep>(a.value() - b.value());
}
template <strong_ordinal S>
QUARRY_DEVICE constexpr S& operator++(S& a) {
  return a = a + 1;
}
template <strong_ordinal S>
QUARRY_DEVICE constexpr S& operator--(S& a) {
  return a = a - 1;
}

// ---- quantities ---------------------------------------------------------------------------------

template <strong_quantity S>
QUARRY_DEVICE constexpr S operator+(S a, S b) {
  return S(static_cast<typename S::rep>(a.value() + b.value()));
}
template <strong_quantity S>
QUARRY_DEVICE constexpr S operator-(S a, S b) {
  return S(static_cast<typename S::rep>(a.value() - b.value()));
}
template <strong_quantity S>
QUARRY_DEVICE constexpr S& operator+=(S& a, S b) {
  return a = a + b;
}
template <strong_quantity S>
QUARRY_DEVICE constexpr S& operator-=(S& a, S b) {
  return a = a - b;
}
template <strong_quantity S>
QUARRY_DEVICE constexpr S operator*(S a, typename S::rep n) {
  return S(static_cast<typename S::rep>(a.value() * n));
}
template <strong_quantity S>
QUARRY_DEVICE constexpr S operator*(typename S::rep n, S a) {
  return a * n;
}
template <strong_quantity S>
QUARRY_DEVICE constexpr S operator/(S a, typename S::rep n) {
  return S(static_cast<typename S::rep>(a.value() / n));
}
template <strong_quantity S>
QUARRY_DEVICE constexpr typename S::rep operator/(S a, S b) {
  return static_cast<typename S::rep>(a.value() / b.value());
}
template <strong_quantity S>
QUARRY_DEVICE constexpr S operator%(S a, S b) {
  return S(static_cast<typename S::rep>(a.value() % b.value()));
}

}  // namespace quarry

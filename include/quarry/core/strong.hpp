// SPDX-License-Identifier: Apache-2.0
#pragma once
/// strong: an integer that is not mixed up with another one.
///
///   using word_number = strong<struct word_number_tag, std::uint32_t>;
///   using bit_number  = strong<struct bit_number_tag, std::uint64_t>;
///   word_number{3} == bit_number{3}      does not compile
///
/// An allocator juggles words, bits, slots, segments and classes, all of them small integers;
/// passing one for the other compiles and is found late. The name of the tag is the whole type;
/// there is no cost at run time (same size, trivially copyable, everything constexpr and callable
/// by a lane).
///
/// What arithmetic makes sense depends on what is named:
///
///   ordinal    the third word, the 12th slot. Steps and distances are plain numbers:
///              ordinal + n, ordinal - n, ++, --, ordinal - ordinal = n. No sum, no product.
///   quantity   so many slots, so many pins. Sums and differences stay quantities, a plain number
///              scales: q + q, q - q, q * n, n * q, q / n, q / q = n, q % q = q.
///
/// Nothing here is checked for wrapping: see bits.hpp for sums that must not wrap.

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

  // Written out, not defaulted from <=>: std::strong_ordering is host code to nvcc.
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

// ---- an ordinal moves by plain numbers ----------------------------------------------------------

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

// ---- a quantity adds to its like and is scaled by plain numbers ---------------------------------

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

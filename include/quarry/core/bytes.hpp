// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bytes: a size in bytes, 64 bits wide.
///
///   heap<> h(1_GiB);      h.allocate(64);   bytes n = 3 * 16_KiB;      n / 16_B == 3072
///
/// An unsigned integer converts to bytes implicitly. A signed constant converts if it is not
/// negative, which the compiler checks; a signed variable does not convert, and neither does a
/// floating-point number. The conversion to an integer is explicit, by value() or static_cast, so
/// that a size is not mistaken for a count.
///
/// Sums and products saturate (bits.hpp). A literal that does not fit 64 bits does not compile.
/// a - b requires b <= a.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

namespace quarry {

class bytes {
 public:
  bytes() = default;

  template <std::unsigned_integral Number>
    requires(!std::same_as<Number, bool>)
  QUARRY_DEVICE constexpr bytes(Number n) : value_(n) {}

  template <std::signed_integral Number>
    requires(!std::same_as<Number, char>)
  consteval bytes(Number n) : value_(static_cast<std::uint64_t>(n)) {
    if (n < 0) throw "a size in bytes is not negative";
  }

  QUARRY_DEVICE constexpr std::uint64_t value() const { return value_; }

  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  QUARRY_DEVICE constexpr explicit operator Number() const { return static_cast<Number>(value_); }

  friend QUARRY_DEVICE constexpr bool operator==(bytes a, bytes b) { return a.value_ == b.value_; }
  friend QUARRY_DEVICE constexpr bool operator<(bytes a, bytes b) { return a.value_ < b.value_; }
  friend QUARRY_DEVICE constexpr bool operator>(bytes a, bytes b) { return a.value_ > b.value_; }
  friend QUARRY_DEVICE constexpr bool operator<=(bytes a, bytes b) { return a.value_ <= b.value_; }
  friend QUARRY_DEVICE constexpr bool operator>=(bytes a, bytes b) { return a.value_ >= b.value_; }

  friend QUARRY_DEVICE constexpr bytes operator+(bytes a, bytes b) {
    return saturating_add(a.value_, b.value_);
  }
  friend QUARRY_DEVICE constexpr bytes operator-(bytes a, bytes b) { return a.value_ - b.value_; }
  QUARRY_DEVICE constexpr bytes& operator+=(bytes b) { return *this = *this + b; }
  QUARRY_DEVICE constexpr bytes& operator-=(bytes b) { return *this = *this - b; }

  // A size is scaled by an integer, and the ratio of two sizes is an integer. There is no bytes *
  // bytes.
  template <std::integral Number>
  friend QUARRY_DEVICE constexpr bytes operator*(bytes a, Number n) {
    return saturating_multiply(a.value_, static_cast<std::uint64_t>(n));
  }
  template <std::integral Number>
  friend QUARRY_DEVICE constexpr bytes operator*(Number n, bytes a) {
    return a * n;
  }
  template <std::integral Number>
  friend QUARRY_DEVICE constexpr bytes operator/(bytes a, Number n) {
    return a.value_ / static_cast<std::uint64_t>(n);
  }
  friend QUARRY_DEVICE constexpr std::uint64_t operator/(bytes a, bytes b) {
    return a.value_ / b.value_;
  }
  friend QUARRY_DEVICE constexpr bytes operator%(bytes a, bytes b) { return a.value_ % b.value_; }

 private:
  std::uint64_t value_ = 0;
};

static_assert(std::is_trivially_copyable_v<bytes> && sizeof(bytes) == 8);

namespace detail {
consteval bytes literal(unsigned long long n, unsigned shift) {
  if (n > (~0ull >> shift)) throw "this size does not fit 64 bits";
  return static_cast<std::uint64_t>(n) << shift;
}
}  // namespace detail

/// The suffixes are visible inside quarry. `using namespace quarry::literals;` imports only them.
inline namespace literals {
consteval bytes operator""_B(unsigned long long n) { return detail::literal(n, 0); }
consteval bytes operator""_KiB(unsigned long long n) { return detail::literal(n, 10); }
consteval bytes operator""_MiB(unsigned long long n) { return detail::literal(n, 20); }
consteval bytes operator""_GiB(unsigned long long n) { return detail::literal(n, 30); }
consteval bytes operator""_TiB(unsigned long long n) { return detail::literal(n, 40); }
}  // namespace literals

/// Returns: a size for human readers, in the largest unit with a value of at least 1, rounded to
/// the nearest tenth: "0 B", "1023 B", "1 KiB", "1.5 GiB".
inline std::string to_text(bytes n) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  unsigned unit = n.value() == 0 ? 0 : log2_floor(n.value()) / 10;
  const auto tenths_in = [&](unsigned u) {
    const std::uint64_t one = std::uint64_t{1} << (10 * u);
    return n.value() / one * 10 + (n.value() % one * 10 + one / 2) / one;
  };
  std::uint64_t tenths = tenths_in(unit);
  if (tenths >= 10'240 && unit < 6) tenths = tenths_in(++unit);  // 1023.99 KiB becomes 1 MiB
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += '.', text += std::to_string(tenths % 10);
  return text + " " + units[unit];
}

}  // namespace quarry

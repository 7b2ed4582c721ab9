// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bytes: a size in bytes, 64 bits wide.
///
///   heap<> h(1_GiB);      h.allocate(64);   bytes n = 3 * 16_KiB;      n / 16_B == 3072
///
/// A plain unsigned number where bytes are wanted means bytes, so the conversion in is implicit (a
/// signed constant is accepted when it is not negative, which the compiler checks; a signed
/// variable is not). The way out is explicit: value(), or static_cast, so that bytes are never
/// taken for a count of something else. 1.5 is not a number of bytes: no conversion from floating
/// point.
///
/// Sums and products saturate (bits.hpp): a size too large stays too large. A literal that does not
/// fit 64 bits does not compile. a - b requires b <= a.

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

  // Scaling takes a plain number, a ratio of sizes is one; bytes * bytes means nothing.
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

/// `using namespace quarry::literals;` brings the suffixes alone; inside quarry they are always
/// there.
inline namespace literals {
consteval bytes operator""_B(unsigned long long n) { return detail::literal(n, 0); }
consteval bytes operator""_KiB(unsigned long long n) { return detail::literal(n, 10); }
consteval bytes operator""_MiB(unsigned long long n) { return detail::literal(n, 20); }
consteval bytes operator""_GiB(unsigned long long n) { return detail::literal(n, 30); }
consteval bytes operator""_TiB(unsigned long long n) { return detail::literal(n, 40); }
}  // namespace literals

/// For people: the largest unit that leaves at least one, and a decimal where it says something.
/// "0 B", "1023 B", "1 KiB", "1.5 GiB". Rounded to the nearest tenth.
inline std::string to_text(bytes n) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  unsigned unit = n.value() == 0 ? 0 : log2_floor(n.value()) / 10;
  const auto tenths_in = [&](unsigned u) {
    const std::uint64_t one = std::uint64_t{1} << (10 * u);
    return n.value() / one * 10 + (n.value() % one * 10 + one / 2) / one;
  };
  std::uint64_t tenths = tenths_in(unit);
  if (tenths >= 10'240 && unit < 6) tenths = tenths_in(++unit);  // 1023.99 KiB reads 1 MiB
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += '.', text += std::to_string(tenths % 10);
  return text + " " + units[unit];
}

}  // namespace quarry

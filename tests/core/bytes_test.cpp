// SPDX-License-Identifier: Apache-2.0
#include "support/on_backend.hpp"

#include <quarry/core/bytes.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <limits>

namespace bytes_test {
namespace {

using quarry::bytes;
using namespace quarry::literals;

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

// Unsigned integers convert implicitly; no other type does, and the conversion back is explicit.
static_assert(std::convertible_to<std::uint64_t, bytes> &&
              std::convertible_to<std::uint32_t, bytes>);
static_assert(std::convertible_to<std::uint8_t, bytes> &&
              std::convertible_to<unsigned long long, bytes>);
static_assert(!std::constructible_from<bytes, double> && !std::constructible_from<bytes, bool>);
static_assert(!std::constructible_from<bytes, char> && !std::constructible_from<bytes, void*>);
static_assert(!std::convertible_to<bytes, std::uint64_t> &&
              std::constructible_from<std::uint64_t, bytes>);
static_assert(!std::constructible_from<bool, bytes>);

template <class A, class B>
concept multipliable = requires(A a, B b) {
  a* b;
};
static_assert(!multipliable<bytes, bytes> && multipliable<bytes, unsigned>);

static_assert(1_B == 1u && 1_KiB == 1024u && 1_MiB == 1024_KiB && 1_GiB == 1024_MiB &&
              1_TiB == 1024_GiB);
static_assert((16777215_TiB).value() == largest - (std::uint64_t{1} << 40) + 1);
static_assert(quarry::operator""_KiB(2) == 2048u);  // the suffixes are members of quarry, too

std::uint64_t taken(bytes n) { return n.value(); }

TEST(Bytes, ConvertsFromUnsignedIntegers) {
  const std::size_t size = 12;
  EXPECT_EQ(taken(size), 12u);
  EXPECT_EQ(taken(7u), 7u);
  EXPECT_EQ(taken(64), 64u);  // a constant that is not negative
  EXPECT_EQ(taken(2_KiB), 2048u);
}

TEST(Bytes, AddsAndScales) {
  bytes n = 3 * 16_KiB;
  EXPECT_EQ(n, 48_KiB);
  n += 1_KiB;
  n -= 512;
  EXPECT_EQ(n, 48_KiB + 512);
  EXPECT_EQ(1_MiB / 16_B, 65'536u);
  EXPECT_EQ(1_MiB / 4, 256_KiB);
  EXPECT_EQ(1000_B % 16_B, 8_B);
  EXPECT_EQ(static_cast<std::uint32_t>(4_KiB), 4096u);
}

TEST(Bytes, SaturatesInsteadOfWrapping) {
  EXPECT_EQ(bytes(largest) + 1, bytes(largest));
  EXPECT_EQ(bytes(largest) + bytes(largest), bytes(largest));
  EXPECT_EQ(1_TiB * (std::uint64_t{1} << 24), bytes(largest));
  EXPECT_EQ(bytes(largest - 1) + 1, bytes(largest));
  EXPECT_EQ(bytes(largest / 3) * 3, bytes(largest));
}

TEST(Bytes, PrintsTheLargestUnit) {
  EXPECT_EQ(to_text(0_B), "0 B");
  EXPECT_EQ(to_text(1023_B), "1023 B");
  EXPECT_EQ(to_text(1_KiB), "1 KiB");
  EXPECT_EQ(to_text(3 * 512_MiB), "1.5 GiB");
  EXPECT_EQ(to_text(64_MiB), "64 MiB");
  EXPECT_EQ(to_text(139_GiB), "139 GiB");
  EXPECT_EQ(to_text(64_TiB), "64 TiB");
  EXPECT_EQ(to_text(1100_B), "1.1 KiB");
}

TEST(Bytes, RoundsToTheNearestTenthAndCarries) {
  EXPECT_EQ(to_text(1_MiB - 1_B), "1 MiB");
  EXPECT_EQ(to_text(1_KiB + 51_B), "1 KiB");
  EXPECT_EQ(to_text(1_KiB + 52_B), "1.1 KiB");
  EXPECT_EQ(to_text(bytes(largest)), "16 EiB");
}

struct sizes_in_a_lane {
  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const bytes n = bytes(lane) + 16;
    return n > lane && n * 2 == n + n && n / 1_B == lane + 16 && bytes(~std::uint64_t{0}) + n >= n;
  }
};

TEST(Bytes, WorksInDeviceCode) {
  EXPECT_EQ(quarry::testing::lanes_that_fail({2, 64}, sizes_in_a_lane{}), 0u);
}

}  // namespace
}  // namespace bytes_test

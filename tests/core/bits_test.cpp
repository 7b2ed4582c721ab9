// SPDX-License-Identifier: Apache-2.0
#include "core/on_machine.hpp"

#include <quarry/core/bits.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace {

using quarry::reciprocal;

template <class T>
constexpr T most = std::numeric_limits<T>::max();

static_assert(quarry::align_up(std::size_t{17}, 16) == 32);
static_assert(quarry::log2_floor(1u) == 0 && quarry::log2_ceil(1u) == 0);

template <class T>
class Bits : public ::testing::Test {};
using Words = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Bits, Words);

TYPED_TEST(Bits, KnowsPowersOfTwo) {
  using T = TypeParam;
  EXPECT_FALSE(quarry::is_power_of_two(T{0}));
  for (unsigned k = 0; k < sizeof(T) * 8; ++k) {
    const T p = T{1} << k;
    EXPECT_TRUE(quarry::is_power_of_two(p));
    if (k > 0) {
      EXPECT_FALSE(quarry::is_power_of_two(static_cast<T>(p + 1)));
    }
    if (k > 1) {
      EXPECT_FALSE(quarry::is_power_of_two(static_cast<T>(p - 1)));
    }
  }
}

TYPED_TEST(Bits, TakesLogarithmsBothWays) {
  using T = TypeParam;
  for (unsigned k = 0; k < sizeof(T) * 8; ++k) {
    const T p = T{1} << k;
    EXPECT_EQ(quarry::log2_floor(p), k);
    EXPECT_EQ(quarry::log2_ceil(p), k);
    if (k < 2) continue;
    EXPECT_EQ(quarry::log2_floor(static_cast<T>(p - 1)), k - 1);
    EXPECT_EQ(quarry::log2_ceil(static_cast<T>(p - 1)), k);
    EXPECT_EQ(quarry::log2_floor(static_cast<T>(p + 1)), k);
    EXPECT_EQ(quarry::log2_ceil(static_cast<T>(p + 1)), k + 1);
  }
}

TYPED_TEST(Bits, RoundsToMultiples) {
  using T = TypeParam;
  for (T a = 1; a <= 64; a *= 2)
    for (T n = 0; n < 300; ++n) {
      const T down = n / a * a;
      EXPECT_EQ(quarry::align_down(n, a), down);
      EXPECT_EQ(quarry::align_up(n, a), down == n ? n : down + a);
      EXPECT_EQ(quarry::is_aligned(n, a), down == n);
      EXPECT_EQ(quarry::ceil_div(n, a), quarry::align_up(n, a) / a);
    }
}

TYPED_TEST(Bits, NeverWrapsWhenItRoundsUp) {
  using T = TypeParam;
  const T last = most<T> & ~T{15};
  EXPECT_EQ(quarry::align_up(last, 16), last);
  for (T n = last + 1; n != 0; ++n) EXPECT_EQ(quarry::align_up(n, 16), most<T>) << n;
  EXPECT_EQ(quarry::ceil_div(most<T>, 16), most<T> / 16 + 1);
  EXPECT_EQ(quarry::ceil_div(most<T>, 1), most<T>);
}

TYPED_TEST(Bits, SaysWhetherASumFits) {
  using T = TypeParam;
  T sum = 77;
  EXPECT_TRUE(quarry::checked_add(most<T> - 3, T{3}, sum));
  EXPECT_EQ(sum, most<T>);
  sum = 77;
  EXPECT_FALSE(quarry::checked_add(most<T> - 3, T{4}, sum));
  EXPECT_EQ(sum, 77u) << "untouched where it does not fit";
  EXPECT_EQ(quarry::saturating_add(most<T>, most<T>), most<T>);
  EXPECT_EQ(quarry::saturating_add(T{2}, T{3}), 5u);
}

TYPED_TEST(Bits, SaysWhetherAProductFits) {
  using T = TypeParam;
  const T half = T{1} << (sizeof(T) * 4);
  T product = 77;
  EXPECT_TRUE(quarry::checked_multiply(half, static_cast<T>(half - 1), product));
  EXPECT_EQ(product, half * (half - 1));
  product = 77;
  EXPECT_FALSE(quarry::checked_multiply(half, half, product));
  EXPECT_EQ(product, 77u);
  EXPECT_TRUE(quarry::checked_multiply(most<T>, T{1}, product));
  EXPECT_TRUE(quarry::checked_multiply(most<T>, T{0}, product));
  EXPECT_EQ(product, 0u);
  EXPECT_EQ(quarry::saturating_multiply(most<T>, T{2}), most<T>);
  EXPECT_EQ(quarry::saturating_multiply(T{6}, T{7}), 42u);
}

// The quotient only grows with the numerator, so that it is exact everywhere once it is right at
// each multiple of the divisor and just below it.
template <class T>
void expect_right_around(const reciprocal<T>& by, T d, T multiple) {
  ASSERT_EQ(by.quotient(multiple), multiple / d) << multiple << " / " << d;
  if (multiple != 0) {
    ASSERT_EQ(by.quotient(multiple - 1), (multiple - 1) / d) << multiple - 1 << " / " << d;
  }
}

template <class T>
void expect_right_at_the_edges(T d) {
  const reciprocal<T> by(d);
  const T last = most<T> / d * d;
  expect_right_around(by, d, static_cast<T>(last / 2 / d * d));
  for (T k = 0; k < 8 && k <= last / d; ++k) {
    expect_right_around(by, d, static_cast<T>(k * d));
    expect_right_around(by, d, static_cast<T>(last - k * d));
  }
  ASSERT_EQ(by.quotient(most<T>), most<T> / d);
}

TYPED_TEST(Bits, DividesByEveryNumberUpToSixteenBits) {
  using T = TypeParam;
  for (T d = 1; d <= 65'536; ++d) {
    expect_right_at_the_edges(d);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TYPED_TEST(Bits, DividesByNumbersOfEverySize) {
  using T = TypeParam;
  std::uint64_t state = 1;
  for (unsigned k = 0; k < sizeof(T) * 8; ++k) {
    const T p = T{1} << k;
    for (const T d : {p, static_cast<T>(p + 1), static_cast<T>(p - 1), static_cast<T>(p | p >> 1),
                      static_cast<T>(most<T> - p)})
      if (d != 0) expect_right_at_the_edges(d);
    for (int i = 0; i < 1000; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const T d = static_cast<T>(state >> 11) >> k | 1;
      const T n = static_cast<T>(state * 0x9e3779b97f4a7c15u);
      expect_right_at_the_edges(d);
      ASSERT_EQ(reciprocal<T>(d).quotient(n), n / d) << n << " / " << d;
    }
  }
}

// All numerators of 32 bits, for one divisor of each shape that size classes have.
TEST(Reciprocal, IsExactForEveryNumerator) {
  for (const std::uint32_t d : {80u, 96u, 112u, 128u, 144u, 176u, 208u, 240u}) {
    const reciprocal<std::uint32_t> by(d);
    std::uint32_t quotient = 0;
    std::uint32_t wrong = 0;
    for (std::uint64_t n = 0; n <= most<std::uint32_t>; n += d, ++quotient) {
      wrong += by.quotient(static_cast<std::uint32_t>(n)) != quotient;
      if (n != 0) wrong += by.quotient(static_cast<std::uint32_t>(n - 1)) != quotient - 1;
    }
    wrong += by.quotient(most<std::uint32_t>) != most<std::uint32_t> / d;
    EXPECT_EQ(wrong, 0u) << d;
  }
}

TYPED_TEST(Bits, ScalesAReciprocalByAPowerOfTwo) {
  using T = TypeParam;
  for (T d = 1; d <= 16; ++d)
    for (unsigned k = 0; k + 5 < sizeof(T) * 8; ++k) {
      const auto scaled = reciprocal<T>(d).scaled(k);
      const reciprocal<T> direct(d << k);
      EXPECT_EQ(scaled.multiplier, direct.multiplier);
      EXPECT_EQ(scaled.addend, direct.addend);
      EXPECT_EQ(scaled.shift, direct.shift);
    }
}

struct division_of_a_lane {
  reciprocal<std::uint32_t> by_narrow;
  reciprocal<std::uint64_t> by_wide;
  std::uint32_t d;
  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const auto n = static_cast<std::uint32_t>(~std::uint32_t{0} - lane * 7919);
    const std::uint64_t w = ~std::uint64_t{0} - lane * 0x9e3779b97f4a7c15u;
    return by_narrow.quotient(n) == n / d && by_wide.quotient(w) == w / d;
  }
};

struct limits_of_a_lane {
  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const std::uint64_t top = ~std::uint64_t{0} - lane;
    const std::uint64_t rounded = quarry::align_up(top, 16);
    const bool fits = lane >= 15;
    return (fits ? rounded - top < 16 : rounded == ~std::uint64_t{0}) &&
           quarry::saturating_add(top, lane) == ~std::uint64_t{0} &&
           quarry::saturating_multiply(top, 3) == ~std::uint64_t{0} &&
           quarry::log2_ceil(lane + 1) == (lane == 0 ? 0 : quarry::log2_floor(lane) + 1);
  }
};

TEST(Reciprocal, DividesInALane) {
  for (const std::uint32_t d : {1u, 3u, 7u, 16u, 48u, 80u, 112u, 1000u, 0x80000001u, 0xffffffffu})
    EXPECT_EQ(quarry::testing::lanes_that_fail({4, 128},
                                               division_of_a_lane{reciprocal<std::uint32_t>(d),
                                                                  reciprocal<std::uint64_t>(d), d}),
              0u)
        << d;
}

TEST(Sizes, DoNotWrapInALane) {
  EXPECT_EQ(quarry::testing::lanes_that_fail({4, 128}, limits_of_a_lane{}), 0u);
}

}  // namespace

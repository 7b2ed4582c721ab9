// SPDX-License-Identifier: Apache-2.0
#include "support/on_backend.hpp"

#include <quarry/core/bits.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace bits_test {
namespace {

template <class T>
constexpr T most = std::numeric_limits<T>::max();

static_assert(quarry::align_up(std::size_t{17}, 16) == 32);
static_assert(quarry::log2_floor(1u) == 0 && quarry::log2_ceil(1u) == 0);

template <class T>
class Bits : public ::testing::Test {};
using Words = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Bits, Words);

TYPED_TEST(Bits, RecognisesPowersOfTwo) {
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

TYPED_TEST(Bits, RoundsLogarithmsDownAndUp) {
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

TYPED_TEST(Bits, SaturatesWhenItRoundsUp) {
  using T = TypeParam;
  const T last = most<T> & ~T{15};
  EXPECT_EQ(quarry::align_up(last, 16), last);
  for (T n = last + 1; n != 0; ++n) EXPECT_EQ(quarry::align_up(n, 16), most<T>) << n;
  EXPECT_EQ(quarry::ceil_div(most<T>, 16), most<T> / 16 + 1);
  EXPECT_EQ(quarry::ceil_div(most<T>, 1), most<T>);
}

TYPED_TEST(Bits, ReportsWhetherASumFits) {
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

TYPED_TEST(Bits, ReportsWhetherAProductFits) {
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

TEST(Sizes, SaturateInDeviceCode) {
  EXPECT_EQ(quarry::testing::lanes_that_fail({4, 128}, limits_of_a_lane{}), 0u);
}

}  // namespace
}  // namespace bits_test

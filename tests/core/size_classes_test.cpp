// SPDX-License-Identifier: Apache-2.0
#include "support/on_backend.hpp"

#include <quarry/core/size_classes.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace size_classes_test {
namespace {

using quarry::size_classes;

using four = size_classes<16, 8192, 4>;
using two = size_classes<16, 8192, 2>;

static_assert(four::count == 32 && two::count == 18);
static_assert(four::class_of(1) == 0 && four::class_of(16) == 0 && four::class_of(17) == 1);
static_assert(four::sizes[3] == 64 && four::sizes[4] == 80 && four::sizes[8] == 160);
static_assert(two::sizes[0] == 16 && two::sizes[2] == 48 && two::sizes[4] == 96);

// Above the steps of 16, internal fragmentation is below a fifth of a block with four steps per
// doubling, and below a third with two.
static_assert(four::worst_waste_permille(64) == 200 && two::worst_waste_permille(32) == 334);

template <class Classes>
class SizeClasses : public ::testing::Test {};
using Tables =
    ::testing::Types<four, two, size_classes<16, 65536, 8>, size_classes<16, 1u << 20, 4>,
                     size_classes<64, 4096, 4>, size_classes<96, 640, 4>, size_classes<16, 16, 2>>;
TYPED_TEST_SUITE(SizeClasses, Tables);

TYPED_TEST(SizeClasses, FindsTheSmallestBlockThatHoldsIt) {
  using classes = TypeParam;
  std::uint32_t expected = 0;
  for (std::uint32_t n = 1; n <= classes::largest; ++n) {
    if (n > classes::sizes[expected]) ++expected;
    ASSERT_EQ(classes::class_of(n), expected) << n;
  }
  EXPECT_EQ(expected, classes::count - 1);
}

TYPED_TEST(SizeClasses, HasSizesThatGrowByMultiplesOfSixteen) {
  using classes = TypeParam;
  EXPECT_EQ(classes::sizes.front(), classes::smallest);
  EXPECT_EQ(classes::sizes.back(), classes::largest);
  EXPECT_TRUE(std::is_sorted(classes::sizes.begin(), classes::sizes.end()));
  for (std::uint32_t c = 0; c < classes::count; ++c) {
    EXPECT_EQ(classes::size_of(c), classes::sizes[c]);
    EXPECT_EQ(classes::sizes[c] % 16, 0u);
  }
}

TYPED_TEST(SizeClasses, WastesLessThanOneStep) {
  using classes = TypeParam;
  std::uint32_t worst = 0;
  constexpr std::uint32_t above = 16 * classes::steps_per_doubling;
  for (std::uint32_t n = classes::smallest; n <= classes::largest; ++n) {
    const std::uint32_t size = classes::size_of(classes::class_of(n));
    ASSERT_LT(size - n, std::max(16u, size / (classes::steps_per_doubling + 1))) << n;
    if (n > above) worst = std::max(worst, ((size - n) * 1000 + size - 1) / size);
  }
  if (classes::smallest <= above) {
    EXPECT_EQ(worst, classes::worst_waste_permille(above));
  }
  EXPECT_LE(worst, 1000 / (classes::steps_per_doubling + 1) + 1);
}

TYPED_TEST(SizeClasses, RejectsZeroAndSizesAboveTheLargestClass) {
  using classes = TypeParam;
  EXPECT_FALSE(classes::fits(0));
  EXPECT_TRUE(classes::fits(1) && classes::fits(classes::largest));
  EXPECT_FALSE(classes::fits(std::size_t{classes::largest} + 1));
  EXPECT_FALSE(classes::fits(std::size_t{1} << 32)) << "the low half of this size is 0";
  EXPECT_FALSE(classes::fits((std::size_t{1} << 32) + 16));
  EXPECT_FALSE(classes::fits(~std::size_t{0}));
}

TYPED_TEST(SizeClasses, DividesOffsetsByTheBlockSize) {
  using classes = TypeParam;
  for (std::uint32_t c = 0; c < classes::count; ++c) {
    const std::uint32_t size = classes::size_of(c);
    const auto by = classes::divider_of(c);
    for (std::uint32_t offset = 0; offset <= quarry::size_divider::most; ++offset)
      ASSERT_EQ(by.quotient(offset), offset / size) << offset << " / " << size;
  }
}

struct classes_in_a_lane {
  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const auto n = static_cast<std::uint32_t>(lane % four::largest) + 1;
    const std::uint32_t c = four::class_of(n);
    const std::uint32_t size = four::size_of(c);
    const auto offset = static_cast<std::uint32_t>(lane * 1009 % (quarry::size_divider::most + 1));
    return size >= n && (c == 0 || four::size_of(c - 1) < n) &&
           four::divider_of(c).quotient(offset) == offset / size;
  }
};

TEST(SizeClassesInDeviceCode, GiveTheSameResults) {
  EXPECT_EQ(quarry::testing::lanes_that_fail({64, 128}, classes_in_a_lane{}), 0u);
}

}  // namespace
}  // namespace size_classes_test

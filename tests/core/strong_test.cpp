// SPDX-License-Identifier: Apache-2.0
#include "support/on_backend.hpp"

#include <quarry/core/strong.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace strong_test {
namespace {

using quarry::strong;
using quarry::strong_kind;

using row = strong<struct row_tag, std::uint32_t>;
using column = strong<struct column_tag, std::uint32_t>;
using weight = strong<struct weight_tag, std::uint64_t, strong_kind::quantity>;

template <class A, class B>
concept comparable = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept less_comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept multipliable = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept divisible = requires(A a, B b) {
  a / b;
};

// A strong type has no overhead.
static_assert(sizeof(row) == 4 && sizeof(weight) == 8);
static_assert(std::is_trivially_copyable_v<row> && std::is_standard_layout_v<row>);

// Different strong types do not convert to each other.
static_assert(comparable<row, row> && !comparable<row, column> && !comparable<row, std::uint32_t>);
static_assert(less_comparable<row, row> && !less_comparable<row, column>);
static_assert(!std::convertible_to<std::uint32_t, row> &&
              std::constructible_from<row, std::uint32_t>);
static_assert(!std::convertible_to<row, std::uint32_t> && !std::constructible_from<row, column>);

// An ordinal plus an integer is an ordinal; two ordinals have a difference and no sum.
static_assert(addable<row, std::uint32_t> && subtractable<row, row>);
static_assert(!addable<row, row> && !multipliable<row, std::uint32_t> && !divisible<row, row>);
static_assert(!addable<row, column> && !subtractable<row, column>);
static_assert(std::same_as<decltype(row{5} - row{2}), std::uint32_t>);
static_assert(std::same_as<decltype(row{5} - 2), row>);

// Quantities of one type have a sum, and an integer scales them.
static_assert(addable<weight, weight> && !addable<weight, std::uint64_t>);
static_assert(multipliable<weight, std::uint64_t> && multipliable<std::uint64_t, weight>);
static_assert(!multipliable<weight, weight>);
static_assert(std::same_as<decltype(weight{6} / weight{2}), std::uint64_t>);
static_assert(std::same_as<decltype(weight{6} / 2), weight>);

TEST(Strong, IsZeroByDefault) { EXPECT_EQ(row{}.value(), 0u); }

TEST(Strong, ComparesByValue) {
  EXPECT_TRUE(row{1} == row{1} && row{1} != row{2});
  EXPECT_TRUE(row{1} < row{2} && row{2} > row{1} && row{2} <= row{2} && row{2} >= row{2});
  EXPECT_FALSE(row{2} < row{2} || row{1} > row{1} || row{2} <= row{1} || row{1} >= row{2});
}

TEST(Strong, AddsIntegersToOrdinals) {
  row r{7};
  EXPECT_EQ((++r).value(), 8u);
  EXPECT_EQ((--r).value(), 7u);
  EXPECT_EQ((r + 3).value(), 10u);
  EXPECT_EQ((r - 3).value(), 4u);
  EXPECT_EQ(row{10} - row{4}, 6u);
}

TEST(Strong, AddsAndScalesQuantities) {
  weight w{6};
  w += weight{4};
  EXPECT_EQ(w, weight{10});
  w -= weight{3};
  EXPECT_EQ(w, weight{7});
  EXPECT_EQ(w * 3, weight{21});
  EXPECT_EQ(3 * w, weight{21});
  EXPECT_EQ(w / 2, weight{3});
  EXPECT_EQ(w / weight{2}, 3u);
  EXPECT_EQ(w % weight{4}, weight{3});
}

struct arithmetic_of_a_lane {
  QUARRY_DEVICE bool operator()(std::uint64_t lane) const {
    const row r(static_cast<std::uint32_t>(lane));
    const weight w(lane);
    return (r + 2) - r == 2 && r < r + 1 && w + w == 2 * w && (w * 4) / 4 == w;
  }
};

TEST(Strong, WorksInDeviceCode) {
  EXPECT_EQ(quarry::testing::lanes_that_fail({2, 64}, arithmetic_of_a_lane{}), 0u);
}

}  // namespace
}  // namespace strong_test

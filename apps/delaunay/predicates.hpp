// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Exact geometric predicates on an integer grid: orientation and in-circle test.
///
/// Coordinates are integers 0 ... 2^bits, so both predicates are signs of integer determinants, and
/// nothing is rounded. With differences of at most 2^bits in magnitude:
///
///   orient     |product| <= 2^(2 bits);  |difference of two products| <= 2^(2 bits + 1)
///   in_circle  lifts (x x + y y) and minors (two products) are at most 2^(2 bits + 1); a lift
///              times a minor is at most 2^(4 bits + 2); the sum of three is less than
///              2^(4 bits + 4)
///
/// For bits <= 30, orient fits 64-bit and in_circle 128-bit integers.

#include <compare>
#include <cstdint>

namespace quarry::apps {

inline constexpr unsigned max_grid_bits = 30;

struct grid_point {
  std::int32_t x = 0;
  std::int32_t y = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the 0 in the implicit operator<
  friend auto operator<=>(const grid_point&, const grid_point&) = default;
};

__extension__ using int128 = __int128;
static_assert(max_grid_bits < 31, "a coordinate of 2^bits fits 32 bits with its sign");
static_assert(2 * max_grid_bits + 1 < 63, "orient, lifts and minors fit 64 bits with their sign");
static_assert(4 * max_grid_bits + 4 < 127, "in_circle fits 128 bits with its sign");

/// Returns twice the signed area of a, b, c: positive if they turn left, zero if they are
/// collinear.
constexpr std::int64_t orient(grid_point a, grid_point b, grid_point c) {
  const std::int64_t bx = std::int64_t{b.x} - a.x, by = std::int64_t{b.y} - a.y;
  const std::int64_t cx = std::int64_t{c.x} - a.x, cy = std::int64_t{c.y} - a.y;
  return bx * cy - by * cx;
}

/// Returns 1 if p lies inside the circle through a, b, c; 0 if on it; -1 if outside.
/// Requires: a, b, c turn left.
constexpr int in_circle(grid_point a, grid_point b, grid_point c, grid_point p) {
  const std::int64_t ax = std::int64_t{a.x} - p.x, ay = std::int64_t{a.y} - p.y;
  const std::int64_t bx = std::int64_t{b.x} - p.x, by = std::int64_t{b.y} - p.y;
  const std::int64_t cx = std::int64_t{c.x} - p.x, cy = std::int64_t{c.y} - p.y;
  const int128 determinant = int128{ax * ax + ay * ay} * (bx * cy - by * cx) +
                             int128{bx * bx + by * by} * (cx * ay - cy * ax) +
                             int128{cx * cx + cy * cy} * (ax * by - ay * bx);
  return (determinant > 0) - (determinant < 0);
}

struct plane_point {
  double x = 0;
  double y = 0;
};
/// Returns the circumcentre of a, b, c, rounded. Requires: a, b, c are not collinear.
constexpr plane_point circumcentre(grid_point a, grid_point b, grid_point c) {
  const double bx = double(b.x) - a.x, by = double(b.y) - a.y;
  const double cx = double(c.x) - a.x, cy = double(c.y) - a.y;
  const double b2 = bx * bx + by * by, c2 = cx * cx + cy * cy;
  const double twice = 2 * static_cast<double>(orient(a, b, c));
  return {a.x + (cy * b2 - by * c2) / twice, a.y + (bx * c2 - cx * b2) / twice};
}

}  // namespace quarry::apps

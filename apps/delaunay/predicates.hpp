// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Exact geometry on a grid: which side of a line, inside or outside a circle.
///
/// Points have whole coordinates 0 ... 2^bits, so both questions are determinants of whole numbers
/// and nothing is rounded. With differences of at most 2^bits in magnitude:
///
///   orient     a product is at most 2^(2 bits), the difference of two 2^(2 bits + 1)
///   in_circle  lifts (x x + y y) and minors (two products) are at most 2^(2 bits + 1), a lift
///              times a minor 2^(4 bits + 2), the sum of three less than 2^(4 bits + 4)
///
/// The first fits 64 bits and the second 128 for grids of up to 2^30.

#include <compare>
#include <cstdint>

namespace quarry::apps {

inline constexpr unsigned most_grid_bits = 30;

struct grid_point {
  std::int32_t x = 0;
  std::int32_t y = 0;
  friend auto operator<=>(const grid_point&, const grid_point&) = default;
};

__extension__ using int128 = __int128;
static_assert(most_grid_bits < 31, "a coordinate of 2^bits fits 32 bits with its sign");
static_assert(2 * most_grid_bits + 1 < 63, "orient, lifts and minors fit 64 bits with their sign");
static_assert(4 * most_grid_bits + 4 < 127, "in_circle fits 128 bits with its sign");

/// Twice the area of a, b, c: positive when they turn left, zero when they lie on a line.
constexpr std::int64_t orient(grid_point a, grid_point b, grid_point c) {
  const std::int64_t bx = std::int64_t{b.x} - a.x, by = std::int64_t{b.y} - a.y;
  const std::int64_t cx = std::int64_t{c.x} - a.x, cy = std::int64_t{c.y} - a.y;
  return bx * cy - by * cx;
}

/// 1: p lies inside the circle through a, b, c, which turn left; 0: on it; -1: outside.
constexpr int in_circle(grid_point a, grid_point b, grid_point c, grid_point p) {
  const std::int64_t ax = std::int64_t{a.x} - p.x, ay = std::int64_t{a.y} - p.y;
  const std::int64_t bx = std::int64_t{b.x} - p.x, by = std::int64_t{b.y} - p.y;
  const std::int64_t cx = std::int64_t{c.x} - p.x, cy = std::int64_t{c.y} - p.y;
  const int128 determinant = int128{ax * ax + ay * ay} * (bx * cy - by * cx) +
                             int128{bx * bx + by * by} * (cx * ay - cy * ax) +
                             int128{cx * cx + cy * cy} * (ax * by - ay * bx);
  return (determinant > 0) - (determinant < 0);
}

/// The middle of the circle through a, b, c; rounded. Requires: they do not lie on a line.
struct plane_point {
  double x = 0;
  double y = 0;
};
constexpr plane_point circle_middle(grid_point a, grid_point b, grid_point c) {
  const double bx = double(b.x) - a.x, by = double(b.y) - a.y;
  const double cx = double(c.x) - a.x, cy = double(c.y) - a.y;
  const double b2 = bx * bx + by * by, c2 = cx * cx + cy * cy;
  const double twice = 2 * static_cast<double>(orient(a, b, c));
  return {a.x + (cy * b2 - by * c2) / twice, a.y + (bx * c2 - cx * b2) / twice};
}

}  // namespace quarry::apps

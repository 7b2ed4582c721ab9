// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Input points of the triangulation, and the order in which they are inserted.

#include "apps/delaunay/predicates.hpp"
#include "apps/delaunay/quadrants.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace quarry::apps {

/// Returns uniformly distributed points inside the square of side 2^bits. The result depends on the
/// arguments only.
inline std::vector<grid_point> random_points(std::size_t count, unsigned bits, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint32_t inside = (1u << bits) - 1;
  std::vector<grid_point> points(count);
  for (grid_point& p : points) {
    const std::uint64_t draw = random();
    p.x = static_cast<std::int32_t>(1 + (draw & 0xffffffff) % inside);
    p.y = static_cast<std::int32_t>(1 + (draw >> 32) % inside);
  }
  return points;
}

/// Returns equidistant points on the border of the square, `each` per side, corners included.
/// Without them the triangles along a side would be as long as the side. Requires: `each` is a
/// power of two.
inline std::vector<grid_point> border_points(unsigned each, unsigned bits) {
  const std::int32_t side = std::int32_t{1} << bits, step = side / static_cast<std::int32_t>(each);
  std::vector<grid_point> points;
  for (std::int32_t at = 0; at < side; at += step)
    points.insert(points.end(), {{at, 0}, {side, at}, {side - at, side}, {0, side - at}});
  return points;
}

/// Sorts the points into a biased randomized insertion order (Amenta, Choi, Rote 2003): rounds of
/// doubling length, each a random sample in Morton order. Walks are short, and the mesh does not
/// grow from one side only.
inline void order_for_insertion(std::vector<grid_point>& points) {
  std::shuffle(points.begin(), points.end(), std::mt19937_64(points.size()));
  const auto key = [](grid_point p) {
    return interleave_bits(static_cast<std::uint32_t>(p.x), static_cast<std::uint32_t>(p.y));
  };
  const auto at = [&](std::size_t i) { return points.begin() + static_cast<std::ptrdiff_t>(i); };
  for (std::size_t end = points.size(); end > 1;) {
    const std::size_t begin = end > 64 ? end / 2 : 0;
    std::sort(at(begin), at(end), [&](grid_point a, grid_point b) { return key(a) < key(b); });
    end = begin;
  }
}

}  // namespace quarry::apps

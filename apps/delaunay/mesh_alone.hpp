// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A mesh in one place: the store of the sequential program, and points to build from.

#include "apps/delaunay/mesh.hpp"
#include "apps/delaunay/quadrants.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace quarry::apps {

/// Triangles in blocks, used again after drop. There is one home, and it is here.
class plain_store {
 public:
  bool here(home_number) const { return true; }
  home_number home_of(grid_point, grid_point, grid_point) const { return 0; }
  triangle* make(home_number) {
    triangle* t = spare_;
    if (t != nullptr)
      spare_ = t->next;
    else
      t = &blocks_.emplace_back();
    *t = triangle{};
    return t;
  }
  void drop(triangle* t) {
    t->doomed = true;
    t->next = spare_;
    spare_ = t;
  }
  triangle* near(grid_point) const {
    for (const triangle& t : blocks_)
      if (!t.doomed) return const_cast<triangle*>(&t);
    return nullptr;
  }
  std::vector<const triangle*> all() const {
    std::vector<const triangle*> living;
    for (const triangle& t : blocks_)
      if (!t.doomed) living.push_back(&t);
    return living;
  }

 private:
  std::deque<triangle> blocks_;
  triangle* spare_ = nullptr;
};

/// The same points for the same seed, in no order, inside the square of side 2^bits.
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

/// Points on the border of the square, its corners among them, so many on each side, all as far
/// apart. Without them the triangles along a side would be as long as the side. Requires: a power
/// of two.
inline std::vector<grid_point> border_points(unsigned each, unsigned bits) {
  const std::int32_t side = std::int32_t{1} << bits, step = side / static_cast<std::int32_t>(each);
  std::vector<grid_point> points;
  for (std::int32_t at = 0; at < side; at += step)
    points.insert(points.end(), {{at, 0}, {side, at}, {side - at, side}, {0, side - at}});
  return points;
}

/// Rounds of doubling length, each a random part of the points in the order of places: walks are
/// short, and the mesh never grows from one side only (Amenta, Choi, Rote 2003).
inline void order_for_adding(std::vector<grid_point>& points) {
  std::shuffle(points.begin(), points.end(), std::mt19937_64(points.size()));
  const auto key = [](grid_point p) {
    return interleave(static_cast<std::uint32_t>(p.x), static_cast<std::uint32_t>(p.y));
  };
  const auto at = [&](std::size_t i) { return points.begin() + static_cast<std::ptrdiff_t>(i); };
  for (std::size_t end = points.size(); end > 1;) {
    const std::size_t begin = end > 64 ? end / 2 : 0;
    std::sort(at(begin), at(end), [&](grid_point a, grid_point b) { return key(a) < key(b); });
    end = begin;
  }
}

}  // namespace quarry::apps

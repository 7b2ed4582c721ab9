// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Validates a Delaunay triangulation of a square and the points in it.
///
/// If all triangles turn left, match edge by edge, and their areas sum to the area of the square,
/// they cover the square exactly once. If for every edge the opposite corner of the neighbour lies
/// outside the circumcircle, then no point lies inside any circumcircle (Delaunay 1934). Cocircular
/// points allow several triangulations; all of them pass.

#include "apps/delaunay/mesh.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

namespace quarry::apps {

using corners = std::array<grid_point, 3>;

/// Returns a canonical form of a mesh: sorted triangles, each with its smallest corner first. Equal
/// meshes have equal canonical forms.
inline std::vector<corners> canonical(std::span<const triangle* const> triangles) {
  std::vector<corners> all;
  all.reserve(triangles.size());
  for (const triangle* t : triangles) {
    corners c{t->corner[0], t->corner[1], t->corner[2]};
    std::rotate(c.begin(), std::min_element(c.begin(), c.end()), c.end());
    all.push_back(c);
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Returns a description of the first fault of a triangle and its edges, or an empty string.
inline std::string check_triangle(const triangle& t, std::int32_t side) {
  if (orient(t.corner[0], t.corner[1], t.corner[2]) <= 0) return "a triangle does not turn left";
  if (t.in_cavity) return "a triangle is still marked as part of a cavity";
  for (unsigned i = 0; i < 3; ++i) {
    const grid_point a = t.corner[i], b = t.corner[after(i)];
    const triangle* n = t.neighbour[i];
    if (n == nullptr) {
      const bool on_border =
          (a.x == b.x && (a.x == 0 || a.x == side)) || (a.y == b.y && (a.y == 0 || a.y == side));
      if (!on_border) return "an edge inside the square has no neighbour";
      continue;
    }
    const unsigned back = edge_from(*n, b);
    if (n->neighbour[back] != &t || n->corner[back] != b || n->corner[after(back)] != a)
      return "two neighbours do not share an edge";
    if (n->home != t.neighbour_home[i]) return "a neighbour is not in its recorded home";
    if (in_circle(t.corner[0], t.corner[1], t.corner[2], n->corner[before(back)]) > 0)
      return "a circumcircle contains the opposite corner of a neighbour";
  }
  return "";
}

/// Returns the first fault of a triangulation of the corners of the square and `points`, or an
/// empty string.
inline std::string check_mesh(std::span<const triangle* const> triangles,
                              std::span<const grid_point> points, std::int32_t side) {
  std::uint64_t area = 0;
  std::vector<grid_point> seen;
  for (const triangle* t : triangles) {
    if (std::string fault = check_triangle(*t, side); !fault.empty()) return fault;
    area += static_cast<std::uint64_t>(orient(t->corner[0], t->corner[1], t->corner[2]));
    seen.insert(seen.end(), t->corner, t->corner + 3);
  }
  if (area != 2 * static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side))
    return "the triangles do not cover the square exactly once";
  std::vector<grid_point> wanted(points.begin(), points.end());
  wanted.insert(wanted.end(), {{0, 0}, {side, 0}, {side, side}, {0, side}});
  for (std::vector<grid_point>* all : {&seen, &wanted}) {
    std::sort(all->begin(), all->end());
    all->erase(std::unique(all->begin(), all->end()), all->end());
  }
  if (seen != wanted) return "the set of corners differs from the set of points";
  // Euler: points - edges + triangles = 1, and 3 triangles + border edges = 2 edges.
  const auto on_border =
      static_cast<std::size_t>(std::count_if(wanted.begin(), wanted.end(), [&](grid_point p) {
        return p.x == 0 || p.y == 0 || p.x == side || p.y == side;
      }));
  if (triangles.size() != 2 * wanted.size() - 2 - on_border) return "Euler's formula does not hold";
  return "";
}

/// Tests every circumcircle against every point. Complexity: O(triangles * points).
inline std::string check_all_circles(std::span<const triangle* const> triangles,
                                     std::span<const grid_point> points) {
  for (const triangle* t : triangles)
    for (const grid_point p : points)
      if (in_circle(t->corner[0], t->corner[1], t->corner[2], p) > 0)
        return "a circumcircle contains a point";
  return "";
}

}  // namespace quarry::apps

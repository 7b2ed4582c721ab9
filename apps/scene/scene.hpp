// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scene: a triangle mesh, and its validation.

#include <quarry/core/error.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::apps {

/// A scene file is malformed, or a mesh is unusable.
class scene_error : public error {
 public:
  using error::error;
};

struct scene_point {
  float x = 0, y = 0, z = 0;
  float operator[](unsigned axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};

/// A triangle, as three indices into scene::points.
struct scene_triangle {
  std::uint32_t corner[3] = {};
};

struct scene {
  /// The largest mesh for which the costs of a kd-tree fit 64 bits (kd_tree/rules.hpp).
  static constexpr std::uint32_t max_triangles = 1u << 22;
  /// Areas of boxes, times the number of triangles, are finite floats up to this coordinate.
  static constexpr float max_coordinate = 1e15f;

  std::string name;
  std::vector<scene_point> points;
  std::vector<scene_triangle> triangles;

  std::uint32_t size() const { return static_cast<std::uint32_t>(triangles.size()); }
  const scene_point& corner(std::uint32_t triangle, unsigned i) const {
    return points[triangles[triangle].corner[i]];
  }

  /// Triangulates a polygon as a fan around its first corner.
  void add_polygon(const std::vector<std::uint32_t>& polygon) {
    for (std::size_t i = 2; i < polygon.size(); ++i)
      triangles.push_back({{polygon[0], polygon[i - 1], polygon[i]}});
  }
};

/// Throws scene_error if the mesh is empty or too large, a coordinate is not finite or so large
/// that areas overflow, or an index is out of range.
inline void check_scene(const scene& s) {
  if (s.triangles.empty()) throw scene_error(s.name + ": no triangles");
  if (s.triangles.size() > scene::max_triangles)
    throw scene_error(s.name + ": " + std::to_string(s.triangles.size()) +
                      " triangles; the maximum is " + std::to_string(scene::max_triangles));
  for (std::size_t i = 0; i < s.points.size(); ++i)
    for (unsigned axis = 0; axis < 3; ++axis)
      if (!(std::abs(s.points[i][axis]) <= scene::max_coordinate))
        throw scene_error(s.name + ": point " + std::to_string(i + 1) +
                          " has a coordinate that is not between -1e15 and 1e15");
  for (std::size_t i = 0; i < s.triangles.size(); ++i)
    for (const std::uint32_t corner : s.triangles[i].corner)
      if (corner >= s.points.size())
        throw scene_error(s.name + ": triangle " + std::to_string(i + 1) + " references point " +
                          std::to_string(std::uint64_t{corner} + 1) + " of " +
                          std::to_string(s.points.size()));
}

}  // namespace quarry::apps

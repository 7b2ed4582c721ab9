// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Generated scenes. A scene depends on the number of triangles only, apart from differences in the
/// last digits between math libraries.
///
///   tessellated   a torus with waves, in small triangles of similar size, like a scanned mesh
///   clustered     small triangles in distant clusters of very different size and density
///   thin          long, thin triangles in all directions, whose boxes straddle many planes
///
/// The number of boxes that overlap at a point does not depend on the number of triangles.

#include "apps/scene/scene.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::apps {

class scene_random {
 public:
  explicit scene_random(std::uint64_t seed) : bits_(seed) {}

  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double between(double least, double most) { return least + (most - least) * uniform(); }
  /// Returns a value in [-1, 1] with a bell-shaped distribution around 0.
  double near_zero() { return (uniform() + uniform() + uniform()) * (2.0 / 3) - 1; }

 private:
  std::mt19937_64 bits_;
};

inline scene_point to_scene(double x, double y, double z) {
  return {static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)};
}

inline scene make_tessellated(std::uint32_t triangles) {
  scene s;
  s.name = "tessellated";
  const std::uint32_t squares = (triangles + 1) / 2;
  const auto columns = std::max(
      3u, static_cast<std::uint32_t>(std::ceil(std::sqrt(2.0 * static_cast<double>(squares)))));
  const std::uint32_t rows = std::max(3u, (squares + columns - 1) / columns);
  const auto number = [&](std::uint32_t row, std::uint32_t column) {
    return row % rows * columns + column % columns;
  };
  s.points.reserve(std::size_t{rows} * columns);
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::uint32_t column = 0; column < columns; ++column) {
      const double around = 2 * std::numbers::pi * column / columns;
      const double across = 2 * std::numbers::pi * row / rows;
      const double r = 0.35 + 0.05 * std::sin(7 * around) * std::cos(3 * across);
      const double distance = 1 + r * std::cos(across);
      s.points.push_back(to_scene(distance * std::cos(around), distance * std::sin(around),
                                  r * std::sin(across) + 0.1 * std::sin(2 * around)));
    }
  s.triangles.reserve(triangles);
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::uint32_t column = 0; column < columns; ++column) {
      const std::uint32_t a = number(row, column), b = number(row, column + 1);
      const std::uint32_t c = number(row + 1, column + 1), d = number(row + 1, column);
      if (s.size() < triangles) s.triangles.push_back({{a, b, c}});
      if (s.size() < triangles) s.triangles.push_back({{a, c, d}});
    }
  return s;
}

inline scene make_clustered(std::uint32_t triangles) {
  constexpr std::uint32_t per_cluster = 500;
  scene s;
  s.name = "clustered";
  scene_random random(2);
  double x = 0, y = 0, z = 0, radius = 0;
  for (std::uint32_t i = 0; i < triangles; ++i) {
    if (i % per_cluster == 0) {
      x = random.uniform(), y = random.uniform(), z = random.uniform();
      radius = std::pow(10, random.between(-2.5, -1)) / std::cbrt(1 + triangles / per_cluster);
    }
    const double cx = x + radius * random.near_zero(), cy = y + radius * random.near_zero(),
                 cz = z + radius * random.near_zero();
    for (unsigned corner = 0; corner < 3; ++corner)
      s.points.push_back(to_scene(cx + 0.1 * radius * random.near_zero(),
                                  cy + 0.1 * radius * random.near_zero(),
                                  cz + 0.1 * radius * random.near_zero()));
    s.triangles.push_back({{3 * i, 3 * i + 1, 3 * i + 2}});
  }
  return s;
}

inline scene make_thin(std::uint32_t triangles) {
  scene s;
  s.name = "thin";
  scene_random random(3);
  const double length = 2 / std::cbrt(static_cast<double>(triangles));
  for (std::uint32_t i = 0; i < triangles; ++i) {
    const double x = random.uniform(), y = random.uniform(), z = random.uniform();
    const double up = random.between(-1, 1), turn = 2 * std::numbers::pi * random.uniform();
    const double out = std::sqrt(1 - up * up), reach = length * random.between(0.2, 2);
    const double dx = reach * out * std::cos(turn), dy = reach * out * std::sin(turn),
                 dz = reach * up;
    const double width = length / 100;
    s.points.push_back(to_scene(x, y, z));
    s.points.push_back(to_scene(x + width * random.near_zero(), y + width * random.near_zero(),
                                z + width * random.near_zero()));
    s.points.push_back(to_scene(x + dx, y + dy, z + dz));
    s.triangles.push_back({{3 * i, 3 * i + 1, 3 * i + 2}});
  }
  return s;
}

struct generated_scene {
  std::string_view name;
  scene (*make)(std::uint32_t triangles);
};
inline constexpr generated_scene generated_scenes[] = {
    {"tessellated", make_tessellated}, {"clustered", make_clustered}, {"thin", make_thin}};

}  // namespace quarry::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_input: the bounding boxes of a scene's triangles on the integer grid, and the mapping from
/// grid coordinates back to the scene.
///
/// Boxes are rounded outwards, so that every triangle lies in its box. The step is equal along all
/// axes, so that ratios of surfaces are preserved.

#include "apps/kd_tree/rules.hpp"
#include "apps/scene/scene.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace quarry::apps {

struct kd_input {
  double origin[3] = {};
  double step = 1;
  kd_box root;  // bounding box of all triangles
  std::vector<kd_box> boxes;

  double position(unsigned axis, std::uint32_t x) const { return origin[axis] + step * x; }
};

inline kd_input make_kd_input(const scene& s) {
  check_scene(s);
  kd_input in;
  double longest = 0;
  for (unsigned axis = 0; axis < 3; ++axis) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (std::uint32_t t = 0; t < s.size(); ++t)
      for (unsigned i = 0; i < 3; ++i) {
        const auto x = static_cast<double>(s.corner(t, i)[axis]);
        least = std::min(least, x);
        most = std::max(most, x);
      }
    in.origin[axis] = least;
    longest = std::max(longest, most - least);
  }
  constexpr double steps = 1u << kd_grid_bits;
  if (longest > 0) in.step = longest / steps;
  in.boxes.resize(s.size());
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::uint32_t end = 0;
    for (std::uint32_t t = 0; t < s.size(); ++t) {
      double low = steps, high = 0;
      for (unsigned i = 0; i < 3; ++i) {
        const double x = (static_cast<double>(s.corner(t, i)[axis]) - in.origin[axis]) / in.step;
        low = std::min(low, std::floor(x));
        high = std::max(high, std::ceil(x));
      }
      in.boxes[t].set_lower(axis, static_cast<std::uint32_t>(std::clamp(low, 0.0, steps)));
      in.boxes[t].set_upper(axis, static_cast<std::uint32_t>(std::clamp(high, 0.0, steps)));
      end = std::max(end, in.boxes[t].upper(axis));
    }
    in.root.set_upper(axis, end);
  }
  return in;
}

}  // namespace quarry::apps

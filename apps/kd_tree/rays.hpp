// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Validates a kd-tree by ray casting: the first hit found by traversing the tree must equal the
/// first hit among all triangles.
///
/// The traversal enlarges every node by a slack that exceeds the rounding error many times;
/// visiting an extra node is harmless. Both searches use the same intersection test, so the
/// distances are equal bit for bit.

#include "apps/kd_tree/grid.hpp"
#include "apps/kd_tree/tree.hpp"
#include "apps/scene/generated.hpp"
#include "apps/scene/scene.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace quarry::apps {

struct kd_ray {
  double origin[3];
  double direction[3];
};

inline constexpr double kd_miss = std::numeric_limits<double>::infinity();

/// Returns the ray parameter of the intersection with a triangle (Möller, Trumbore 1997), or
/// kd_miss.
inline double intersection_distance(const kd_ray& ray, const scene& s, std::uint32_t triangle) {
  double a[3] = {}, b[3] = {}, o[3] = {};
  for (unsigned i = 0; i < 3; ++i) {
    const auto base = static_cast<double>(s.corner(triangle, 0)[i]);
    a[i] = static_cast<double>(s.corner(triangle, 1)[i]) - base;
    b[i] = static_cast<double>(s.corner(triangle, 2)[i]) - base;
    o[i] = ray.origin[i] - base;
  }
  const auto cross = [](const double* u, const double* v, double* w) {
    for (unsigned i = 0; i < 3; ++i)
      w[i] = u[(i + 1) % 3] * v[(i + 2) % 3] - u[(i + 2) % 3] * v[(i + 1) % 3];
  };
  const auto dot = [](const double* u, const double* v) {
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
  };
  double p[3] = {}, q[3] = {};
  cross(ray.direction, b, p);
  cross(o, a, q);
  const double volume = dot(a, p);
  if (volume == 0) return kd_miss;
  const double u = dot(o, p) / volume, v = dot(ray.direction, q) / volume, t = dot(b, q) / volume;
  if (u >= 0 && v >= 0 && u + v <= 1 && t >= 0) return t;
  return kd_miss;
}

class kd_tracer {
 public:
  kd_tracer(const scene& s, const kd_input& input, const kd_tree& tree)
      : scene_(&s), input_(&input), tree_(&tree) {}

  double first_hit(const kd_ray& ray) const {
    double best = kd_miss;
    visit(ray, 0, 0, kd_miss, best);
    return best;
  }
  double first_hit_brute_force(const kd_ray& ray) const {
    double best = kd_miss;
    for (std::uint32_t t = 0; t < scene_->size(); ++t)
      best = std::min(best, intersection_distance(ray, *scene_, t));
    return best;
  }

  /// Returns a ray from outside the scene towards the centroid of a random triangle.
  kd_ray random_ray(scene_random& random) const {
    double size = 0, middle[3], away[3] = {};
    for (unsigned i = 0; i < 3; ++i) {
      const double side = input_->step * input_->root.side(i);
      middle[i] = input_->origin[i] + side / 2;
      size = std::max(size, side);
    }
    while (length(away) < 0.1) std::generate(away, away + 3, [&] { return random.between(-1, 1); });
    const double reach = 2 * size / length(away);
    const auto target = static_cast<std::uint32_t>(random.uniform() * scene_->size());
    kd_ray ray{};
    for (unsigned i = 0; i < 3; ++i) {
      const double at = (static_cast<double>(scene_->corner(target, 0)[i]) +
                         static_cast<double>(scene_->corner(target, 1)[i]) +
                         static_cast<double>(scene_->corner(target, 2)[i])) /
                        3;
      ray.origin[i] = middle[i] + reach * away[i];
      ray.direction[i] = at - ray.origin[i];
    }
    return ray;
  }

 private:
  static double length(const double* v) { return std::hypot(v[0], v[1], v[2]); }

  void visit(const kd_ray& ray, std::uint32_t id, double begin, double end, double& best) const {
    const kd_tree_node& n = tree_->nodes[id];
    if (n.leaf()) {
      for (std::uint32_t i = n.first; i < n.first + n.count; ++i)
        best = std::min(best, intersection_distance(ray, *scene_, tree_->references[i]));
      return;
    }
    const double slack = input_->step * 1e-3;
    const double distance = input_->position(n.axis, n.plane) - ray.origin[n.axis];
    const double speed = ray.direction[n.axis];
    if (std::abs(speed) * 1e12 < slack) {  // parallel to the plane
      if (distance > -slack) visit(ray, id + 1, begin, end, best);
      if (distance < slack) visit(ray, n.right, begin, end, best);
      return;
    }
    const double cross = distance / speed, around = slack / std::abs(speed);
    const std::uint32_t near = speed > 0 ? id + 1 : n.right, far = speed > 0 ? n.right : id + 1;
    if (begin <= cross + around) visit(ray, near, begin, std::min(end, cross + around), best);
    if (end >= cross - around && best >= cross - around)
      visit(ray, far, std::max(begin, cross - around), end, best);
  }

  const scene* scene_;
  const kd_input* input_;
  const kd_tree* tree_;
};

struct kd_ray_check {
  std::uint64_t hits = 0;
  std::string problem;  // empty: all rays found the same hit
};

inline kd_ray_check check_rays(const scene& s, const kd_input& input, const kd_tree& tree,
                               std::uint64_t rays, std::uint64_t seed) {
  const kd_tracer tracer(s, input, tree);
  scene_random random(seed);
  kd_ray_check result;
  for (std::uint64_t i = 0; i < rays; ++i) {
    const kd_ray ray = tracer.random_ray(random);
    const double through = tracer.first_hit(ray), all = tracer.first_hit_brute_force(ray);
    if (all != kd_miss) ++result.hits;
    if (through == all) continue;
    result.problem = "ray " + std::to_string(i) + " of seed " + std::to_string(seed) +
                     " hits at parameter " + std::to_string(through) + " in the tree, and at " +
                     std::to_string(all) + " by brute force";
    break;
  }
  return result;
}

}  // namespace quarry::apps

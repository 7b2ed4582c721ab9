// SPDX-License-Identifier: Apache-2.0
#pragma once
/// oct_tree: the Barnes-Hut tree. A distant cell acts like one particle at its centre of mass
/// (Barnes, Hut 1986).
///
///   level 0            [ cell ]               the cells of a level, and the particles of its
///                    /    |     \             leaves, lie in the memory of that level, so that
///   level 1    [ cell ] [ cell ] [ leaf ]     the upper levels can be sent without the lower ones
///
/// Opening criterion: a body opens a cell of width w if its distance from the cell's centre of mass
/// is less than the opening radius w / theta + d, where d is the distance of the centre of mass
/// from the centre of the cube (Barnes 1994). For theta <= 1 every body opens the cells that
/// contain it. The cell stores its opening radius, so that a worker that receives the cell can
/// decide.
///
/// levels_needed(box) visits the cells that a body in the box may open. may_open() underestimates
/// the distance by more than the rounding error. Therefore no traversal for a body in the box opens
/// a cell whose children were not sent.

#include "apps/barnes_hut/bodies.hpp"

#include <new>

namespace quarry::apps {

inline constexpr unsigned max_levels = 40;  // bodies closer than 2^-40 of the box share a leaf

struct cube3 {
  vec3 middle;
  double half = 0;
  cube3 octant(unsigned i) const {
    const double h = half / 2;
    return {{middle.x + (i & 1 ? h : -h), middle.y + (i & 2 ? h : -h), middle.z + (i & 4 ? h : -h)},
            h};
  }
  unsigned octant_of(vec3 p) const {
    return (p.x >= middle.x ? 1u : 0u) | (p.y >= middle.y ? 2u : 0u) | (p.z >= middle.z ? 4u : 0u);
  }
};

inline cube3 cube_around(const box3& box) {
  const vec3 e = box.high - box.low;
  return {0.5 * (box.low + box.high), 0.5 * std::max({e.x, e.y, e.z})};
}

struct cell {
  particle sum;                // total mass and centre of mass of all bodies below
  double opening_radius2 = 0;  // square of the opening radius
  particle* bodies = nullptr;  // the bodies of a leaf; nullptr: an inner cell
  std::uint32_t count = 0;     // bodies below
  std::uint32_t level = 0;
  cell* child[8] = {};

  /// Adds bodies and their sum. close() completes the cell after the last call.
  void add(const particle& p, std::uint32_t bodies_added) {
    sum.mass += p.mass;
    sum.position += p.mass * p.position;
    count += bodies_added;
  }
  void close(const cube3& cube, double theta) {
    sum.position = (1 / sum.mass) * sum.position;
    const double reach = 2 * cube.half / theta + length(sum.position - cube.middle);
    opening_radius2 = reach * reach;
  }
};

/// Returns the square of the distance between a box and a point; 0 if the box contains the point.
inline double distance2(const box3& box, vec3 p) {
  const auto gap = [](double low, double high, double x) {
    return x < low ? low - x : x > high ? x - high : 0.0;
  };
  const double x = gap(box.low.x, box.high.x, p.x), y = gap(box.low.y, box.high.y, p.y),
               z = gap(box.low.z, box.high.z, p.z);
  return x * x + y * y + z * z;
}
inline bool opens(vec3 at, const cell& c) {
  const vec3 d = c.sum.position - at;
  return dot(d, d) < c.opening_radius2;
}
inline bool may_open(const box3& box, const cell& c) {
  constexpr double nearer = 1 - 0x1p-40;  // more than the rounding error of distance2
  return nearer * distance2(box, c.sum.position) < c.opening_radius2;
}

/// Builds a tree in memory from allocate(level, size), which returns void*.
template <class Allocate>
class tree_builder {
 public:
  tree_builder(double theta, unsigned leaf_size, Allocate allocate)
      : theta_(theta), leaf_size_(leaf_size), allocate_(allocate) {}

  /// Builds the tree of the particles, which it reorders. Its root has the given level and divides
  /// the cube. Requires: there are particles, and the cube contains them.
  cell* build(std::span<particle> some, const cube3& cube, unsigned level = 0);
  unsigned levels() const { return levels_; }
  std::size_t cells() const { return cells_; }

 private:
  double theta_;
  unsigned leaf_size_;
  Allocate allocate_;
  unsigned levels_ = 0;
  std::size_t cells_ = 0;
};

template <class Allocate>
cell* tree_builder<Allocate>::build(std::span<particle> some, const cube3& cube, unsigned level) {
  cell* c = new (allocate_(level, sizeof(cell))) cell;
  levels_ = std::max(levels_, level + 1);
  ++cells_;
  c->level = level;
  for (const particle& p : some) c->add(p, 1);
  c->close(cube, theta_);
  if (some.size() <= leaf_size_ || level + 1 == max_levels || cube.half == 0) {
    c->bodies = static_cast<particle*>(allocate_(level, some.size() * sizeof(particle)));
    std::copy(some.begin(), some.end(), c->bodies);
    return c;
  }
  particle* begin = some.data();
  particle* end = begin + some.size();
  for (unsigned i = 0; i < 8 && begin != end; ++i) {
    particle* next = std::partition(
        begin, end, [&](const particle& p) { return cube.octant_of(p.position) == i; });
    if (next != begin) c->child[i] = build({begin, next}, cube.octant(i), level + 1);
    begin = next;
  }
  return c;
}

/// Returns the number of tree levels that a traversal for a body in the box may visit.
inline unsigned levels_needed(const cell& c, const box3& box) {
  unsigned levels = c.level + 1;
  if (c.bodies == nullptr && may_open(box, c))
    for (const cell* below : c.child)
      if (below != nullptr) levels = std::max(levels, levels_needed(*below, box));
  return levels;
}

/// Returns the acceleration caused by all bodies below the cell. Adds the number of computed
/// interactions to `forces`.
inline vec3 tree_acceleration(const cell& c, vec3 at, double softening, std::uint64_t& forces) {
  if (!opens(at, c)) {
    ++forces;
    return acceleration_by(at, c.sum, softening);
  }
  vec3 sum;
  if (c.bodies != nullptr) {
    forces += c.count;
    for (std::uint32_t i = 0; i < c.count; ++i) sum += acceleration_by(at, c.bodies[i], softening);
  } else {
    for (const cell* below : c.child)
      if (below != nullptr) sum += tree_acceleration(*below, at, softening, forces);
  }
  return sum;
}

}  // namespace quarry::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// oct_tree: bodies in cubes in cubes; a far cube pulls like one body in its mass centre
/// (Barnes, Hut 1986).
///
///   level 0            [ cell ]               cells and the bodies of a leaf lie in the memory of
///                    /    |     \             their level, so that the upper levels, a coarse
///   level 1    [ cell ] [ cell ] [ leaf ]     picture of the whole, can be moved without the rest
///
/// Opening: a cell of width w whose mass centre lies d from the middle of its cube is opened by all
/// within reach = w / theta + d (Barnes 1994). For theta <= 1 no body accepts a cell that it lies
/// in. The reach is kept in the cell, so that who receives it needs no more to decide.
///
/// What a box needs: levels_needed goes through the cells that something in the box could open, and
/// takes the box for a little nearer than it is. So, however distances are rounded, no walk for a
/// body in the box opens a cell below which nothing was sent.

#include "apps/barnes_hut/bodies.hpp"

#include <new>

namespace quarry::apps {

inline constexpr unsigned most_levels = 40;  // bodies nearer than 2^-40 of the box share a leaf

struct cell {
  particle sum;                // of all bodies below: mass and mass centre
  double reach2 = 0;           // who is nearer than its root opens the cell
  particle* bodies = nullptr;  // of a leaf
  std::uint32_t count = 0;     // of bodies below
  std::uint32_t level = 0;
  cell* child[8] = {};
};

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

/// Squared; 0 inside.
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
  return dot(d, d) < c.reach2;
}
inline bool may_open(const box3& box, const cell& c) {
  constexpr double nearer = 1 - 0x1p-40;  // rounding changes some of the last of 53 bits
  return nearer * distance2(box, c.sum.position) < c.reach2;
}

/// Allocate: void* operator()(unsigned level, std::size_t size).
template <class Allocate>
class tree_builder {
 public:
  tree_builder(double theta, unsigned leaf_size, Allocate allocate)
      : theta_(theta), leaf_size_(leaf_size), allocate_(allocate) {}

  /// Reorders the particles. nullptr: there are none.
  cell* build(std::span<particle> all) {
    levels_ = 0, cells_ = 0;
    return all.empty() ? nullptr : build(all, cube_around(box_around(all)), 0);
  }
  unsigned levels() const { return levels_; }
  std::size_t cells() const { return cells_; }

 private:
  cell* build(std::span<particle> some, cube3 cube, unsigned level) {
    cell* c = new (allocate_(level, sizeof(cell))) cell;
    levels_ = std::max(levels_, level + 1);
    ++cells_;
    c->level = level;
    c->count = static_cast<std::uint32_t>(some.size());
    for (const particle& p : some) {
      c->sum.mass += p.mass;
      c->sum.position += p.mass * p.position;
    }
    c->sum.position = (1 / c->sum.mass) * c->sum.position;
    const double reach = 2 * cube.half / theta_ + length(c->sum.position - cube.middle);
    c->reach2 = reach * reach;
    if (some.size() <= leaf_size_ || level + 1 == most_levels || cube.half == 0) {
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

  double theta_;
  unsigned leaf_size_;
  Allocate allocate_;
  unsigned levels_ = 0;
  std::size_t cells_ = 0;
};

/// Of up to eight trees one, which everybody opens. The trees stay where they are.
inline cell graft(std::span<cell* const> trees) {
  cell top;
  top.reach2 = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < trees.size(); ++i) {
    top.child[i] = trees[i];
    top.count += trees[i]->count;
  }
  return top;
}

/// How many levels of the tree whoever is in the box could look at.
inline unsigned levels_needed(const cell& c, const box3& box) {
  unsigned levels = c.level + 1;
  if (c.bodies == nullptr && may_open(box, c))
    for (const cell* below : c.child)
      if (below != nullptr) levels = std::max(levels, levels_needed(*below, box));
  return levels;
}

/// The pull of all bodies under the cell; adds to `forces` how many were computed.
inline vec3 tree_pull(const cell& c, vec3 at, double softening, std::uint64_t& forces) {
  if (!opens(at, c)) {
    ++forces;
    return pull(at, c.sum, softening);
  }
  vec3 sum;
  if (c.bodies != nullptr) {
    forces += c.count;
    for (std::uint32_t i = 0; i < c.count; ++i) sum += pull(at, c.bodies[i], softening);
  } else {
    for (const cell* below : c.child)
      if (below != nullptr) sum += tree_pull(*below, at, softening, forces);
  }
  return sum;
}

}  // namespace quarry::apps

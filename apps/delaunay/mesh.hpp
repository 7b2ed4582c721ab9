// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mesh: a Delaunay triangulation of a square to which points are added one by one (Bowyer 1981,
/// Watson 1981), by walking from triangle to neighbouring triangle.
///
///        c                     the triangle that holds p, and all around it whose circle has p
///       / \      edge i goes   inside, form the cavity; its rim is seen from p all around, so the
///      2   1     from corner   triangles of p with each edge of the rim take its place
///     /     \    i to i + 1
///    a---0---b
///
/// A triangle lives in a *home*, a part of memory that may be here or not; the store says which
/// homes are here. A triangle knows the homes of its neighbours, so that none is touched that is
/// not here. A point is postponed, and nothing changes, when the walk to it, its cavity, a
/// neighbour of the cavity, or the home of a new triangle is not here.
///
/// Invariants: corners turn left; across[i] and t name each other, with the right homes; every edge
/// passes the circle test (mesh_check.hpp).
/// Progress: in a Delaunay triangulation a walk that always steps over an edge that separates it
/// from p can not come back to a triangle (Edelsbrunner 1990). No corner of a cavity lies inside
/// it, so its triangles form a tree, and going through that tree edge by edge to the left gives the
/// rim in order. When p lies on the border, the edge that it lies on is no part of the rim: the rim
/// is open there.

#include "apps/delaunay/predicates.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quarry::apps {

using home_number = std::uint16_t;

struct triangle {
  grid_point corner[3];
  home_number across_home[3] = {};
  home_number home = 0;
  triangle* across[3] = {};  // nullptr: the border of the square
  triangle* next = nullptr;  // in the same home
  triangle* previous = nullptr;
  bool doomed = false;  // part of the cavity of the point that is being added
};

constexpr unsigned after(unsigned edge) { return edge == 2 ? 0 : edge + 1; }
constexpr unsigned before(unsigned edge) { return edge == 0 ? 2 : edge - 1; }

/// The edge of t that starts at p. Requires: there is one.
inline unsigned edge_from(const triangle& t, grid_point p) {
  return t.corner[0] == p ? 0 : t.corner[1] == p ? 1 : 2;
}

enum class placement : std::uint8_t { placed, duplicate, postponed };

/// Store:  bool here(home) const;  home_number home_of(a, b, c) const;
///         triangle* make(home);   void drop(triangle*);
///         triangle* near(grid_point) const;   a triangle that is here, nullptr: there is none
template <class Store>
class mesh {
 public:
  explicit mesh(Store& store) : store_(&store) {}

  /// The two triangles of an empty square with corners 0 and side. Requires: every home is here.
  void make_square(std::int32_t side);
  /// Requires: p lies in the square; it may lie on its border.
  placement add(grid_point p);
  /// To be called when triangles came or went in another way than by add.
  void forget_where() { last_ = nullptr; }

 private:
  struct edge {
    triangle* of;
    unsigned number;
  };

  triangle* locate(grid_point p, triangle* from) const;
  bool find_cavity(triangle* start, grid_point p);
  bool choose_homes(grid_point p);
  void fill_cavity(grid_point p);
  void spare_cavity();
  static void join(triangle* t, unsigned i, triangle* u);

  Store* store_;
  triangle* last_ = nullptr;
  std::vector<triangle*> cavity_;
  std::vector<edge> rim_;      // to the left around p, from the gap on if there is one
  bool closed_ = true;         // the rim goes all around
  std::vector<edge> pending_;  // edges of the cavity not yet looked across; the next at the back
  std::vector<home_number> homes_;
};

template <class Store>
void mesh<Store>::make_square(std::int32_t side) {
  const grid_point a{0, 0}, b{side, 0}, c{side, side}, d{0, side};
  const auto make = [&](grid_point p, grid_point q, grid_point r) {
    triangle* t = store_->make(store_->home_of(p, q, r));
    t->corner[0] = p, t->corner[1] = q, t->corner[2] = r;
    return t;
  };
  triangle* low = make(a, b, c);
  triangle* high = make(c, d, a);
  join(low, 2, high);
  join(high, 2, low);
}

template <class Store>
placement mesh<Store>::add(grid_point p) {
  triangle* t = last_ != nullptr ? locate(p, last_) : nullptr;
  if (t == nullptr)
    if (triangle* start = store_->near(p)) t = locate(p, start);
  if (t == nullptr) return placement::postponed;
  for (const grid_point corner : t->corner)
    if (corner == p) return placement::duplicate;
  if (!find_cavity(t, p) || !choose_homes(p)) {
    spare_cavity();
    return placement::postponed;
  }
  fill_cavity(p);
  return placement::placed;
}

/// The triangle that holds p, or nullptr when the way leads through triangles that are not here.
template <class Store>
triangle* mesh<Store>::locate(grid_point p, triangle* t) const {
  const triangle* came_from = nullptr;
  for (;;) {
    bool outside = false;
    triangle* step = nullptr;
    for (unsigned i = 0; i < 3 && step == nullptr; ++i) {
      if (t->across[i] == came_from && came_from != nullptr) continue;
      if (orient(t->corner[i], t->corner[after(i)], p) >= 0) continue;
      outside = true;
      if (t->across[i] != nullptr && store_->here(t->across_home[i])) step = t->across[i];
    }
    if (!outside) return t;
    if (step == nullptr) return nullptr;
    came_from = t;
    t = step;
  }
}

template <class Store>
bool mesh<Store>::find_cavity(triangle* start, grid_point p) {
  cavity_.assign(1, start);
  rim_.clear();
  closed_ = true;
  std::size_t gap = 0;
  pending_.assign({{start, 2}, {start, 1}, {start, 0}});
  start->doomed = true;
  while (!pending_.empty()) {
    const edge e = pending_.back();
    pending_.pop_back();
    triangle* n = e.of->across[e.number];
    if (n != nullptr && !store_->here(e.of->across_home[e.number])) return false;
    if (n == nullptr && orient(e.of->corner[e.number], e.of->corner[after(e.number)], p) == 0) {
      gap = rim_.size();
      closed_ = false;
      continue;
    }
    if (n == nullptr || in_circle(n->corner[0], n->corner[1], n->corner[2], p) <= 0) {
      rim_.push_back(e);
      continue;
    }
    n->doomed = true;
    cavity_.push_back(n);
    const unsigned back = edge_from(*n, e.of->corner[after(e.number)]);
    pending_.push_back({n, before(back)});
    pending_.push_back({n, after(back)});
  }
  std::rotate(rim_.begin(), rim_.begin() + static_cast<std::ptrdiff_t>(gap), rim_.end());
  return true;
}

template <class Store>
bool mesh<Store>::choose_homes(grid_point p) {
  homes_.clear();
  for (const edge& e : rim_) {
    homes_.push_back(store_->home_of(e.of->corner[e.number], e.of->corner[after(e.number)], p));
    if (!store_->here(homes_.back())) return false;
  }
  return true;
}

template <class Store>
void mesh<Store>::fill_cavity(grid_point p) {
  triangle* first = nullptr;
  triangle* previous = nullptr;
  for (std::size_t i = 0; i < rim_.size(); ++i) {
    const auto [old, number] = rim_[i];
    triangle* t = store_->make(homes_[i]);
    t->corner[0] = old->corner[number];
    t->corner[1] = old->corner[after(number)];
    t->corner[2] = p;
    join(t, 0, old->across[number]);
    if (t->across[0] != nullptr) join(t->across[0], edge_from(*t->across[0], t->corner[1]), t);
    join(t, 2, previous);
    if (previous != nullptr) join(previous, 1, t);
    if (first == nullptr) first = t;
    previous = t;
  }
  if (closed_) {
    join(first, 2, previous);
    join(previous, 1, first);
  }
  for (triangle* t : cavity_) store_->drop(t);
  last_ = previous;
}

template <class Store>
void mesh<Store>::spare_cavity() {
  for (triangle* t : cavity_) t->doomed = false;
}

template <class Store>
void mesh<Store>::join(triangle* t, unsigned i, triangle* u) {
  t->across[i] = u;
  t->across_home[i] = u != nullptr ? u->home : home_number{0};
}

}  // namespace quarry::apps

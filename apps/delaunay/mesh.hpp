// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mesh: incremental Delaunay triangulation of a square (Bowyer 1981, Watson 1981), with point
/// location by a walk over neighbouring triangles.
///
///        c                     Adding p: the triangles whose circumcircle contains p form the
///       / \      edge i goes   cavity. They are replaced by the triangles of p with each edge of
///      2   1     from corner   the cavity's boundary, the rim, which is visible from p.
///     /     \    i to i + 1
///    a---0---b
///
/// Every triangle is stored in a *home*, a unit of memory that may be local to this worker or not;
/// the store knows which homes are local. A triangle records the homes of its neighbours, so that
/// the mesh never dereferences a pointer into a home that is not local. A point is postponed, and
/// nothing changes, if the walk, the cavity, a neighbour of the cavity or the home of a new
/// triangle is not local.
///
/// Invariants: corners turn left; t->neighbour[i] and t reference each other, with correct homes;
/// every edge passes the in-circle test (check.hpp).
/// Progress: the walk always crosses an edge that separates it from p, so in a Delaunay
/// triangulation it never visits a triangle twice (Edelsbrunner 1990). No vertex lies inside a
/// cavity, so the adjacency graph of its triangles is a tree, and a depth-first traversal that
/// turns left yields the rim in order. If p lies on the border of the square, the edge that
/// contains p is not part of the rim, and the rim is an open chain.

#include "apps/delaunay/predicates.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quarry::apps {

using home_number = std::uint16_t;

struct triangle {
  grid_point corner[3];
  home_number neighbour_home[3] = {};
  home_number home = 0;
  triangle* neighbour[3] = {};  // nullptr: edge on the border of the square
  triangle* next = nullptr;     // list of the triangles of this home
  triangle* previous = nullptr;
  bool in_cavity = false;  // the triangle is part of the cavity of the current point
};

constexpr unsigned after(unsigned edge) { return edge == 2 ? 0 : edge + 1; }
constexpr unsigned before(unsigned edge) { return edge == 0 ? 2 : edge - 1; }

/// Returns the edge of t that starts at p. Requires: p is a corner of t.
inline unsigned edge_from(const triangle& t, grid_point p) {
  return t.corner[0] == p ? 0 : t.corner[1] == p ? 1 : 2;
}

enum class insertion : std::uint8_t { inserted, duplicate, postponed };

/// Requirements on Store:
///   bool is_local(home) const            whether the triangles of a home may be accessed
///   home_number home_of(a, b, c) const   the home for a triangle with these corners
///   triangle* make(home)                 allocates a triangle
///   void drop(triangle*)                 frees a triangle
///   triangle* near(grid_point) const     a local triangle to start a walk from, or nullptr
template <class Store>
class mesh {
 public:
  explicit mesh(Store& store) : store_(&store) {}

  /// Creates the two triangles of the empty square [0, side]^2. Requires: every home is local.
  void make_square(std::int32_t side);
  /// Adds a point. Requires: p lies in the square or on its border.
  insertion add(grid_point p);
  /// Discards the starting triangle of the next walk. Must be called after triangles have been
  /// added or removed other than by add().
  void forget_last() { last_ = nullptr; }

 private:
  struct edge {
    triangle* of;
    unsigned number;
  };

  triangle* locate(grid_point p, triangle* from) const;
  bool find_cavity(triangle* start, grid_point p);
  bool choose_homes(grid_point p);
  void fill_cavity(grid_point p);
  void keep_cavity();
  static void join(triangle* t, unsigned i, triangle* u);

  Store* store_;
  triangle* last_ = nullptr;
  std::vector<triangle*> cavity_;
  std::vector<edge> rim_;      // counterclockwise around p; starts at the gap if the rim is open
  bool closed_ = true;         // the rim is a closed polygon
  std::vector<edge> pending_;  // stack of cavity edges whose neighbour is not examined yet
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
insertion mesh<Store>::add(grid_point p) {
  triangle* t = last_ != nullptr ? locate(p, last_) : nullptr;
  if (t == nullptr)
    if (triangle* start = store_->near(p)) t = locate(p, start);
  if (t == nullptr) return insertion::postponed;
  for (const grid_point corner : t->corner)
    if (corner == p) return insertion::duplicate;
  if (!find_cavity(t, p) || !choose_homes(p)) {
    keep_cavity();
    return insertion::postponed;
  }
  fill_cavity(p);
  return insertion::inserted;
}

/// Returns the triangle that contains p, or nullptr if the walk leaves the local triangles.
template <class Store>
triangle* mesh<Store>::locate(grid_point p, triangle* from) const {
  triangle* t = from;
  const triangle* came_from = nullptr;
  for (;;) {
    bool outside = false;
    triangle* step = nullptr;
    for (unsigned i = 0; i < 3 && step == nullptr; ++i) {
      if (t->neighbour[i] == came_from && came_from != nullptr) continue;
      if (orient(t->corner[i], t->corner[after(i)], p) >= 0) continue;
      outside = true;
      if (t->neighbour[i] != nullptr && store_->is_local(t->neighbour_home[i]))
        step = t->neighbour[i];
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
  start->in_cavity = true;
  while (!pending_.empty()) {
    const edge e = pending_.back();
    pending_.pop_back();
    triangle* n = e.of->neighbour[e.number];
    if (n != nullptr && !store_->is_local(e.of->neighbour_home[e.number])) return false;
    if (n == nullptr && orient(e.of->corner[e.number], e.of->corner[after(e.number)], p) == 0) {
      gap = rim_.size();
      closed_ = false;
      continue;
    }
    if (n == nullptr || in_circle(n->corner[0], n->corner[1], n->corner[2], p) <= 0) {
      rim_.push_back(e);
      continue;
    }
    n->in_cavity = true;
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
  // NOLINTNEXTLINE(readability-use-anyofallof): the loop also fills homes_
  for (const edge& e : rim_) {
    homes_.push_back(store_->home_of(e.of->corner[e.number], e.of->corner[after(e.number)], p));
    if (!store_->is_local(homes_.back())) return false;
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
    join(t, 0, old->neighbour[number]);
    if (t->neighbour[0] != nullptr)
      join(t->neighbour[0], edge_from(*t->neighbour[0], t->corner[1]), t);
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
void mesh<Store>::keep_cavity() {
  for (triangle* t : cavity_) t->in_cavity = false;
}

template <class Store>
void mesh<Store>::join(triangle* t, unsigned i, triangle* u) {
  t->neighbour[i] = u;
  t->neighbour_home[i] = u != nullptr ? u->home : home_number{0};
}

}  // namespace quarry::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mesh_squares: a mesh spread over regions; the store of the parallel program.
///
///   master region         the regions form a tree like the quadrants (quadrants.hpp); that of a
///     4 regions           leaf holds
///       16 regions          a square     where its lists begin
///         ...               triangles    whose circles have their middles in it
///                           batches      of points in it that are still to be added
///
/// A region comes with all that lies in it, so triangles, and the points that wait for them, change
/// workers together. Every worker knows all regions and the addresses of all squares, and touches
/// only those that are here.
///
/// Invariant: a leaf is here at one worker at a time; nobody else touches what is in its region.

#include "apps/common/must.hpp"
#include "apps/delaunay/mesh.hpp"
#include "apps/delaunay/quadrants.hpp"

#include <quarry/cluster/worker.hpp>

#include <algorithm>
#include <cmath>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quarry::apps {

struct point_batch {
  point_batch* next = nullptr;
  std::uint64_t count = 0;
  grid_point points[126];
};
static_assert(sizeof(point_batch) == 1024);

enum class point_list { fresh, postponed };

struct mesh_square {
  triangle* triangles = nullptr;
  std::uint64_t count = 0;
  point_batch* points[2] = {};
};

class mesh_squares {
 public:
  mesh_squares(cluster::worker& w, const quadrants& parts, unsigned grid_bits)
      : worker_(&w), parts_(parts), bits_(grid_bits), here_(parts.leaves()) {}

  // ---- regions ----
  /// All regions, empty, here.
  void create();
  /// Frees them. To be called by one worker, when no other uses them.
  void free() { must(worker_->destroy_region(regions_.front().front()), "to free the mesh"); }
  /// What another worker needs to know of them, and that worker's part.
  std::vector<std::uint64_t> directory() const;
  void learn(std::span<const std::uint64_t> directory);
  std::vector<cluster::rid> regions_of(unsigned level, std::span<const unsigned> parts) const;
  void set_here(unsigned level, std::span<const unsigned> parts, bool here);

  // ---- what mesh asks for ----
  bool here(home_number leaf) const { return here_[leaf]; }
  home_number home_of(grid_point a, grid_point b, grid_point c) const;
  triangle* make(home_number leaf);
  void drop(triangle* t);
  triangle* near(grid_point p) const;

  // ---- points to be added ----
  void put(point_list which, grid_point p);
  /// From every leaf that is here at most so many.
  std::vector<grid_point> take(point_list which, std::size_t most = ~std::size_t{0});
  std::uint64_t waiting(point_list which) const;

  // ---- for checks ----
  std::vector<const triangle*> triangles_here() const;
  std::string check_lists() const;

 private:
  home_number leaf_at(double x, double y) const;
  template <class Visit>
  void for_each_square_here(Visit visit) const {
    for (unsigned leaf = 0; leaf < parts_.leaves(); ++leaf)
      if (here_[leaf]) visit(leaf, *squares_[leaf]);
  }
  cluster::rid region_of(unsigned leaf) const { return regions_.back()[leaf]; }

  cluster::worker* worker_;
  quadrants parts_;
  unsigned bits_;
  std::vector<bool> here_;                          // by leaf
  std::vector<std::vector<cluster::rid>> regions_;  // by level and number
  std::vector<mesh_square*> squares_;               // by leaf
};

// ---- regions ------------------------------------------------------------------------------------

inline void mesh_squares::create() {
  for (unsigned level = 0; level <= parts_.leaf_level(); ++level) {
    std::vector<cluster::rid>& now = regions_.emplace_back();
    for (unsigned part = 0; part < 1u << 2 * level; ++part) {
      const cluster::rid parent = level == 0 ? cluster::root : regions_[level - 1][part / 4];
      now.push_back(
          must(worker_->create_region(parent, static_cast<int>(level)), "a region for a quadrant"));
    }
  }
  for (unsigned leaf = 0; leaf < parts_.leaves(); ++leaf) {
    void* p = must(worker_->allocate(region_of(leaf), sizeof(mesh_square)), "a square");
    squares_.push_back(new (p) mesh_square);
    here_[leaf] = true;
  }
}

inline std::vector<std::uint64_t> mesh_squares::directory() const {
  std::vector<std::uint64_t> words;
  for (const auto& level : regions_) words.insert(words.end(), level.begin(), level.end());
  for (const mesh_square* s : squares_) words.push_back(reinterpret_cast<std::uint64_t>(s));
  return words;
}

inline void mesh_squares::learn(std::span<const std::uint64_t> directory) {
  auto at = directory.begin();
  for (unsigned level = 0; level <= parts_.leaf_level(); ++level) {
    const auto end = at + (1 << 2 * level);
    regions_.emplace_back(at, end);
    at = end;
  }
  for (; at != directory.end(); ++at)
    squares_.push_back(reinterpret_cast<mesh_square*>(*at));  // NOLINT
}

inline std::vector<cluster::rid> mesh_squares::regions_of(unsigned level,
                                                          std::span<const unsigned> parts) const {
  std::vector<cluster::rid> ids;
  for (const unsigned part : parts) ids.push_back(regions_[level][part]);
  return ids;
}

inline void mesh_squares::set_here(unsigned level, std::span<const unsigned> parts, bool here) {
  for (const unsigned part : parts) {
    const auto [first, count] = parts_.leaves_of(level, part);
    std::fill_n(here_.begin() + first, count, here);
  }
}

// ---- triangles ----------------------------------------------------------------------------------

/// The leaf in which a place lies, or next to which, outside of the square.
inline home_number mesh_squares::leaf_at(double x, double y) const {
  const unsigned wide = 1u << parts_.leaf_level();
  const double scale =
      std::ldexp(1.0, static_cast<int>(parts_.leaf_level()) - static_cast<int>(bits_));
  const auto column = [&](double v) {
    return static_cast<unsigned>(std::clamp(v * scale, 0.0, wide - 1.0));
  };
  return static_cast<home_number>(number_at({column(x), column(y)}));
}

inline home_number mesh_squares::home_of(grid_point a, grid_point b, grid_point c) const {
  const plane_point middle = circle_middle(a, b, c);
  return leaf_at(middle.x, middle.y);
}

inline triangle* mesh_squares::make(home_number leaf) {
  triangle* t =
      new (must(worker_->allocate(region_of(leaf), sizeof(triangle)), "a triangle")) triangle;
  mesh_square& s = *squares_[leaf];
  t->home = leaf;
  t->next = s.triangles;
  if (t->next != nullptr) t->next->previous = t;
  s.triangles = t;
  ++s.count;
  return t;
}

inline void mesh_squares::drop(triangle* t) {
  mesh_square& s = *squares_[t->home];
  (t->previous != nullptr ? t->previous->next : s.triangles) = t->next;
  if (t->next != nullptr) t->next->previous = t->previous;
  --s.count;
  must(worker_->deallocate(t), "to free a triangle");
}

inline triangle* mesh_squares::near(grid_point p) const {
  const home_number leaf = leaf_at(p.x, p.y);
  if (here_[leaf] && squares_[leaf]->triangles != nullptr) return squares_[leaf]->triangles;
  triangle* any = nullptr;
  for_each_square_here([&](unsigned, const mesh_square& s) {
    if (any == nullptr) any = s.triangles;
  });
  return any;
}

// ---- points -------------------------------------------------------------------------------------

inline void mesh_squares::put(point_list which, grid_point p) {
  const home_number leaf = leaf_at(p.x, p.y);
  point_batch*& list = squares_[leaf]->points[static_cast<unsigned>(which)];
  if (list == nullptr || list->count == std::size(list->points)) {
    void* fresh = must(worker_->allocate(region_of(leaf), sizeof(point_batch)), "room for points");
    point_batch* batch = new (fresh) point_batch;
    batch->next = std::exchange(list, batch);
  }
  list->points[list->count++] = p;
}

inline std::vector<grid_point> mesh_squares::take(point_list which, std::size_t most) {
  std::vector<grid_point> taken;
  for_each_square_here([&](unsigned, mesh_square& s) {
    point_batch*& list = s.points[static_cast<unsigned>(which)];
    for (std::size_t i = 0; i < most && list != nullptr; ++i) {
      taken.push_back(list->points[--list->count]);
      if (list->count == 0) {
        point_batch* empty = std::exchange(list, list->next);
        must(worker_->deallocate(empty), "to free room for points");
      }
    }
  });
  return taken;
}

inline std::uint64_t mesh_squares::waiting(point_list which) const {
  std::uint64_t sum = 0;
  for_each_square_here([&](unsigned, const mesh_square& s) {
    for (const point_batch* b = s.points[static_cast<unsigned>(which)]; b != nullptr; b = b->next)
      sum += b->count;
  });
  return sum;
}

// ---- checks -------------------------------------------------------------------------------------

inline std::vector<const triangle*> mesh_squares::triangles_here() const {
  std::vector<const triangle*> all;
  for_each_square_here([&](unsigned, const mesh_square& s) {
    for (const triangle* t = s.triangles; t != nullptr; t = t->next) all.push_back(t);
  });
  return all;
}

inline std::string mesh_squares::check_lists() const {
  std::string fault;
  for_each_square_here([&](unsigned leaf, const mesh_square& s) {
    std::uint64_t count = 0;
    const triangle* previous = nullptr;
    for (const triangle* t = s.triangles; t != nullptr; previous = t, t = t->next, ++count) {
      if (t->previous != previous) fault = "the list of a square is broken";
      if (t->home != leaf || home_of(t->corner[0], t->corner[1], t->corner[2]) != leaf)
        fault = "a triangle lies in the wrong square";
    }
    if (count != s.count) fault = "a square has another number of triangles than it says";
  });
  return fault;
}

}  // namespace quarry::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region_store: the triangle store of the parallel program; it distributes a mesh over regions.
///
///   master region         The regions form a quadtree (quadrants.hpp). The region of a leaf holds
///     4 regions             a leaf_header  the heads of its lists
///       16 regions          triangles      those whose circumcentre lies in the leaf
///         ...               point batches  points in the leaf that are not inserted yet
///
/// When a region moves to another worker, its triangles and pending points move with it. Every
/// worker knows all region identifiers and the addresses of all leaf headers, and accesses only the
/// leaves that are local.
///
/// Invariant: a leaf is local to one worker at a time, and only that worker accesses its region.

#include "apps/common/status.hpp"
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

enum class point_list { unprocessed, postponed };

struct leaf_header {
  triangle* triangles = nullptr;
  std::uint64_t count = 0;
  point_batch* points[2] = {};
};

class region_store {
 public:
  region_store(cluster::worker& w, const quadrants& parts, unsigned grid_bits)
      : worker_(&w), parts_(parts), bits_(grid_bits), local_(parts.leaves()) {}

  // ---- regions ----
  /// Creates all regions, empty and local.
  void create();
  /// Frees all regions. Called by one worker, when no other worker accesses them.
  void free() {
    throw_on_failure(worker_->destroy_region(regions_.front().front()), "free the mesh");
  }
  /// Region identifiers and header addresses, for another worker's load_directory().
  std::vector<std::uint64_t> directory() const;
  void load_directory(std::span<const std::uint64_t> directory);
  std::vector<cluster::rid> regions_of(unsigned level, std::span<const unsigned> parts) const;
  void set_local(unsigned level, std::span<const unsigned> parts, bool is_local);

  // ---- the Store requirements of mesh ----
  bool is_local(home_number leaf) const { return local_[leaf]; }
  home_number home_of(grid_point a, grid_point b, grid_point c) const;
  triangle* make(home_number leaf);
  void drop(triangle* t);
  triangle* near(grid_point p) const;

  // ---- pending points ----
  void put(point_list which, grid_point p);
  /// Removes and returns up to `most` points from every local leaf.
  std::vector<grid_point> take(point_list which, std::size_t most = ~std::size_t{0});
  std::uint64_t pending_points(point_list which) const;

  // ---- validation ----
  std::vector<const triangle*> local_triangles() const;
  std::string check_lists() const;

 private:
  home_number leaf_at(double x, double y) const;
  template <class Visit>
  void for_each_local_leaf(Visit visit) const {
    for (unsigned leaf = 0; leaf < parts_.leaves(); ++leaf)
      if (local_[leaf]) visit(leaf, *headers_[leaf]);
  }
  cluster::rid region_of(unsigned leaf) const { return regions_.back()[leaf]; }

  cluster::worker* worker_;
  quadrants parts_;
  unsigned bits_;
  std::vector<bool> local_;                         // by leaf
  std::vector<std::vector<cluster::rid>> regions_;  // by level and number
  std::vector<leaf_header*> headers_;               // by leaf
};

// ---- regions ------------------------------------------------------------------------------------

inline void region_store::create() {
  for (unsigned level = 0; level <= parts_.leaf_level(); ++level) {
    std::vector<cluster::rid>& now = regions_.emplace_back();
    for (unsigned part = 0; part < 1u << 2 * level; ++part) {
      const cluster::rid parent = level == 0 ? cluster::root : regions_[level - 1][part / 4];
      now.push_back(value_or_throw(worker_->create_region(parent, static_cast<int>(level)),
                                   "create the region of a quadrant"));
    }
  }
  for (unsigned leaf = 0; leaf < parts_.leaves(); ++leaf) {
    void* p = value_or_throw(worker_->allocate(region_of(leaf), sizeof(leaf_header)),
                             "allocate a leaf header");
    headers_.push_back(new (p) leaf_header);
    local_[leaf] = true;
  }
}

inline std::vector<std::uint64_t> region_store::directory() const {
  std::vector<std::uint64_t> words;
  for (const auto& level : regions_)
    for (const cluster::rid id : level) words.push_back(static_cast<std::uint64_t>(id));
  for (const leaf_header* s : headers_) words.push_back(reinterpret_cast<std::uint64_t>(s));
  return words;
}

inline void region_store::load_directory(std::span<const std::uint64_t> directory) {
  auto at = directory.begin();
  for (unsigned level = 0; level <= parts_.leaf_level(); ++level) {
    auto& ids = regions_.emplace_back();
    for (const auto end = at + (1 << 2 * level); at != end; ++at) ids.push_back(cluster::rid{*at});
  }
  for (; at != directory.end(); ++at) headers_.push_back(reinterpret_cast<leaf_header*>(*at));
}

inline std::vector<cluster::rid> region_store::regions_of(unsigned level,
                                                          std::span<const unsigned> parts) const {
  std::vector<cluster::rid> ids;
  for (const unsigned part : parts) ids.push_back(regions_[level][part]);
  return ids;
}

inline void region_store::set_local(unsigned level, std::span<const unsigned> parts,
                                    bool is_local) {
  for (const unsigned part : parts) {
    const auto [first, count] = parts_.leaves_of(level, part);
    std::fill_n(local_.begin() + first, count, is_local);
  }
}

// ---- triangles ----------------------------------------------------------------------------------

/// Returns the leaf that contains a position, or the nearest leaf if the position is outside.
inline home_number region_store::leaf_at(double x, double y) const {
  const unsigned wide = 1u << parts_.leaf_level();
  const double scale =
      std::ldexp(1.0, static_cast<int>(parts_.leaf_level()) - static_cast<int>(bits_));
  const auto column = [&](double v) {
    return static_cast<unsigned>(std::clamp(v * scale, 0.0, wide - 1.0));
  };
  return static_cast<home_number>(morton_code({column(x), column(y)}));
}

inline home_number region_store::home_of(grid_point a, grid_point b, grid_point c) const {
  const plane_point middle = circumcentre(a, b, c);
  return leaf_at(middle.x, middle.y);
}

inline triangle* region_store::make(home_number leaf) {
  auto* t = new (value_or_throw(worker_->allocate(region_of(leaf), sizeof(triangle)),
                                "allocate a triangle")) triangle;
  leaf_header& s = *headers_[leaf];
  t->home = leaf;
  t->next = s.triangles;
  if (t->next != nullptr) t->next->previous = t;
  s.triangles = t;
  ++s.count;
  return t;
}

inline void region_store::drop(triangle* t) {
  leaf_header& s = *headers_[t->home];
  (t->previous != nullptr ? t->previous->next : s.triangles) = t->next;
  if (t->next != nullptr) t->next->previous = t->previous;
  --s.count;
  throw_on_failure(worker_->deallocate(t), "free a triangle");
}

inline triangle* region_store::near(grid_point p) const {
  const home_number leaf = leaf_at(p.x, p.y);
  if (local_[leaf] && headers_[leaf]->triangles != nullptr) return headers_[leaf]->triangles;
  triangle* any = nullptr;
  for_each_local_leaf([&](unsigned, const leaf_header& s) {
    if (any == nullptr) any = s.triangles;
  });
  return any;
}

// ---- points -------------------------------------------------------------------------------------

inline void region_store::put(point_list which, grid_point p) {
  const home_number leaf = leaf_at(p.x, p.y);
  point_batch*& list = headers_[leaf]->points[static_cast<unsigned>(which)];
  if (list == nullptr || list->count == std::size(list->points)) {
    void* fresh = value_or_throw(worker_->allocate(region_of(leaf), sizeof(point_batch)),
                                 "allocate a point batch");
    auto* batch = new (fresh) point_batch;
    batch->next = std::exchange(list, batch);
  }
  list->points[list->count++] = p;
}

inline std::vector<grid_point> region_store::take(point_list which, std::size_t most) {
  std::vector<grid_point> received;
  for_each_local_leaf([&](unsigned, leaf_header& s) {
    point_batch*& list = s.points[static_cast<unsigned>(which)];
    for (std::size_t i = 0; i < most && list != nullptr; ++i) {
      received.push_back(list->points[--list->count]);
      if (list->count == 0) {
        point_batch* empty = std::exchange(list, list->next);
        throw_on_failure(worker_->deallocate(empty), "free a point batch");
      }
    }
  });
  return received;
}

inline std::uint64_t region_store::pending_points(point_list which) const {
  std::uint64_t sum = 0;
  for_each_local_leaf([&](unsigned, const leaf_header& s) {
    for (const point_batch* b = s.points[static_cast<unsigned>(which)]; b != nullptr; b = b->next)
      sum += b->count;
  });
  return sum;
}

// ---- validation ---------------------------------------------------------------------------------

inline std::vector<const triangle*> region_store::local_triangles() const {
  std::vector<const triangle*> all;
  for_each_local_leaf([&](unsigned, const leaf_header& s) {
    for (const triangle* t = s.triangles; t != nullptr; t = t->next) all.push_back(t);
  });
  return all;
}

inline std::string region_store::check_lists() const {
  std::string fault;
  for_each_local_leaf([&](unsigned leaf, const leaf_header& s) {
    std::uint64_t count = 0;
    const triangle* previous = nullptr;
    for (const triangle* t = s.triangles; t != nullptr; previous = t, t = t->next, ++count) {
      if (t->previous != previous) fault = "the triangle list of a leaf is broken";
      if (t->home != leaf || home_of(t->corner[0], t->corner[1], t->corner[2]) != leaf)
        fault = "a triangle is in the wrong leaf";
    }
    if (count != s.count) fault = "the triangle count of a leaf is wrong";
  });
  return fault;
}

}  // namespace quarry::apps

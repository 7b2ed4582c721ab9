// SPDX-License-Identifier: Apache-2.0
#pragma once
/// local_store: a triangle store for a sequential program. It has one home, which is always local.

#include "apps/delaunay/mesh.hpp"

#include <deque>
#include <vector>

namespace quarry::apps {

/// drop() puts a triangle on a free list, from which make() takes it.
class local_store {
 public:
  bool is_local(home_number) const { return true; }
  home_number home_of(grid_point, grid_point, grid_point) const { return 0; }
  triangle* make(home_number) {
    triangle* t = free_list_;
    if (t != nullptr)
      free_list_ = t->next;
    else
      t = &triangles_.emplace_back();
    *t = triangle{};
    return t;
  }
  void drop(triangle* t) {
    t->in_cavity = true;
    t->next = free_list_;
    free_list_ = t;
  }
  triangle* near(grid_point) const {
    for (const triangle& t : triangles_)
      if (!t.in_cavity) return const_cast<triangle*>(&t);
    return nullptr;
  }
  std::vector<const triangle*> all() const {
    std::vector<const triangle*> live;
    for (const triangle& t : triangles_)
      if (!t.in_cavity) live.push_back(&t);
    return live;
  }

 private:
  std::deque<triangle> triangles_;
  triangle* free_list_ = nullptr;
};

}  // namespace quarry::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// tree_grafter: one tree of the bodies of all workers, from the trees of the single workers.
///
///   worker 0   [  A  ]     worker 1   [  A' ]          [A + A']       A + A' and C + C' are new
///              /     \                /     \          /   |   \      cells; B and D are used
///            [B]     [C]            [C']    [D]      [B] [C+C'] [D]   in place
///
/// The trees divide the same cube. Where several of them have a cell for one octant, the grafter
/// makes a cell that sums them up, and descends. Where one tree has a cell, that cell is used in
/// place with everything below it. The particles of leaves that share an octant are copied into
/// new leaves. Therefore a traversal computes as many interactions as in the tree that one worker
/// would build of all bodies; a traversal of the separate trees computes one and a half times as
/// many with 16 workers.
///
/// Only the first levels of a tree may be readable. A cell of its last readable level that is not a
/// leaf becomes a child as it is: no body in the box opens it (levels_needed in oct_tree.hpp).
/// Cells that no body in the box opens get no children.

#include "apps/barnes_hut/oct_tree.hpp"

#include <memory_resource>

namespace quarry::apps {

/// A cell of one worker's tree.
struct tree_part {
  cell* at = nullptr;
  unsigned levels = 0;  // readable levels of the tree, from its root on

  bool is_leaf() const { return at->bodies != nullptr; }
  bool has_readable_children() const { return !is_leaf() && at->level + 1 < levels; }
};

class tree_grafter {
 public:
  /// The bodies that will traverse the tree lie in `box`.
  tree_grafter(double theta, unsigned leaf_size, const box3& box)
      : theta_(theta), leaf_size_(leaf_size), box_(box) {}

  /// Returns the tree above the given trees, which divide `cube`; nullptr if there are none. The
  /// new cells live as long as the grafter.
  cell* graft(std::vector<tree_part> roots, const cube3& cube) {
    return graft(std::move(roots), {}, cube, 0);
  }

 private:
  /// `loose`: particles in the cube that are in none of the parts.
  cell* graft(std::vector<tree_part> parts, std::vector<particle> loose, const cube3& cube,
              unsigned level);
  /// Returns the subtrees of the octants, and the parts that cannot be divided.
  std::vector<cell*> divide(const std::vector<tree_part>& parts, std::vector<particle> loose,
                            const cube3& cube, unsigned level);
  void adopt(cell& top, std::vector<cell*> children);
  cell* build(std::vector<particle>& particles, const cube3& cube, unsigned level) {
    tree_builder builder(theta_, leaf_size_, [this](unsigned, std::size_t size) {
      return memory_.allocate(size, alignof(cell));
    });
    return builder.build(particles, cube, level);
  }
  cell* new_cell() { return new (memory_.allocate(sizeof(cell), alignof(cell))) cell; }

  double theta_;
  unsigned leaf_size_;
  box3 box_;
  std::pmr::monotonic_buffer_resource memory_;
};

inline cell* tree_grafter::graft(std::vector<tree_part> parts, std::vector<particle> loose,
                                 const cube3& cube, unsigned level) {
  if (parts.empty()) return loose.empty() ? nullptr : build(loose, cube, level);
  if (parts.size() == 1 && loose.empty()) return parts.front().at;
  cell sum;
  sum.level = level;
  for (const tree_part& p : parts) sum.add(p.at->sum, p.at->count);
  for (const particle& p : loose) sum.add(p, 1);
  sum.close(cube, theta_);
  std::vector<cell*> children;
  if (may_open(box_, sum)) {
    children = divide(parts, std::move(loose), cube, level);
    if (children.size() == 1 && children.front()->level == level) return children.front();
  }
  cell* top = new_cell();
  *top = sum;
  adopt(*top, std::move(children));
  return top;
}

inline std::vector<cell*> tree_grafter::divide(const std::vector<tree_part>& parts,
                                               std::vector<particle> loose, const cube3& cube,
                                               unsigned level) {
  std::vector<cell*> children;
  std::vector<tree_part> divisible;
  for (const tree_part& p : parts)
    if (p.is_leaf())
      loose.insert(loose.end(), p.at->bodies, p.at->bodies + p.at->count);
    else if (p.has_readable_children())
      divisible.push_back(p);
    else
      children.push_back(p.at);
  if (divisible.empty()) {
    if (!loose.empty()) children.push_back(build(loose, cube, level));
    return children;
  }
  for (unsigned i = 0; i < 8; ++i) {
    std::vector<tree_part> parts_here;
    for (const tree_part& p : divisible)
      if (cell* child = p.at->child[i]) parts_here.push_back({child, p.levels});
    std::vector<particle> loose_here;
    for (const particle& p : loose)
      if (cube.octant_of(p.position) == i) loose_here.push_back(p);
    if (cell* child =
            graft(std::move(parts_here), std::move(loose_here), cube.octant(i), level + 1))
      children.push_back(child);
  }
  return children;
}

/// Makes the cells children of `top`. Where there are more than eight, groups of them get a cell in
/// between that every body opens.
inline void tree_grafter::adopt(cell& top, std::vector<cell*> children) {
  constexpr std::size_t most = std::size(cell{}.child);
  while (children.size() > most) {
    std::vector<cell*> groups;
    for (std::size_t i = 0; i < children.size(); i += most) {
      cell* group = groups.emplace_back(new_cell());
      group->opening_radius2 = std::numeric_limits<double>::infinity();
      for (std::size_t j = i; j < std::min(i + most, children.size()); ++j) {
        group->child[j - i] = children[j];
        group->count += children[j]->count;
      }
    }
    children = std::move(groups);
  }
  std::copy(children.begin(), children.end(), top.child);
}

}  // namespace quarry::apps

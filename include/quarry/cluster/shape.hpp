// SPDX-License-Identifier: Apache-2.0
#pragma once
/// shape: the tree of schedulers and workers of a cluster, and the routes in it.
///
///              0             schedulers 0 ... s-1, level by level, 0 at the top
///          |       |
///          1       2         messages travel along the edges of the tree
///        |   |   |   |
///        w0  w1  w2  w3      workers: nodes s ... s+w-1, evenly below the lowest schedulers
///
/// The tree follows from ratios (Lyberis et al. 2012, section 5.1) and the number of nodes: as few
/// lowest schedulers as serve all workers with at most `workers_each` workers each, and a tree over
/// them in which no scheduler has more than `schedulers_each` children. All relations are computed;
/// no node stores a table of the others.

#include <quarry/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace quarry::cluster {

using node_id = std::uint32_t;
inline constexpr node_id no_node = ~node_id{0};

struct ratios {
  unsigned schedulers_each = 8;  // children of a scheduler above the lowest level
  unsigned workers_each = 16;    // children of a scheduler of the lowest level
};

class shape {
 public:
  /// A tree with this number of workers.
  static shape for_workers(unsigned workers, ratios r = {}) {
    return over(workers, (workers + r.workers_each - 1) / std::max(r.workers_each, 1u), r);
  }
  /// A tree with exactly this number of nodes, including schedulers. The number of workers is the
  /// largest that the ratios allow, or a few more if no such tree has this number of nodes.
  static shape for_nodes(unsigned nodes, ratios r = {}) {
    if (nodes < 2) throw error("a cluster needs at least two processes: a scheduler and a worker");
    for (unsigned workers = nodes - 1; workers > 0; --workers) {
      shape s = for_workers(workers, r);
      // More schedulers on the lowest level than necessary may give the exact number of nodes.
      for (unsigned lowest = s.width(s.levels() - 1); s.nodes() < nodes && lowest < workers;)
        s = over(workers, ++lowest, r);
      if (s.nodes() == nodes) return s;
    }
    for (unsigned workers = nodes - 1;; --workers)
      if (shape s = for_workers(workers, r); s.nodes() < nodes) {
        s.workers_ += nodes - s.nodes();
        return s;
      }
  }

  unsigned schedulers() const { return first_.back(); }
  unsigned workers() const { return workers_; }
  unsigned nodes() const { return schedulers() + workers_; }
  unsigned levels() const { return static_cast<unsigned>(first_.size()) - 1; }

  bool is_worker(node_id n) const { return n >= schedulers(); }
  node_id worker(unsigned number) const { return schedulers() + number; }
  unsigned worker_number(node_id n) const { return n - schedulers(); }

  /// 0 for the top scheduler; levels() for workers.
  unsigned level(node_id n) const {
    return static_cast<unsigned>(std::upper_bound(first_.begin(), first_.end(), n) -
                                 first_.begin()) -
           1;
  }
  node_id parent(node_id n) const {
    if (n == 0) return no_node;
    const unsigned l = level(n);
    return first_[l - 1] + owner_of(n - first_[l], width(l), width(l - 1));
  }
  std::vector<node_id> children(node_id n) const {
    std::vector<node_id> all;
    const unsigned l = level(n);
    if (l == levels()) return all;
    const node_id end = l + 1 == levels() ? nodes() : first_[l + 2];
    for (node_id c = first_[l + 1]; c < end; ++c)
      if (parent(c) == n) all.push_back(c);
    return all;
  }
  /// The neighbour of `from` on the route to `to`. Requires from != to.
  node_id next_hop(node_id from, node_id to) const {
    const unsigned l = level(from);
    while (level(to) > l) {
      const node_id above = parent(to);
      if (above == from) return to;
      to = above;
    }
    return parent(from);
  }

 private:
  /// A tree with `lowest` schedulers on the lowest level.
  static shape over(unsigned workers, unsigned lowest, ratios r) {
    if (workers == 0) throw error("a cluster needs at least one worker");
    if (r.schedulers_each < 2 || r.workers_each < 1)
      throw error("workers_each must be at least 1, and schedulers_each at least 2");
    shape s;
    s.workers_ = workers;
    std::vector<node_id> widths{lowest};
    while (widths.back() > 1)
      widths.push_back((widths.back() + r.schedulers_each - 1) / r.schedulers_each);
    std::reverse(widths.begin(), widths.end());
    s.first_ = {0};
    for (const node_id width : widths) s.first_.push_back(s.first_.back() + width);
    return s;
  }
  static unsigned owner_of(unsigned i, unsigned below, unsigned above) {
    return static_cast<unsigned>(std::uint64_t{i} * above / below);
  }
  unsigned width(unsigned l) const { return l == levels() ? workers_ : first_[l + 1] - first_[l]; }
  unsigned workers_ = 0;
  std::vector<node_id> first_;  // the first scheduler of each level; the last entry is the end
};

}  // namespace quarry::cluster

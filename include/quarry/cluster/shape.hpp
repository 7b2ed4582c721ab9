// SPDX-License-Identifier: Apache-2.0
#pragma once
/// shape: who is who in a cluster, and the way from one to another.
///
///              0             schedulers 0 ... s-1, level by level, 0 at the top
///          |       |
///          1       2         messages travel along the lines only
///        |   |   |   |
///        w0  w1  w2  w3      workers: nodes s ... s+w-1, evenly under the lowest schedulers
///
/// Given by ratios (Lyberis et al. 2012, section 5.1) or chosen from the number of nodes: as few
/// schedulers as serve all workers with at most `workers_each`, and a tree over them in which none
/// has more than `schedulers_each` below it. Everything is computed; no node holds a table of others.

#include <quarry/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace quarry::cluster {

using node = std::uint32_t;
inline constexpr node no_node = ~node{0};

struct ratios {
  unsigned schedulers_each = 8;  // below a scheduler that is not at the bottom
  unsigned workers_each = 16;    // below one that is
};

class shape {
 public:
  /// A tree for this many workers.
  static shape for_workers(unsigned workers, ratios r = {}) {
    return over(workers, (workers + r.workers_each - 1) / std::max(r.workers_each, 1u), r);
  }
  /// A tree of exactly this many nodes, schedulers included: as many workers as the ratios allow; a
  /// few more where no tree has that number.
  static shape for_nodes(unsigned nodes, ratios r = {}) {
    if (nodes < 2) throw error("a cluster has at least two processes: a scheduler and a worker");
    for (unsigned workers = nodes - 1; workers > 0; --workers) {
      shape s = for_workers(workers, r);
      // More schedulers at the bottom than needed may be what makes the number right.
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

  bool is_worker(node n) const { return n >= schedulers(); }
  node worker(unsigned number) const { return schedulers() + number; }
  unsigned worker_number(node n) const { return n - schedulers(); }

  /// 0 at the top; workers have levels().
  unsigned level(node n) const {
    return static_cast<unsigned>(std::upper_bound(first_.begin(), first_.end(), n) -
                                 first_.begin()) -
           1;
  }
  node parent(node n) const {
    if (n == 0) return no_node;
    const unsigned l = level(n);
    return first_[l - 1] + owner_of(n - first_[l], width(l), width(l - 1));
  }
  std::vector<node> children(node n) const {
    std::vector<node> all;
    const unsigned l = level(n);
    if (l == levels()) return all;
    const node end = l + 1 == levels() ? nodes() : first_[l + 2];
    for (node c = first_[l + 1]; c < end; ++c)
      if (parent(c) == n) all.push_back(c);
    return all;
  }
  /// The neighbour of `from` on the way to `to`. Requires from != to.
  node next_hop(node from, node to) const {
    const unsigned l = level(from);
    while (level(to) > l) {
      const node above = parent(to);
      if (above == from) return to;
      to = above;
    }
    return parent(from);
  }

 private:
  /// With so many schedulers at the bottom.
  static shape over(unsigned workers, unsigned lowest, ratios r) {
    if (workers == 0) throw error("a cluster has at least one worker");
    if (r.schedulers_each < 2 || r.workers_each < 1)
      throw error("a scheduler has at least one worker, or two schedulers, below it");
    shape s;
    s.workers_ = workers;
    std::vector<node> widths{lowest};
    while (widths.back() > 1)
      widths.push_back((widths.back() + r.schedulers_each - 1) / r.schedulers_each);
    std::reverse(widths.begin(), widths.end());
    s.first_ = {0};
    for (const node width : widths) s.first_.push_back(s.first_.back() + width);
    return s;
  }
  static unsigned owner_of(unsigned i, unsigned below, unsigned above) {
    return static_cast<unsigned>(std::uint64_t{i} * above / below);
  }
  unsigned width(unsigned l) const { return l == levels() ? workers_ : first_[l + 1] - first_[l]; }
  unsigned workers_ = 0;
  std::vector<node> first_;  // of each level of schedulers; the last is one past them
};

}  // namespace quarry::cluster

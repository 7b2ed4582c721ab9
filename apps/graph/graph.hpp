// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A directed graph of edges between numbered vertices, the batches in which it changes, and where
/// edges come from.
///
/// A batch is put in order before a kernel sees it: sorted by source, then target, each edge once.
///
///   edges    5>9  2>7  5>1  2>7          targets   | 7 | 1 9 |
///                                        runs      2: 1 from 0     5: 2 from 1
///
/// So a run is all that happens to a vertex, and the warp that gets the run owns the vertex:
/// nothing is locked, nobody waits, and the result does not depend on who comes first. With a lock
/// a vertex, warps would queue at the few vertices that most edges of a real graph begin at, and
/// each would read the list anew; sorting costs less than that.

#include <quarry/simt/random.hpp>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace quarry::apps {

struct graph_edge {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
};

struct graph_run {
  std::uint32_t vertex;
  std::uint32_t first;  // of its targets
  std::uint32_t count;
};

struct graph_batch {
  std::vector<graph_run> runs;
  std::vector<std::uint32_t> targets;

  explicit graph_batch(std::vector<graph_edge> edges) {
    const auto key = [](const graph_edge& e) { return std::tuple(e.source, e.target); };
    std::sort(edges.begin(), edges.end(), [&](auto& a, auto& b) { return key(a) < key(b); });
    edges.erase(
        std::unique(edges.begin(), edges.end(), [&](auto& a, auto& b) { return key(a) == key(b); }),
        edges.end());
    targets.reserve(edges.size());
    for (const graph_edge& e : edges) {
      if (runs.empty() || runs.back().vertex != e.source)
        runs.push_back({e.source, static_cast<std::uint32_t>(targets.size()), 0});
      ++runs.back().count;
      targets.push_back(e.target);
    }
  }
};

/// R-MAT (Chakrabarti, Zhan, Faloutsos 2004): each bit of source and target falls into a quarter of
/// the matrix with probabilities 0.57, 0.19, 0.19, 0.05, so few vertices have most edges. Vertices
/// are renumbered, or the busy ones would be neighbours. The same edges for the same seed, on every
/// machine.
inline std::vector<graph_edge> make_rmat(unsigned scale, std::uint64_t edges, std::uint64_t seed) {
  const std::uint32_t mask = scale == 32 ? ~0u : (1u << scale) - 1;
  const auto renumbered = [&](std::uint32_t v) {
    return (v * 0x9e3779b1u + 0x7f4a7c15u) & mask;
  };  // one to one
  std::vector<graph_edge> made(edges);
  for (std::uint64_t i = 0; i < edges; ++i) {
    simt::lane_random random(seed << 40 | i);
    graph_edge e;
    for (unsigned bit = 0; bit < scale; ++bit) {
      const std::uint32_t draw = random.below(100);
      e.source = e.source << 1 | (draw >= 76);
      e.target = e.target << 1 | ((draw >= 57 && draw < 76) || draw >= 95);
    }
    made[i] = {renumbered(e.source), renumbered(e.target)};
  }
  return made;
}

/// Edges from any of the `sources` vertices at `first` to any of all.
inline std::vector<graph_edge> make_uniform(std::uint32_t first, std::uint32_t sources,
                                            std::uint32_t vertices, std::uint64_t edges,
                                            std::uint64_t seed) {
  std::vector<graph_edge> made(edges);
  for (std::uint64_t i = 0; i < edges; ++i) {
    simt::lane_random random(seed << 40 | i);
    made[i].source = first + random.below(sources);
    made[i].target = random.below(vertices);
  }
  return made;
}

/// The same graph by one thread: what the kernels are held against.
class graph_sequential {
 public:
  explicit graph_sequential(std::uint32_t vertices) : lists_(vertices) {}

  void insert(const graph_batch& batch) {
    change(batch, [](const auto& a, auto b, auto e, auto out) {
      std::set_union(a.begin(), a.end(), b, e, out);
    });
  }
  void erase(const graph_batch& batch) {
    change(batch, [](const auto& a, auto b, auto e, auto out) {
      std::set_difference(a.begin(), a.end(), b, e, out);
    });
  }
  /// Of each vertex, in rising order.
  const std::vector<std::vector<std::uint32_t>>& lists() const { return lists_; }
  std::uint64_t edges() const {
    std::uint64_t n = 0;
    for (const auto& list : lists_) n += list.size();
    return n;
  }

 private:
  template <class Merge>
  void change(const graph_batch& batch, Merge merge) {
    for (const graph_run& run : batch.runs) {
      std::vector<std::uint32_t>& list = lists_[run.vertex];
      std::vector<std::uint32_t> changed;
      const auto begin = batch.targets.begin() + run.first;
      merge(list, begin, begin + run.count, std::back_inserter(changed));
      list.swap(changed);
    }
  }

  std::vector<std::vector<std::uint32_t>> lists_;
};

}  // namespace quarry::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A dynamic directed graph: batches of edges, edge generators, and the sequential reference
/// implementation.
///
/// The host sorts a batch by source, then target, and removes duplicates:
///
///   edges    5>9  2>7  5>1  2>7          targets   | 7 | 1 9 |
///                                        runs      {vertex 2, first 0, count 1}  {5, 1, 2}
///
/// A run holds all edges of a batch with one source. One warp processes a run and thereby owns the
/// vertex: there are no locks, no warp waits, and the result does not depend on the schedule. With
/// a lock per vertex, warps would contend for the few vertices where most edges of a power-law
/// graph start, and each warp would read the list again.

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
  std::uint32_t first;  // index of its first target
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

/// Returns R-MAT edges (Chakrabarti, Zhan, Faloutsos 2004): each bit of source and target selects a
/// quadrant of the adjacency matrix with probabilities 0.57, 0.19, 0.19, 0.05, so that few vertices
/// have most edges. Vertices are renumbered, so that those of high degree are not adjacent. The
/// result depends on the arguments only.
inline std::vector<graph_edge> make_rmat(unsigned scale, std::uint64_t edges, std::uint64_t seed) {
  const std::uint32_t mask = scale == 32 ? ~0u : (1u << scale) - 1;
  const auto renumbered = [&](std::uint32_t v) {
    return (v * 0x9e3779b1u + 0x7f4a7c15u) & mask;
  };  // a bijection
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

/// Returns edges with uniformly distributed sources in [first, first + sources) and targets in
/// [0, vertices).
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

/// graph_sequential: the single-threaded reference implementation.
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
  /// Returns the adjacency lists by vertex, in ascending order.
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

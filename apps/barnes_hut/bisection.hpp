// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bisection: bodies to workers so that all have the same to do (Dubinski 1996).
///
///   workers 0 ... 7      cut across the longest side of the box of all bodies: half of the cost on
///   0 ... 3 | 4 ... 7    either side; worker i swaps with i + 4 what lies on the wrong side;
///   0 1 | 2 3   ...      then each half on its own
///
/// The place of a cut is found from counts of cost in slices of the box, then in slices of the
/// slice in which the half is reached. Costs are whole numbers and their sums exact, so that all
/// workers of a group find the same place.
/// Requires: the number of workers is a power of two.

#include "apps/barnes_hut/bodies.hpp"
#include "apps/common/postbox.hpp"

namespace quarry::apps {

namespace detail {

inline box3 group_box(postbox& post, unsigned size, std::span<const body> bodies) {
  return post
      .reduce(size, std::vector<box3>{box_around(bodies)},
              [](box3 a, const box3& b) { return a.add(b), a; })
      .front();
}

/// Where half of the group's cost lies below.
inline double find_cut(postbox& post, unsigned size, std::span<const body> bodies, unsigned axis,
                       double low, double high) {
  constexpr unsigned slices = 64, refinements = 4;
  std::uint64_t below = 0, half = 0;
  for (unsigned i = 0; i < refinements && low < high; ++i) {
    const double scale = slices / (high - low);
    std::vector<std::uint64_t> cost(slices);
    for (const body& b : bodies)
      if (const double x = b.position[axis]; x >= low && x <= high)
        cost[std::min(slices - 1, static_cast<unsigned>((x - low) * scale))] += b.cost;
    cost = post.sum(size, std::move(cost));
    if (i == 0) {
      for (const std::uint64_t c : cost) half += c;
      half /= 2;
    }
    unsigned slice = 0;
    while (slice + 1 < slices && below + cost[slice] <= half) below += cost[slice++];
    const double width = (high - low) / slices;
    low += slice * width;
    high = low + width;
  }
  return low;
}

}  // namespace detail

/// Collective. Every worker gives up some of its bodies and gets others.
inline void bisect(cluster::worker& w, postbox& post, std::vector<body>& bodies) {
  for (unsigned size = w.count(); size > 1; size /= 2) {
    const box3 box = detail::group_box(post, size, bodies);
    if (box.empty()) continue;
    const unsigned axis = box.longest_axis();
    const double cut = detail::find_cut(post, size, bodies, axis, box.low[axis], box.high[axis]);
    const bool lower_half = (w.number() & size / 2) == 0;
    const auto leaving = std::partition(bodies.begin(), bodies.end(), [&](const body& b) {
      return (b.position[axis] < cut) == lower_half;
    });
    const std::vector<body> mine(leaving, bodies.end());
    const std::vector<body> theirs = post.swap(w.number() ^ size / 2, std::span<const body>(mine));
    bodies.erase(leaving, bodies.end());
    bodies.insert(bodies.end(), theirs.begin(), theirs.end());
  }
  for (body& b : bodies) b.owner = w.number();
}

}  // namespace quarry::apps

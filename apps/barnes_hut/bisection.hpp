// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Load balancing by orthogonal recursive bisection (Dubinski 1996).
///
///   workers 0 ... 7      cut the bounding box across its longest side, with half of the cost on
///   0 ... 3 | 4 ... 7    either side; workers i and i + 4 swap the bodies on the wrong side;
///   0 1 | 2 3   ...      repeat for each half
///
/// The position of a cut is found from a histogram of the cost over slices of the box, refined
/// within the slice that contains the median. Costs are integers and their sums are exact, so that
/// all workers of a group compute the same position.
/// Requires: the number of workers is a power of two.

#include "apps/barnes_hut/bodies.hpp"
#include "apps/common/mailbox.hpp"

namespace quarry::apps {

namespace detail {

inline box3 group_box(mailbox& mail, unsigned size, std::span<const body> bodies) {
  return mail
      .reduce(size, std::vector<box3>{box_around(bodies)},
              [](box3 a, const box3& b) { return a.add(b), a; })
      .front();
}

/// Returns the position below which half of the group's cost lies.
inline double find_cut(mailbox& mail, unsigned size, std::span<const body> bodies, unsigned axis,
                       double low, double high) {
  constexpr unsigned slices = 64, refinements = 4;
  std::uint64_t below = 0, half = 0;
  for (unsigned i = 0; i < refinements && low < high; ++i) {
    const double scale = slices / (high - low);
    std::vector<std::uint64_t> cost(slices);
    for (const body& b : bodies)
      if (const double x = b.position[axis]; x >= low && x <= high)
        cost[std::min(slices - 1, static_cast<unsigned>((x - low) * scale))] += b.cost;
    cost = mail.sum(size, std::move(cost));
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

/// Redistributes `bodies` so that every worker has about the same cost. Collective. Returns the box
/// around the bodies of all workers.
inline box3 balance_by_bisection(cluster::worker& w, mailbox& mail, std::vector<body>& bodies) {
  const box3 all = detail::group_box(mail, w.count(), bodies);
  for (unsigned size = w.count(); size > 1; size /= 2) {
    const box3 box = size == w.count() ? all : detail::group_box(mail, size, bodies);
    if (box.empty()) continue;
    const unsigned axis = box.longest_axis();
    const double cut = detail::find_cut(mail, size, bodies, axis, box.low[axis], box.high[axis]);
    const bool lower_half = (w.number() & size / 2) == 0;
    const auto leaving = std::partition(bodies.begin(), bodies.end(), [&](const body& b) {
      return (b.position[axis] < cut) == lower_half;
    });
    const std::vector<body> mine(leaving, bodies.end());
    const std::vector<body> theirs = mail.swap(w.number() ^ size / 2, std::span<const body>(mine));
    bodies.erase(leaving, bodies.end());
    bodies.insert(bodies.end(), theirs.begin(), theirs.end());
  }
  for (body& b : bodies) b.owner = w.number();
  return all;
}

}  // namespace quarry::apps

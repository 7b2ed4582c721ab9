// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_bins: a histogram in registers; lane k of a warp holds bin k.
///
/// For each axis, lane k counts the triangles with entry bin k and those with exit bin k
/// (rules.hpp). An exclusive prefix sum over the lanes gives, at lane k, the triangles left of
/// plane k (entry bin < k) and the triangles that are not right of plane k (exit bin < k).
///
/// add() counts 32 triangles at a time. Every lane contributes the bin of one triangle. Five
/// ballots, one per bit of the bin number, give every lane the mask of the lanes that contributed
/// its own bin; the lane adds the population count. This needs no memory and no atomics, and the
/// counts do not depend on the order of the triangles.

#include "apps/kd_tree/rules.hpp"

#include <quarry/simt/collective.hpp>

#include <cstdint>

namespace quarry::apps {

struct kd_bins {
  std::uint32_t entries[3] = {};
  std::uint32_t exits[3] = {};

  /// Adds the boxes of the lanes in `valid`. Collective: all lanes of the warp.
  QUARRY_DEVICE void add(const kd_planes (&planes)[3], const kd_box& box, simt::lane_mask valid) {
    for (unsigned axis = 0; axis < 3; ++axis) {
      entries[axis] += lanes_with(valid, planes[axis].entry_bin(box, axis));
      exits[axis] += lanes_with(valid, planes[axis].exit_bin(box, axis));
    }
  }

  /// Returns the best split of a node, the same at every lane. Collective: all lanes of the warp.
  QUARRY_DEVICE kd_split choose(const kd_planes (&planes)[3], const kd_box& box,
                                std::uint32_t triangles) const {
    const unsigned lane = simt::lane_id();
    kd_split mine;
    std::uint64_t cost = ~std::uint64_t{0};
    for (unsigned axis = 0; axis < 3; ++axis) {
      const std::uint32_t left = simt::scan_add(simt::full_warp, entries[axis]).before;
      const std::uint32_t right = triangles - simt::scan_add(simt::full_warp, exits[axis]).before;
      if (lane == 0 || lane > planes[axis].count) continue;
      const std::uint32_t plane = planes[axis].position(lane);
      const std::uint64_t here = split_cost(box, axis, plane, left, right);
      if (here >= cost) continue;
      cost = here;
      mine = {axis, plane, left, right};
    }
    const std::uint64_t best = least(cost);
    if (best >= leaf_cost(box, triangles)) return {};
    const unsigned winner = simt::lowest_bit(simt::ballot(simt::full_warp, cost == best));
    return {simt::shuffle(simt::full_warp, mine.axis, winner),
            simt::shuffle(simt::full_warp, mine.plane, winner),
            simt::shuffle(simt::full_warp, mine.left, winner),
            simt::shuffle(simt::full_warp, mine.right, winner)};
  }

 private:
  /// Returns the number of lanes in `valid` whose `bin` is the number of the calling lane.
  QUARRY_DEVICE static std::uint32_t lanes_with(simt::lane_mask valid, std::uint32_t bin) {
    const unsigned lane = simt::lane_id();
    for (unsigned bit = 0; bit < 5; ++bit) {
      const simt::lane_mask votes = simt::ballot(simt::full_warp, (bin >> bit & 1) != 0);
      valid &= (lane >> bit & 1) != 0 ? votes : ~votes;
    }
    return simt::popc(valid);
  }
  /// Returns the minimum over all lanes. Two steps, since the hardware reduces 32-bit words.
  QUARRY_DEVICE static std::uint64_t least(std::uint64_t value) {
    const auto high = static_cast<std::uint32_t>(value >> 32);
    const std::uint32_t least_high = simt::reduce_min(simt::full_warp, high);
    const std::uint32_t low = high == least_high ? static_cast<std::uint32_t>(value) : ~0u;
    return std::uint64_t{least_high} << 32 | simt::reduce_min(simt::full_warp, low);
  }
};

}  // namespace quarry::apps

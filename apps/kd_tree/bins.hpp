// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_bins: a histogram whose bins are the lanes of a warp.
///
/// A plane with the number k is the business of lane k. The lane knows how many triangles have all
/// planes before k behind them (`passed`) and how many have begun to be right of k but of none
/// after it (`begun`); sums over the lanes before k give the triangles left and right of the plane.
///
/// To count 32 triangles at a time, every lane brings the bin of one. Five votes, one for each bit
/// of a bin's number, tell every lane who brings its own: it keeps the lanes whose bits are those
/// of its number. No memory, no atomics, and the counts are the same in any order.

#include "apps/kd_tree/rules.hpp"

#include <quarry/simt/collective.hpp>

#include <cstdint>

namespace quarry::apps {

struct kd_bins {
  std::uint32_t passed[3] = {};
  std::uint32_t begun[3] = {};

  /// The whole warp. Each of the lanes `who` brings a box.
  QUARRY_DEVICE void add(const kd_planes (&planes)[3], const kd_box& box, simt::lane_mask who) {
    for (unsigned axis = 0; axis < 3; ++axis) {
      passed[axis] += lanes_with(who, planes[axis].passed(box, axis));
      begun[axis] += lanes_with(who, planes[axis].begun(box, axis));
    }
  }

  /// The whole warp, after all were added: the best split of a node, the same in every lane.
  QUARRY_DEVICE kd_split choose(const kd_planes (&planes)[3], const kd_box& box,
                                std::uint32_t triangles) const {
    const unsigned lane = simt::lane_id();
    kd_split mine;
    std::uint64_t cost = ~std::uint64_t{0};
    for (unsigned axis = 0; axis < 3; ++axis) {
      const std::uint32_t left = simt::scan_add(simt::full_warp, passed[axis]).before;
      const std::uint32_t right = triangles - simt::scan_add(simt::full_warp, begun[axis]).before;
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
  QUARRY_DEVICE static std::uint32_t lanes_with(simt::lane_mask who, std::uint32_t bin) {
    const unsigned lane = simt::lane_id();
    for (unsigned bit = 0; bit < 5; ++bit) {
      const simt::lane_mask votes = simt::ballot(simt::full_warp, (bin >> bit & 1) != 0);
      who &= (lane >> bit & 1) != 0 ? votes : ~votes;
    }
    return simt::popc(who);
  }
  /// Of all lanes; in two halves, since a GPU reduces words of 32 bits.
  QUARRY_DEVICE static std::uint64_t least(std::uint64_t value) {
    const auto high = static_cast<std::uint32_t>(value >> 32);
    const std::uint32_t least_high = simt::reduce_min(simt::full_warp, high);
    const std::uint32_t low = high == least_high ? static_cast<std::uint32_t>(value) : ~0u;
    return std::uint64_t{least_high} << 32 | simt::reduce_min(simt::full_warp, low);
  }
};

}  // namespace quarry::apps

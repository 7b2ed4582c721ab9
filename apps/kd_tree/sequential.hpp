// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_sequential: the single-threaded reference implementation of the build. It classifies boxes by
/// goes_left() and goes_right() only, and shares no binning code with the kernel.

#include "apps/kd_tree/grid.hpp"
#include "apps/kd_tree/tree.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace quarry::apps {

class kd_sequential {
 public:
  kd_sequential(const kd_input& input, const kd_limits& limits) : input_(&input), limits_(limits) {}

  kd_tree build() {
    std::vector<std::uint32_t> all(input_->boxes.size());
    std::iota(all.begin(), all.end(), 0u);
    add(input_->root, std::move(all), 0);
    return std::move(tree_);
  }

 private:
  using list = std::vector<std::uint32_t>;

  std::uint32_t add(const kd_box& box, list triangles, std::uint8_t depth) {
    const auto id = static_cast<std::uint32_t>(tree_.nodes.size());
    kd_tree_node node;
    node.box = box;
    node.count = static_cast<std::uint32_t>(triangles.size());
    node.depth = depth;
    tree_.nodes.push_back(node);
    const kd_split split = choose(box, triangles, depth);
    if (!split.found()) {
      tree_.nodes[id].first = static_cast<std::uint32_t>(tree_.references.size());
      tree_.references.insert(tree_.references.end(), triangles.begin(), triangles.end());
      return id;
    }
    list left, right;
    for (const std::uint32_t t : triangles) {
      if (goes_left(input_->boxes[t], split.axis, split.plane)) left.push_back(t);
      if (goes_right(input_->boxes[t], split.axis, split.plane)) right.push_back(t);
    }
    list().swap(triangles);
    const auto below = static_cast<std::uint8_t>(depth + 1);
    add(left_part(box, split), std::move(left), below);
    const std::uint32_t second = add(right_part(box, split), std::move(right), below);
    tree_.nodes[id].right = second;
    tree_.nodes[id].plane = split.plane;
    tree_.nodes[id].axis = static_cast<std::uint8_t>(split.axis);
    return id;
  }

  kd_split choose(const kd_box& box, const list& triangles, std::uint32_t depth) {
    kd_split best;
    const auto n = static_cast<std::uint32_t>(triangles.size());
    if (!limits_.may_split(n, depth)) return best;
    std::uint64_t least = leaf_cost(box, n);
    kd_planes planes[3];
    std::uint32_t left[3][kd_planes::max_count + 1], right[3][kd_planes::max_count + 1];
    for (unsigned axis = 0; axis < 3; ++axis) {
      planes[axis] = kd_planes::across(box, axis);
      count_sides(planes[axis], axis, triangles, left[axis], right[axis]);
    }
    for (std::uint32_t number = 1; number <= kd_planes::max_count; ++number)
      for (unsigned axis = 0; axis < 3; ++axis) {
        if (number > planes[axis].count) continue;
        const std::uint32_t at = planes[axis].position(number);
        const std::uint64_t cost =
            split_cost(box, axis, at, left[axis][number], right[axis][number]);
        if (cost >= least) continue;
        least = cost;
        best = {axis, at, left[axis][number], right[axis][number]};
      }
    return best;
  }

  /// Counts the boxes left and right of each plane. A box that is left of a plane is left of all
  /// later planes, and a box that is right of a plane is right of all earlier planes; a binary
  /// search finds the plane where this changes.
  void count_sides(const kd_planes& planes, unsigned axis, const list& triangles,
                   std::uint32_t* left, std::uint32_t* right) const {
    std::uint32_t numbers[kd_planes::max_count];
    std::iota(numbers, numbers + planes.count, 1u);
    std::uint32_t change[kd_planes::max_count + 2] = {}, end[kd_planes::max_count + 2] = {};
    for (const std::uint32_t t : triangles) {
      const kd_box& b = input_->boxes[t];
      ++change[1 + (std::partition_point(
                        numbers, numbers + planes.count,
                        [&](std::uint32_t k) { return !goes_left(b, axis, planes.position(k)); }) -
                    numbers)];
      ++end[std::partition_point(
                numbers, numbers + planes.count,
                [&](std::uint32_t k) { return goes_right(b, axis, planes.position(k)); }) -
            numbers];
    }
    std::uint32_t sum = 0;
    for (std::uint32_t k = 1; k <= planes.count; ++k) left[k] = sum += change[k];
    sum = 0;
    for (std::uint32_t k = planes.count; k >= 1; --k) right[k] = sum += end[k];
  }

  const kd_input* input_;
  kd_limits limits_;
  kd_tree tree_;
};

}  // namespace quarry::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The longer bodies of kd_build: a node alone, a node by a team, and what both do.

#include "apps/kd_tree/build.hpp"

namespace quarry::apps {

// ---- a node by one warp ------------------------------------------------------------------------

template <class Ref>
QUARRY_DEVICE std::uint32_t kd_build<Ref>::split_node(std::uint32_t id) const {
  const kd_node node = args_.nodes[id];
  if (node.count > args_.part && open_team(id)) return none;
  const kd_planes planes[3] = {kd_planes::across(node.box, 0), kd_planes::across(node.box, 1),
                               kd_planes::across(node.box, 2)};
  const kd_split split = count(node, planes, 0, node.count).choose(planes, node.box, node.count);
  if (!split.found() || !make_children(id, split)) return none;
  std::uint32_t placed[2] = {};
  share(args_.nodes[id], 0, node.count, [&](unsigned side, mask who) {
    const std::uint32_t first = placed[side];
    placed[side] += simt::popc(who);
    return first;
  });
  if ((placed[0] != split.left || placed[1] != split.right) && simt::lane_id() == 0)
    args_.counters->fail(kd_failure::corrupt, node.count);
  return finish_split(id);
}

// ---- a node by a team --------------------------------------------------------------------------

/// false: there is none left.
template <class Ref>
QUARRY_DEVICE bool kd_build<Ref>::open_team(std::uint32_t id) const {
  const std::uint32_t parts = ceil_div(args_.nodes[id].count, args_.part);
  std::uint32_t number = 0;
  simt::sync_warp(all);  // all have read the node
  if (simt::lane_id() == 0) {
    number = word(args_.counters->teams).fetch_add(1, simt::relaxed);
    if (number < args_.most_teams) {
      args_.nodes[id].team = number;
      args_.teams[number].parts = args_.teams[number].left = parts;  // its bins are zero
    }
  }
  number = simt::shuffle(all, number, 0);
  if (number >= args_.most_teams) return false;
  args_.queue.push_parts({kd_step::count, 0, id}, parts);
  return true;
}

template <class Ref>
QUARRY_DEVICE std::uint32_t kd_build<Ref>::count_part(kd_task task) const {
  const kd_node node = args_.nodes[task.node];
  kd_team& team = args_.teams[node.team];
  const kd_planes planes[3] = {kd_planes::across(node.box, 0), kd_planes::across(node.box, 1),
                               kd_planes::across(node.box, 2)};
  const unsigned lane = simt::lane_id();
  kd_bins bins = count(node, planes, task.part * args_.part, part_end(node, task.part));
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (bins.passed[axis] != 0) word(team.bins[axis][lane]).add(bins.passed[axis], simt::relaxed);
    if (bins.begun[axis] != 0) word(team.bins[3 + axis][lane]).add(bins.begun[axis], simt::relaxed);
  }
  if (!last_of(team)) return none;
  for (unsigned axis = 0; axis < 3; ++axis) {
    bins.passed[axis] = word(team.bins[axis][lane]).load(simt::relaxed);
    bins.begun[axis] = word(team.bins[3 + axis][lane]).load(simt::relaxed);
  }
  const kd_split split = bins.choose(planes, node.box, node.count);
  if (!split.found() || !make_children(task.node, split)) return none;
  const std::uint32_t parts = team.parts;
  if (lane == 0) {
    team.left = parts;
    team.placed[0] = team.placed[1] = 0;
  }
  args_.queue.push_parts({kd_step::share, 0, task.node}, parts);
  return none;
}

template <class Ref>
QUARRY_DEVICE std::uint32_t kd_build<Ref>::share_part(kd_task task) const {
  const kd_node node = args_.nodes[task.node];
  kd_team& team = args_.teams[node.team];
  share(node, task.part * args_.part, part_end(node, task.part), [&](unsigned side, mask who) {
    std::uint32_t first = 0;
    if (simt::lane_id() == 0)
      first = word(team.placed[side]).fetch_add(simt::popc(who), simt::relaxed);
    return simt::shuffle(all, first, 0);
  });
  if (!last_of(team)) return none;
  if (simt::lane_id() == 0)
    for (unsigned side = 0; side < 2; ++side)
      if (word(team.placed[side]).load(simt::relaxed) != args_.nodes[node.child + side].count)
        args_.counters->fail(kd_failure::corrupt, node.count);
  return finish_split(task.node);
}

/// Whether all other parts are finished; then all that they wrote is there for this warp.
template <class Ref>
QUARRY_DEVICE bool kd_build<Ref>::last_of(kd_team& team) const {
  simt::sync_warp(all);
  std::uint32_t left = 0;
  if (simt::lane_id() == 0) left = word(team.left).fetch_sub(1, simt::acq_rel);
  left = simt::shuffle(all, left, 0);
  simt::sync_warp(all);
  return left == 1;
}

// ---- what both do ------------------------------------------------------------------------------

template <class Ref>
QUARRY_DEVICE kd_bins kd_build<Ref>::count(const kd_node& node, const kd_planes (&planes)[3],
                                           std::uint32_t from, std::uint32_t to) const {
  kd_bins bins;
  for (; from < to; from += simt::warp_size) {
    const std::uint32_t at = from + simt::lane_id();
    std::uint32_t triangle = 0;
    const bool mine = at < to && read(node, at, triangle);
    bins.add(planes, mine ? args_.boxes[triangle] : kd_box(), simt::ballot(all, mine));
  }
  return bins;
}

/// Where the lanes `who` of a side go: place(side, who) is the first of as many places.
template <class Ref>
template <class Place>
QUARRY_DEVICE void kd_build<Ref>::share(const kd_node& node, std::uint32_t from, std::uint32_t to,
                                        Place place) const {
  const kd_node& left = args_.nodes[node.child];
  const kd_node& right = args_.nodes[node.child + 1];
  std::uint32_t* const lists[2] = {left.list, right.list};
  const std::uint32_t counts[2] = {left.count, right.count};
  for (; from < to; from += simt::warp_size) {
    const std::uint32_t at = from + simt::lane_id();
    std::uint32_t triangle = 0;
    const bool mine = at < to && read(node, at, triangle);
    const kd_box box = mine ? args_.boxes[triangle] : kd_box();
    const bool goes[2] = {mine && goes_left(box, node.axis, node.plane),
                          mine && goes_right(box, node.axis, node.plane)};
    for (unsigned side = 0; side < 2; ++side) {
      const mask who = simt::ballot(all, goes[side]);
      const std::uint32_t to_place = place(side, who) + simt::popc(who & simt::lanes_below());
      if (goes[side] && to_place < counts[side]) lists[side][to_place] = triangle;
    }
  }
}

/// false: there was no room for them, and there are none.
template <class Ref>
QUARRY_DEVICE bool kd_build<Ref>::make_children(std::uint32_t id, const kd_split& split) const {
  std::uint32_t child = 0;
  simt::sync_warp(all);  // all have read the node
  if (simt::lane_id() == 0) {
    kd_node& node = args_.nodes[id];
    std::uint32_t* const left = allocate(split.left);
    std::uint32_t* const right = allocate(split.right);
    const bool served =
        (left != nullptr || split.left == 0) && (right != nullptr || split.right == 0);
    if (served) child = word(args_.counters->nodes).fetch_add(2, simt::relaxed);
    if (served && child + 2 <= args_.most_nodes) {
      const auto depth = static_cast<std::uint16_t>(node.depth + 1);
      args_.nodes[child] = {left_part(node.box, split), left, split.left, 0, 0, 0, 3, depth};
      args_.nodes[child + 1] = {right_part(node.box, split), right, split.right, 0, 0, 0, 3, depth};
      node.child = child;
      node.plane = split.plane;
      node.axis = static_cast<std::uint16_t>(split.axis);
    } else {
      args_.counters->fail(served ? kd_failure::no_nodes : kd_failure::no_memory, node.count);
      release(left);
      release(right);
      child = 0;
    }
  }
  child = simt::shuffle(all, child, 0);
  simt::sync_warp(all);
  return child != 0;
}

/// The list is no longer needed; of the children that are no leaves one is done next, the other by
/// who takes it.
template <class Ref>
QUARRY_DEVICE std::uint32_t kd_build<Ref>::finish_split(std::uint32_t id) const {
  simt::sync_warp(all);
  std::uint32_t next = none;
  if (simt::lane_id() == 0) {
    kd_node& node = args_.nodes[id];
    release(node.list);
    node.list = nullptr;
    for (unsigned side = 0; side < 2; ++side) {
      const kd_node& child = args_.nodes[node.child + side];
      if (!args_.limits.may_split(child.count, child.depth)) continue;
      if (next == none) {
        next = node.child + side;
      } else {
        args_.queue.push({kd_step::node, 0, node.child + side});
      }
    }
    if (args_.counters->failed()) next = none;
  }
  next = simt::shuffle(all, next, 0);
  simt::sync_warp(all);
  return next;
}

}  // namespace quarry::apps

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Member functions of kd_build: splitting a node by one warp, cooperatively, and their common
/// steps.

#include "apps/kd_tree/build.hpp"

namespace quarry::apps {

// ---- split by one warp -------------------------------------------------------------------------

template <class Ref>
QUARRY_DEVICE std::uint32_t kd_build<Ref>::split_node(std::uint32_t id) const {
  const kd_node node = args_.nodes[id];
  if (node.count > args_.chunk && begin_cooperative_split(id)) return none;
  const kd_planes planes[3] = {kd_planes::across(node.box, 0), kd_planes::across(node.box, 1),
                               kd_planes::across(node.box, 2)};
  const kd_split split =
      histogram(node, planes, 0, node.count).choose(planes, node.box, node.count);
  if (!split.found() || !make_children(id, split)) return none;
  std::uint32_t placed[2] = {};
  partition(args_.nodes[id], 0, node.count, [&](unsigned side, mask lanes) {
    const std::uint32_t first = placed[side];
    placed[side] += simt::popc(lanes);
    return first;
  });
  if ((placed[0] != split.left || placed[1] != split.right) && simt::lane_id() == 0)
    args_.counters->fail(kd_failure::corrupt, node.count);
  return finish_split(id);
}

// ---- cooperative split -------------------------------------------------------------------------

/// Returns false if all cooperative splits are in use.
template <class Ref>
QUARRY_DEVICE bool kd_build<Ref>::begin_cooperative_split(std::uint32_t id) const {
  const std::uint32_t chunks = ceil_div(args_.nodes[id].count, args_.chunk);
  std::uint32_t number = 0;
  simt::sync_warp(all);  // every lane has read the node
  if (simt::lane_id() == 0) {
    number = word(args_.counters->cooperative_splits).fetch_add(1, simt::relaxed);
    if (number < args_.max_cooperative_splits) {
      args_.nodes[id].cooperative_split = number;
      kd_cooperative_split& shared = args_.cooperative_splits[number];  // its bins are zero
      shared.chunks = shared.remaining = chunks;
    }
  }
  number = simt::shuffle(all, number, 0);
  if (number >= args_.max_cooperative_splits) return false;
  args_.queue.push_chunks({kd_step::histogram, 0, id}, chunks);
  return true;
}

template <class Ref>
QUARRY_DEVICE std::uint32_t kd_build<Ref>::histogram_chunk(kd_task task) const {
  const kd_node node = args_.nodes[task.node];
  kd_cooperative_split& shared = args_.cooperative_splits[node.cooperative_split];
  const kd_planes planes[3] = {kd_planes::across(node.box, 0), kd_planes::across(node.box, 1),
                               kd_planes::across(node.box, 2)};
  const unsigned lane = simt::lane_id();
  kd_bins bins = histogram(node, planes, task.chunk * args_.chunk, chunk_end(node, task.chunk));
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (bins.entries[axis] != 0)
      word(shared.bins[axis][lane]).add(bins.entries[axis], simt::relaxed);
    if (bins.exits[axis] != 0)
      word(shared.bins[3 + axis][lane]).add(bins.exits[axis], simt::relaxed);
  }
  if (!finish_chunk(shared)) return none;
  for (unsigned axis = 0; axis < 3; ++axis) {
    bins.entries[axis] = word(shared.bins[axis][lane]).load(simt::relaxed);
    bins.exits[axis] = word(shared.bins[3 + axis][lane]).load(simt::relaxed);
  }
  const kd_split split = bins.choose(planes, node.box, node.count);
  if (!split.found() || !make_children(task.node, split)) return none;
  const std::uint32_t chunks = shared.chunks;
  if (lane == 0) {
    shared.remaining = chunks;
    shared.placed[0] = shared.placed[1] = 0;
  }
  args_.queue.push_chunks({kd_step::partition, 0, task.node}, chunks);
  return none;
}

template <class Ref>
QUARRY_DEVICE std::uint32_t kd_build<Ref>::partition_chunk(kd_task task) const {
  const kd_node node = args_.nodes[task.node];
  kd_cooperative_split& shared = args_.cooperative_splits[node.cooperative_split];
  partition(node, task.chunk * args_.chunk, chunk_end(node, task.chunk),
            [&](unsigned side, mask lanes) {
              std::uint32_t first = 0;
              if (simt::lane_id() == 0)
                first = word(shared.placed[side]).fetch_add(simt::popc(lanes), simt::relaxed);
              return simt::shuffle(all, first, 0);
            });
  if (!finish_chunk(shared)) return none;
  if (simt::lane_id() == 0)
    for (unsigned side = 0; side < 2; ++side)
      if (word(shared.placed[side]).load(simt::relaxed) != args_.nodes[node.child + side].count)
        args_.counters->fail(kd_failure::corrupt, node.count);
  return finish_split(task.node);
}

/// Counts a chunk as finished. Returns whether it was the last one; then the writes of all other
/// chunks are visible to this warp.
template <class Ref>
QUARRY_DEVICE bool kd_build<Ref>::finish_chunk(kd_cooperative_split& shared) const {
  simt::sync_warp(all);
  std::uint32_t left = 0;
  if (simt::lane_id() == 0) left = word(shared.remaining).fetch_sub(1, simt::acq_rel);
  left = simt::shuffle(all, left, 0);
  simt::sync_warp(all);
  return left == 1;
}

// ---- common steps ------------------------------------------------------------------------------

template <class Ref>
QUARRY_DEVICE kd_bins kd_build<Ref>::histogram(const kd_node& node, const kd_planes (&planes)[3],
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

/// Distributes the triangles [from, to) of a node to its children's lists. reserve(side, lanes)
/// returns the first of popc(lanes) consecutive positions in the list of a side.
template <class Ref>
template <class Reserve>
QUARRY_DEVICE void kd_build<Ref>::partition(const kd_node& node, std::uint32_t from,
                                            std::uint32_t to, Reserve reserve) const {
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
      const mask lanes = simt::ballot(all, goes[side]);
      const std::uint32_t position = reserve(side, lanes) + simt::popc(lanes & simt::lanes_below());
      if (goes[side] && position < counts[side]) lists[side][position] = triangle;
    }
  }
}

/// Allocates the children of a node. Returns false, and records the failure, if there is no room.
template <class Ref>
QUARRY_DEVICE bool kd_build<Ref>::make_children(std::uint32_t id, const kd_split& split) const {
  std::uint32_t child = 0;
  simt::sync_warp(all);  // every lane has read the node
  if (simt::lane_id() == 0) {
    kd_node& node = args_.nodes[id];
    std::uint32_t* const left = allocate(split.left);
    std::uint32_t* const right = allocate(split.right);
    const bool served =
        (left != nullptr || split.left == 0) && (right != nullptr || split.right == 0);
    if (served) child = word(args_.counters->nodes).fetch_add(2, simt::relaxed);
    if (served && child + 2 <= args_.max_nodes) {
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

/// Frees the list of a node that has been split. Returns the first child that is not a leaf, for
/// this warp to continue with, and pushes the other one into the queue.
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
        args_.queue.push({kd_step::split, 0, node.child + side});
      }
    }
    if (args_.counters->failed()) next = none;
  }
  next = simt::shuffle(all, next, 0);
  simt::sync_warp(all);
  return next;
}

}  // namespace quarry::apps

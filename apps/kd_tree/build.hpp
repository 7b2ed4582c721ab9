// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_build: the kernel that builds a kd-tree, the workload [DS] of Vinkler and Havran (2014).
///
/// Warps stay until the tree is done and take their tasks from a queue. A task is a node with a
/// list of its triangles. The warp bins them, chooses the split, has the heap give it lists for the
/// two children, one lane asking for the warp, sends every triangle left, right or both ways, and
/// frees the node's list. It goes on with one child and leaves the other to the queue. Leaves keep
/// their lists.
///
///   node    | box | list ─▶ heap | count | child … |     a pair of children lies side by side
///
/// A node with more than `part` triangles is a team's. Any warps count its parts into bins in
/// memory; the last to finish chooses the split and makes the children; any warps share the parts
/// out, and the last of them frees the list. Nobody waits for another: what is left to do is done
/// by who comes last. Counts are whole numbers, so a team finds the split that one warp would find;
/// only the order inside a list depends on who was first. When all teams are taken a warp does the
/// node alone.
///
/// Failure: who gets no list says so in the counters and makes no children; all end with the task
/// they have. Whatever was allocated is held by a node, so that kd_clear frees it. A list that
/// holds something else than was written (a heap that hands out memory in use) is a failure too:
/// numbers are looked at before they are used, and nothing is written beyond a list's end.

#include "apps/kd_tree/bins.hpp"
#include "apps/kd_tree/queue.hpp"
#include "apps/kd_tree/rules.hpp"
#include "apps/kd_tree/tree.hpp"

#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>

#include <cstdint>

namespace quarry::apps {

struct alignas(16) kd_node {
  kd_box box;
  std::uint32_t* list = nullptr;  // its triangles; nullptr: it has none, or its children have them
  std::uint32_t count = 0;
  std::uint32_t child = 0;  // the left one; 0: a leaf, or not split yet
  std::uint32_t plane = 0;
  std::uint32_t team = 0;
  std::uint16_t axis = 3;
  std::uint16_t depth = 0;
};
static_assert(sizeof(kd_node) == 48);

struct kd_team {
  std::uint32_t bins[6][simt::warp_size];  // passed, then begun, of each axis
  std::uint32_t parts;
  std::uint32_t left;       // parts that are not finished
  std::uint32_t placed[2];  // triangles in the left child's list, in the right one's
};

/// Everything but the heap.
struct kd_build_arguments {
  const kd_box* boxes;  // of the triangles
  std::uint32_t triangles;
  std::uint32_t part;
  kd_limits limits;
  kd_node* nodes;  // the root is the first
  std::uint32_t most_nodes;
  std::uint32_t most_teams;
  kd_team* teams;
  kd_counters* counters;
  kd_queue queue;
};

template <class Ref>
class kd_build {
 public:
  kd_build(const Ref& heap, const kd_build_arguments& args) : heap_(heap), args_(args) {}

  QUARRY_DEVICE void operator()() const {
    for (;;) {
      std::uint64_t word = 0;
      if (simt::lane_id() == 0) word = args_.queue.take();
      word = simt::shuffle(simt::full_warp, word, 0);
      if (word == 0) return;
      simt::sync_warp(simt::full_warp);  // what one lane acquired all may read
      const kd_task task = kd_task::unpack(word);
      std::uint32_t next = task.step == kd_step::count   ? count_part(task)
                           : task.step == kd_step::share ? share_part(task)
                                                         : task.node;
      while (next != none) next = split_node(next);
      if (simt::lane_id() == 0) args_.queue.finish();
    }
  }

 private:
  using mask = simt::lane_mask;
  static constexpr mask all = simt::full_warp;
  static constexpr std::uint32_t none = ~0u;

  // ---- the whole warp, for one node; each returns the node to go on with, or none --------------

  QUARRY_DEVICE std::uint32_t split_node(std::uint32_t id) const;
  QUARRY_DEVICE std::uint32_t count_part(kd_task task) const;
  QUARRY_DEVICE std::uint32_t share_part(kd_task task) const;

  // ---- the whole warp --------------------------------------------------------------------------

  QUARRY_DEVICE bool open_team(std::uint32_t id) const;
  QUARRY_DEVICE kd_bins count(const kd_node& node, const kd_planes (&planes)[3], std::uint32_t from,
                              std::uint32_t to) const;
  template <class Place>
  QUARRY_DEVICE void share(const kd_node& node, std::uint32_t from, std::uint32_t to,
                           Place place) const;
  QUARRY_DEVICE bool make_children(std::uint32_t id, const kd_split& split) const;
  QUARRY_DEVICE std::uint32_t finish_split(std::uint32_t id) const;
  QUARRY_DEVICE bool last_of(kd_team& team) const;

  // ---- one lane --------------------------------------------------------------------------------

  /// The number at a place of a list, if it can be one.
  QUARRY_DEVICE bool read(const kd_node& node, std::uint32_t at, std::uint32_t& triangle) const {
    triangle = node.list[at];
    if (triangle < args_.triangles) return true;
    args_.counters->fail(kd_failure::corrupt, node.count);
    return false;
  }
  QUARRY_DEVICE std::uint32_t* allocate(std::uint32_t count) const {
    return count == 0 ? nullptr : static_cast<std::uint32_t*>(heap_.malloc(kd_list_bytes(count)));
  }
  QUARRY_DEVICE void release(void* list) const {
    if constexpr (Ref::can.frees_one) heap_.free(list);
  }
  QUARRY_DEVICE static simt::atomic_ref<std::uint32_t> word(std::uint32_t& w) {
    return simt::atomic_ref<std::uint32_t>(w);
  }
  QUARRY_DEVICE std::uint32_t part_end(const kd_node& node, std::uint32_t part) const {
    const std::uint32_t end = (part + 1) * args_.part;
    return end < node.count ? end : node.count;
  }

  Ref heap_;
  kd_build_arguments args_;
};

}  // namespace quarry::apps

#include "apps/kd_tree/build_impl.hpp"  // IWYU pragma: export

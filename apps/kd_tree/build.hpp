// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_build: the kernel that builds a kd-tree, the workload [DS] of Vinkler and Havran (2014).
///
/// The kernel is persistent: its warps take tasks from a queue until the tree is complete. A task
/// is a node with the list of its triangles. The warp
///   1. computes the histogram of the triangles and chooses the split,
///   2. allocates the lists of the two children; one lane calls malloc for the warp,
///   3. partitions the triangles into the children's lists; a straddling triangle goes into both,
///   4. frees the node's list, continues with one child, and pushes the other into the queue.
/// Leaves keep their lists.
///
///   node    | box | list ─▶ heap | count | child … |     the two children are adjacent
///
/// Cooperative split: a node with more than `chunk` triangles is divided into chunks that any warps
/// process. Each warp adds the histogram of its chunk to a shared histogram; the warp that finishes
/// the last chunk chooses the split and creates the children. Then any warps partition the chunks,
/// and the warp that finishes the last chunk frees the list. No warp waits for another one. Counts
/// are integers, so the split is the one that a single warp would choose; only the order within a
/// list depends on the schedule. When no cooperative split is available, one warp processes the
/// node.
///
/// Failure: a warp that fails to allocate records the failure in the counters and creates no
/// children; every warp stops after its current task. Every allocated list is referenced by a node,
/// so that kd_free_lists frees it. A list whose contents changed (the heap handed out memory in
/// use) is a failure too: triangle numbers are validated before use, and writes are bounds-checked.

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
  std::uint32_t* list = nullptr;  // its triangles; nullptr: no triangles, or already split
  std::uint32_t count = 0;
  std::uint32_t child = 0;  // left child; 0: a leaf, or not split yet
  std::uint32_t plane = 0;
  std::uint32_t cooperative_split = 0;
  std::uint16_t axis = 3;
  std::uint16_t depth = 0;
};
static_assert(sizeof(kd_node) == 48);

struct kd_cooperative_split {
  std::uint32_t bins[6][simt::warp_size];  // entries of the three axes, then exits
  std::uint32_t chunks;
  std::uint32_t remaining;  // chunks not finished
  std::uint32_t placed[2];  // triangles written to the left and the right child's list
};

/// The arguments of the kernels, apart from the heap.
struct kd_build_arguments {
  const kd_box* boxes;  // by triangle
  std::uint32_t triangles;
  std::uint32_t chunk;  // triangles per chunk
  kd_limits limits;
  kd_node* nodes;  // nodes[0] is the root
  std::uint32_t max_nodes;
  std::uint32_t max_cooperative_splits;
  kd_cooperative_split* cooperative_splits;
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
      simt::sync_warp(simt::full_warp);  // lane 0 acquired the task for all lanes
      const kd_task task = kd_task::unpack(word);
      std::uint32_t next = task.step == kd_step::histogram   ? histogram_chunk(task)
                           : task.step == kd_step::partition ? partition_chunk(task)
                                                             : task.node;
      while (next != none) next = split_node(next);
      if (simt::lane_id() == 0) args_.queue.finish();
    }
  }

 private:
  using mask = simt::lane_mask;
  static constexpr mask all = simt::full_warp;
  static constexpr std::uint32_t none = ~0u;

  // ---- tasks; collective. Each returns the node to continue with, or none ----------------------

  QUARRY_DEVICE std::uint32_t split_node(std::uint32_t id) const;
  QUARRY_DEVICE std::uint32_t histogram_chunk(kd_task task) const;
  QUARRY_DEVICE std::uint32_t partition_chunk(kd_task task) const;

  // ---- collective over the warp ----------------------------------------------------------------

  QUARRY_DEVICE bool begin_cooperative_split(std::uint32_t id) const;
  QUARRY_DEVICE kd_bins histogram(const kd_node& node, const kd_planes (&planes)[3],
                                  std::uint32_t from, std::uint32_t to) const;
  template <class Reserve>
  QUARRY_DEVICE void partition(const kd_node& node, std::uint32_t from, std::uint32_t to,
                               Reserve reserve) const;
  QUARRY_DEVICE bool make_children(std::uint32_t id, const kd_split& split) const;
  QUARRY_DEVICE std::uint32_t finish_split(std::uint32_t id) const;
  QUARRY_DEVICE bool finish_chunk(kd_cooperative_split& shared) const;

  // ---- called by single lanes ------------------------------------------------------------------

  /// Loads a triangle number from a list. Returns false, and records a failure, if it is invalid.
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
  QUARRY_DEVICE std::uint32_t chunk_end(const kd_node& node, std::uint32_t chunk) const {
    const std::uint32_t end = (chunk + 1) * args_.chunk;
    return end < node.count ? end : node.count;
  }

  Ref heap_;
  kd_build_arguments args_;
};

}  // namespace quarry::apps

#include "apps/kd_tree/build_inl.hpp"  // IWYU pragma: export

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the dynamic graph. One warp processes one run of a batch (graph.hpp); one lane
/// calls malloc and free for the warp.
///
///   vertex    | list ─▶ heap | degree | capacity |     capacity: 0, or a power of two >= 4
///
///   init      allocates the lists of vertices without edges
///   insert    appends the targets that the list does not contain; a full list is reallocated with
///             the next power of two that holds all edges
///   erase     removes the targets of the run; a list that is at most a quarter full is reallocated
///             with twice its degree, and an empty list is freed
///   clear     frees all lists; one lane per vertex
///
/// A failed allocation is counted and ends the run; the vertex keeps the edges that its list holds.
/// If shrinking fails, the list stays as it is. If the allocator cannot free single blocks, lists
/// only grow, and old lists are abandoned.

#include "apps/graph/graph.hpp"

#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>

#include <cstdint>

namespace quarry::apps {

struct alignas(16) graph_vertex {
  std::uint32_t* list = nullptr;
  std::uint32_t degree = 0;
  std::uint32_t capacity = 0;
};

/// The memory that a vertex has requested from the heap.
struct graph_requested {
  std::uint32_t lists = 0;
  std::uint32_t edges = 0;  // total capacity of these lists
};

/// The arguments of the kernels, apart from the heap: the graph and one batch.
struct graph_kernel_arguments {
  graph_vertex* vertices;
  graph_requested* requested;  // by vertex
  const graph_run* runs;
  std::uint32_t run_count;
  const std::uint32_t* targets;
  std::uint32_t* failures;
};

QUARRY_DEVICE constexpr std::uint32_t graph_capacity_for(std::uint32_t edges) {
  return edges <= 4 ? 4 : 1u << log2_ceil(edges);
}

template <class Ref>
class graph_warp {
 public:
  QUARRY_DEVICE graph_warp(const Ref& heap, const graph_kernel_arguments& args)
      : heap_(&heap), args_(&args) {
    const std::uint64_t number = simt::global_thread() / simt::warp_size;
    active_ = number < args.run_count;
    if (!active_) return;
    run_ = args.runs[number];
    vertex_ = args.vertices[run_.vertex];
  }

  /// Returns whether this warp has a run; equal at all lanes.
  QUARRY_DEVICE bool active() const { return active_; }

  QUARRY_DEVICE void init() {
    if (!move(graph_capacity_for(run_.count))) return fail();
    for (std::uint32_t i = simt::lane_id(); i < run_.count; i += simt::warp_size)
      vertex_.list[i] = target(i);
    vertex_.degree = run_.count;
  }

  QUARRY_DEVICE void insert() {
    for (std::uint32_t from = 0; from < run_.count; from += simt::warp_size) {
      const std::uint32_t at = from + simt::lane_id();
      const std::uint32_t mine = at < run_.count ? target(at) : 0;
      const bool fresh = at < run_.count && !list_contains(mine);
      const simt::lane_mask lanes = simt::ballot(all, fresh);
      const std::uint32_t degree = vertex_.degree + simt::popc(lanes);
      if (degree > vertex_.capacity && !move(graph_capacity_for(degree))) return fail();
      if (fresh) vertex_.list[vertex_.degree + simt::popc(lanes & simt::lanes_below())] = mine;
      vertex_.degree = degree;
      simt::sync_warp(all);
    }
  }

  QUARRY_DEVICE void erase() {
    std::uint32_t kept = 0;
    for (std::uint32_t from = 0; from < vertex_.degree; from += simt::warp_size) {
      const std::uint32_t at = from + simt::lane_id();
      const std::uint32_t mine = at < vertex_.degree ? vertex_.list[at] : 0;
      const bool stays = at < vertex_.degree && !run_contains(mine);
      const simt::lane_mask lanes = simt::ballot(all, stays);
      simt::sync_warp(all);  // all lanes read before any lane writes
      if (stays) vertex_.list[kept + simt::popc(lanes & simt::lanes_below())] = mine;
      kept += simt::popc(lanes);
    }
    vertex_.degree = kept;
    simt::sync_warp(all);
    if constexpr (Ref::can.frees_one) shrink();
  }

  /// Writes the vertex back to memory.
  QUARRY_DEVICE void store() const {
    simt::sync_warp(all);
    if (simt::lane_id() == 0) args_->vertices[run_.vertex] = vertex_;
  }

 private:
  static constexpr simt::lane_mask all = simt::full_warp;

  QUARRY_DEVICE std::uint32_t target(std::uint32_t i) const {
    return args_->targets[run_.first + i];
  }

  /// Returns whether the list contains `wanted`. Each lane searches for a different target, so the
  /// scan is not cut short when one lane has found its target.
  QUARRY_DEVICE bool list_contains(std::uint32_t wanted) const {
    bool found = false;
    for (std::uint32_t i = 0; i < vertex_.degree; ++i) found |= vertex_.list[i] == wanted;
    return found;
  }
  /// Returns whether the run contains `wanted`, by binary search.
  QUARRY_DEVICE bool run_contains(std::uint32_t wanted) const {
    std::uint32_t low = 0, high = run_.count;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (target(middle) < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < run_.count && target(low) == wanted;
  }

  QUARRY_DEVICE void shrink() {
    if (vertex_.degree == 0) {
      release();
      vertex_ = graph_vertex{};
    } else if (vertex_.degree <= vertex_.capacity / 4 && vertex_.capacity > 4) {
      (void)move(graph_capacity_for(2 * vertex_.degree));
    }
  }
  /// Moves the list to a block of another capacity. Returns false if the allocation fails.
  QUARRY_DEVICE bool move(std::uint32_t capacity) {
    std::uint32_t* list = nullptr;
    if (simt::lane_id() == 0)
      list = static_cast<std::uint32_t*>(heap_->malloc(std::uint64_t{capacity} * sizeof *list));
    list = simt::shuffle(all, list, 0);
    if (list == nullptr) return false;
    simt::sync_warp(all);  // orders lane 0's malloc before the writes of all lanes
    for (std::uint32_t i = simt::lane_id(); i < vertex_.degree; i += simt::warp_size)
      list[i] = vertex_.list[i];
    simt::sync_warp(all);
    release();
    if (simt::lane_id() == 0) {
      graph_requested& requested = args_->requested[run_.vertex];
      requested = {requested.lists + 1, requested.edges + capacity};
    }
    vertex_.list = list;
    vertex_.capacity = capacity;
    return true;
  }
  QUARRY_DEVICE void release() const {
    if constexpr (Ref::can.frees_one)
      if (simt::lane_id() == 0) heap_->free(vertex_.list);
  }
  QUARRY_DEVICE void fail() const {
    if (simt::lane_id() == 0)
      simt::atomic_ref<std::uint32_t>(*args_->failures).add(1, simt::relaxed);
  }

  const Ref* heap_;
  const graph_kernel_arguments* args_;
  bool active_ = false;
  graph_run run_{};
  graph_vertex vertex_;
};

enum class graph_change : std::uint8_t { init, insert, erase };

template <class Ref, graph_change Change>
struct graph_kernel {
  Ref heap;
  graph_kernel_arguments args;

  QUARRY_DEVICE void operator()() const {
    graph_warp<Ref> warp(heap, args);
    if (!warp.active()) return;
    if constexpr (Change == graph_change::init) warp.init();
    if constexpr (Change == graph_change::insert) warp.insert();
    if constexpr (Change == graph_change::erase) warp.erase();
    warp.store();
  }
};

template <class Ref>
struct graph_clear {
  Ref heap;
  graph_vertex* vertices;
  std::uint32_t count;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t i = simt::global_thread();
    if (i >= count) return;
    if constexpr (Ref::can.frees_one) heap.free(vertices[i].list);
    vertices[i] = graph_vertex{};
  }
};

/// Concatenates all adjacency lists; one warp per vertex.
struct graph_gather {
  const graph_vertex* vertices;
  std::uint32_t count;
  const std::uint64_t* offsets;
  std::uint32_t* out;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t v = simt::global_thread() / simt::warp_size;
    if (v >= count) return;
    for (std::uint32_t i = simt::lane_id(); i < vertices[v].degree; i += simt::warp_size)
      out[offsets[v] + i] = vertices[v].list[i];
  }
};

}  // namespace quarry::apps

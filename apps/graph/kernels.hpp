// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of a graph that changes inside kernels: a warp a run of a batch (graph.hpp), one
/// lane asking the heap.
///
///   vertex    | list ─▶ heap | degree | capacity |     capacity: a power of two, 4 at least; 0: none
///
///   graph_init      gives vertices without edges their first ones
///   graph_insert    adds the targets that are not there; a list that is full moves to the next power
///                   of two that holds it
///   graph_erase     keeps the targets that are not in the run; a list that is three quarters empty
///                   moves to twice its degree, one without edges is freed
///   graph_clear     frees all lists; a lane a vertex
///
/// A run that gets no memory counts as a failure and ends; its vertex has the edges that had room.
/// A list that can not move to a smaller one stays. Where the allocator frees nothing, lists only
/// grow and old ones are left behind.

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

/// What a vertex has asked the heap for.
struct graph_asked {
  std::uint32_t lists = 0;
  std::uint32_t edges = 0;  // that these had room for
};

/// What a batch is to a kernel.
struct graph_kernel_arguments {
  graph_vertex* vertices;
  graph_asked* asked;  // of each vertex
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
    works_ = number < args.run_count;
    if (!works_) return;
    run_ = args.runs[number];
    vertex_ = args.vertices[run_.vertex];
  }

  /// The same in all lanes.
  QUARRY_DEVICE bool works() const { return works_; }

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
      const bool fresh = at < run_.count && !has(mine);
      const simt::lane_mask who = simt::ballot(all, fresh);
      const std::uint32_t degree = vertex_.degree + simt::popc(who);
      if (degree > vertex_.capacity && !move(graph_capacity_for(degree))) return fail();
      if (fresh) vertex_.list[vertex_.degree + simt::popc(who & simt::lanes_below())] = mine;
      vertex_.degree = degree;
      simt::sync_warp(all);
    }
  }

  QUARRY_DEVICE void erase() {
    std::uint32_t kept = 0;
    for (std::uint32_t from = 0; from < vertex_.degree; from += simt::warp_size) {
      const std::uint32_t at = from + simt::lane_id();
      const std::uint32_t mine = at < vertex_.degree ? vertex_.list[at] : 0;
      const bool stays = at < vertex_.degree && !in_run(mine);
      const simt::lane_mask who = simt::ballot(all, stays);
      simt::sync_warp(all);  // all have read before anybody writes
      if (stays) vertex_.list[kept + simt::popc(who & simt::lanes_below())] = mine;
      kept += simt::popc(who);
    }
    vertex_.degree = kept;
    simt::sync_warp(all);
    if constexpr (Ref::can.frees_one) shrink();
  }

  /// What became of the vertex, for later kernels.
  QUARRY_DEVICE void store() const {
    simt::sync_warp(all);
    if (simt::lane_id() == 0) args_->vertices[run_.vertex] = vertex_;
  }

 private:
  static constexpr simt::lane_mask all = simt::full_warp;

  QUARRY_DEVICE std::uint32_t target(std::uint32_t i) const {
    return args_->targets[run_.first + i];
  }

  /// Every lane looks for another target in the whole list: no lane waits for what another one
  /// finds.
  QUARRY_DEVICE bool has(std::uint32_t wanted) const {
    bool found = false;
    for (std::uint32_t i = 0; i < vertex_.degree; ++i) found |= vertex_.list[i] == wanted;
    return found;
  }
  /// By halves: a run is sorted.
  QUARRY_DEVICE bool in_run(std::uint32_t wanted) const {
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
  /// To a list of another capacity, if there is memory.
  QUARRY_DEVICE bool move(std::uint32_t capacity) {
    std::uint32_t* list = nullptr;
    if (simt::lane_id() == 0)
      list = static_cast<std::uint32_t*>(heap_->malloc(std::uint64_t{capacity} * sizeof *list));
    list = simt::shuffle(all, list, 0);
    if (list == nullptr) return false;
    simt::sync_warp(all);  // the block is free for all lanes, not only for the one that asked
    for (std::uint32_t i = simt::lane_id(); i < vertex_.degree; i += simt::warp_size)
      list[i] = vertex_.list[i];
    simt::sync_warp(all);
    release();
    if (simt::lane_id() == 0) {
      graph_asked& asked = args_->asked[run_.vertex];
      asked = {asked.lists + 1, asked.edges + capacity};
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
  bool works_ = false;
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
    if (!warp.works()) return;
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

/// All lists, one after the other; a warp a vertex.
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

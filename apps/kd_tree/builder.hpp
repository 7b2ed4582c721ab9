// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_builder: builds kd-trees in the heap of a backend, one after the other, and copies them to
/// the host.
///
///   const kd_input input = make_kd_input(scene);
///   kd_builder<slab, cuda> builder(input, kd_limits::default_for(scene.size()), 1_GiB);
///   builder.build();                 // one kernel; throws out_of_memory
///   kd_tree tree = builder.tree();
///   builder.clear();                 // frees the lists of the leaves
///
/// If the allocator cannot free single blocks, clear() resets the heap.

#include "apps/kd_tree/build.hpp"
#include "apps/kd_tree/grid.hpp"
#include "apps/kd_tree/persistent_grid.hpp"
#include "apps/kd_tree/tree.hpp"

#include <quarry/heap.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quarry::apps {

/// Launch configuration and capacities. The tree does not depend on them.
struct kd_build_config {
  std::uint32_t chunk = 1024;                       // triangles per chunk of a cooperative split
  std::uint32_t threads = 128;                      // threads per block
  std::uint32_t blocks = 0;                         // 0: as many as the device runs concurrently
  std::uint32_t nodes_per_triangle = 16;            // capacity of the node array, plus a constant
  std::uint32_t max_cooperative_splits = 1u << 20;  // upper bound; fewer for small scenes
};

/// Allocates the list of the root and pushes the task that splits it.
template <class Ref>
struct kd_init_root {
  Ref heap;
  kd_build_arguments args;
  kd_box box;

  QUARRY_DEVICE void operator()() const {
    if (simt::global_thread() != 0) return;
    kd_node root;
    root.box = box;
    root.count = args.triangles;
    root.list = static_cast<std::uint32_t*>(heap.malloc(kd_list_bytes(args.triangles)));
    args.nodes[0] = root;
    args.counters->nodes = 1;
    if (root.list == nullptr) return args.counters->fail(kd_failure::no_memory, args.triangles);
    if (args.limits.may_split(root.count, 0)) args.queue.push({kd_step::split, 0, 0});
  }
};

/// Writes all triangles to the root's list.
struct kd_fill_root {
  kd_build_arguments args;

  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = simt::global_thread(); i < args.triangles; i += simt::grid_threads())
      args.nodes[0].list[i] = static_cast<std::uint32_t>(i);
  }
};

/// Frees the lists of all nodes.
template <class Ref>
struct kd_free_lists {
  Ref heap;
  kd_build_arguments args;
  std::uint32_t nodes;

  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = simt::global_thread(); i < nodes; i += simt::grid_threads()) {
      if constexpr (Ref::can.frees_one) heap.free(args.nodes[i].list);
      args.nodes[i] = kd_node{};
    }
  }
};

/// Concatenates the lists of the leaves; one warp per node.
struct kd_gather {
  kd_build_arguments args;
  std::uint32_t nodes;
  const std::uint32_t* offsets;
  std::uint32_t* references;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t warps = simt::grid_threads() / simt::warp_size;
    for (std::uint64_t i = simt::global_thread() / simt::warp_size; i < nodes; i += warps) {
      const kd_node& n = args.nodes[i];
      if (n.child != 0) continue;
      for (std::uint32_t k = simt::lane_id(); k < n.count; k += simt::warp_size)
        references[offsets[i] + k] = n.list[k];
    }
  }
};

template <class Allocator, class Backend>
class kd_builder {
 public:
  using heap_type = heap<Allocator, Backend>;
  using kernel = kd_build<typename heap_type::ref_type>;
  static constexpr abilities can = Allocator::can;

  kd_builder(const kd_input& input, const kd_limits& limits, bytes pool,
             const kd_build_config& config = {})
      : config_(config),
        limits_(limits),
        root_(input.root),
        pool_(pool),
        heap_(std::in_place, pool),
        boxes_(input.boxes.size()),
        nodes_(std::size_t{config.nodes_per_triangle} * input.boxes.size() + 4096),
        cooperative_splits_(std::min<std::size_t>(config.max_cooperative_splits,
                                                  256 + 32 * (input.boxes.size() / config.chunk))),
        slots_(nodes_.size() + 128 * (input.boxes.size() / config.chunk)),
        counters_(1) {
    boxes_.from_host(input.boxes);
  }

  /// Builds a tree. `run(grid, kernel)` launches the kernel and waits for it. Throws out_of_memory
  /// or error; also after an exception, clear() must precede the next build.
  template <class Run>
  void build(Run&& run) {
    const kd_build_arguments s = arguments();
    launch<Backend>({1, 32}, kd_init_root<typename heap_type::ref_type>{heap_->ref(), s, root_});
    check();
    launch<Backend>(auxiliary_grid(), kd_fill_root{s});
    const kernel k(heap_->ref(), s);
    run(config_.blocks != 0 ? grid{.blocks = config_.blocks, .threads = config_.threads}
                            : persistent_grid<Backend>(k, config_.threads),
        k);
    check();
  }
  void build() {
    build([](const grid& g, const kernel& k) { launch<Backend>(g, k); });
  }

  /// Copies the tree to the host. Throws error if a list contains an invalid triangle number.
  kd_tree tree() const;

  void clear() {
    const kd_counters c = counters();
    const std::uint32_t nodes = used_nodes(c);
    if (nodes != 0)
      launch<Backend>(auxiliary_grid(), kd_free_lists<typename heap_type::ref_type>{
                                            heap_->ref(), arguments(), nodes});
    zero(slots_, c.tail);
    zero(cooperative_splits_, c.cooperative_splits);
    counters_.fill_zero();
    if constexpr (!can.frees_one && can.frees_all) {
      heap_->reset();
    } else if constexpr (!can.frees_one) {
      heap_.reset();
      heap_.emplace(pool_);
    }
  }

  const heap_type& memory() const { return *heap_; }

 private:
  kd_build_arguments arguments() const {
    return {boxes_.data(),
            static_cast<std::uint32_t>(boxes_.size()),
            config_.chunk,
            limits_,
            nodes_.data(),
            static_cast<std::uint32_t>(nodes_.size()),
            static_cast<std::uint32_t>(cooperative_splits_.size()),
            cooperative_splits_.data(),
            counters_.data(),
            {slots_.data(), slots_.size(), counters_.data()}};
  }
  /// The grid of the kernels that are not persistent.
  static grid auxiliary_grid() {
    return {.blocks = std::is_same_v<Backend, cpu> ? 4u : 1024u, .threads = 256};
  }
  kd_counters counters() const { return counters_.to_host()[0]; }
  std::uint32_t used_nodes(const kd_counters& c) const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(c.nodes, nodes_.size()));
  }
  template <class T>
  static void zero(const simt::array<T, Backend>& a, std::uint64_t used) {
    simt::memory<Backend>::zero(a.data(), std::min<std::uint64_t>(used, a.size()) * sizeof(T));
  }
  void check() const;

  kd_build_config config_;
  kd_limits limits_;
  kd_box root_;
  bytes pool_;
  std::optional<heap_type> heap_;
  simt::array<kd_box, Backend> boxes_;
  simt::array<kd_node, Backend> nodes_;
  simt::array<kd_cooperative_split, Backend> cooperative_splits_;
  simt::array<std::uint64_t, Backend> slots_;
  simt::array<kd_counters, Backend> counters_;
};

template <class Allocator, class Backend>
void kd_builder<Allocator, Backend>::check() const {
  const kd_counters c = counters();
  const std::string node = "a node of " + std::to_string(c.failed_node_size) + " triangles";
  switch (static_cast<kd_failure>(c.failure)) {
    case kd_failure::none: return;
    case kd_failure::no_memory:
      throw out_of_memory("the heap of " + to_text(pool_) + " has no room for the lists of " +
                          node + "; increase the heap");
    case kd_failure::no_nodes:
      throw error("the tree has more than " + std::to_string(nodes_.size()) +
                  " nodes; increase the leaf size");
    case kd_failure::no_slots:
      throw error("the build has more than " + std::to_string(slots_.size()) +
                  " tasks; increase the leaf size");
    case kd_failure::corrupt:
      throw error("the list of " + node +
                  " has been overwritten: the heap handed out its memory twice");
  }
}

template <class Allocator, class Backend>
kd_tree kd_builder<Allocator, Backend>::tree() const {
  const std::uint32_t count = used_nodes(counters());
  std::vector<kd_node> nodes(count);
  simt::memory<Backend>::copy(nodes.data(), nodes_.data(), count * sizeof(kd_node));
  simt::array<std::uint32_t, Backend> offsets(count);
  std::vector<std::uint32_t> first(count);
  std::uint32_t total = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    first[i] = total;
    if (nodes[i].child == 0) total += nodes[i].count;
  }
  offsets.from_host(first);
  simt::array<std::uint32_t, Backend> gathered(total);
  launch<Backend>(auxiliary_grid(), kd_gather{arguments(), count, offsets.data(), gathered.data()});
  const std::vector<std::uint32_t> lists = gathered.to_host();

  kd_tree tree;
  tree.nodes.reserve(count);
  tree.references.reserve(total);
  const auto add = [&](const auto& self, std::uint32_t i) -> std::uint32_t {
    const kd_node& n = nodes[i];
    const auto id = static_cast<std::uint32_t>(tree.nodes.size());
    tree.nodes.push_back({n.box, n.count, 0, 0, n.plane, static_cast<std::uint8_t>(n.axis),
                          static_cast<std::uint8_t>(n.depth)});
    if (n.child == 0) {
      const auto begin = static_cast<std::ptrdiff_t>(tree.references.size());
      tree.nodes[id].first = static_cast<std::uint32_t>(begin);
      for (std::uint32_t k = 0; k < n.count; ++k) {
        const std::uint32_t triangle = lists[first[i] + k];
        if (triangle >= boxes_.size())
          throw error("a leaf holds triangle " + std::to_string(triangle) + " of " +
                      std::to_string(boxes_.size()) + ": the heap handed out its memory twice");
        tree.references.push_back(triangle);
      }
      std::sort(tree.references.begin() + begin, tree.references.end());
    } else {
      self(self, n.child);
      const std::uint32_t right = self(self, n.child + 1);
      tree.nodes[id].right = right;
    }
    return id;
  };
  if (count != 0) add(add, 0);
  return tree;
}

}  // namespace quarry::apps

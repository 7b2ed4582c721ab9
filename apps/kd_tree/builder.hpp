// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_builder: builds kd-trees in a heap of a machine, one after the other, and brings them to the
/// host.
///
///   kd_builder<slab, cuda> builder(make_kd_input(scene), kd_limits::usual(scene.size()), 1_GiB);
///   builder.build();                 // one kernel; throws where memory was short
///   kd_tree tree = builder.tree();
///   builder.clear();                 // frees the leaves' lists; ready for the next
///
/// An allocator that frees no single block gives everything back in clear().

#include "apps/kd_tree/build.hpp"
#include "apps/kd_tree/grid.hpp"
#include "apps/kd_tree/persistent.hpp"
#include "apps/kd_tree/tree.hpp"

#include <quarry/heap.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quarry::apps {

/// How the work is cut; the tree does not depend on it.
struct kd_shape {
  std::uint32_t part = 1024;            // triangles that a warp does at a time
  std::uint32_t threads = 128;          // a block
  std::uint32_t blocks = 0;             // 0: as many as the machine runs at a time
  std::uint32_t nodes_a_triangle = 16;  // room, beside some for small scenes
  std::uint32_t most_teams = 1u << 20;  // and no more than there will be work for
};

/// The root's list, and the task that is to split it.
template <class Ref>
struct kd_plant {
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
    if (args.limits.may_split(root.count, 0)) args.queue.push({kd_step::node, 0, 0});
  }
};

/// All triangles into the root's list.
struct kd_fill {
  kd_build_arguments args;

  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = simt::global_thread(); i < args.triangles; i += simt::grid_threads())
      args.nodes[0].list[i] = static_cast<std::uint32_t>(i);
  }
};

/// Frees the lists that nodes hold.
template <class Ref>
struct kd_clear {
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

/// The lists of the leaves, one after the other; a warp a node.
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

  kd_builder(const kd_input& input, const kd_limits& limits, bytes pool, const kd_shape& shape = {})
      : shape_(shape),
        limits_(limits),
        root_(input.root),
        pool_(pool),
        heap_(std::in_place, pool),
        boxes_(input.boxes.size()),
        nodes_(std::size_t{shape.nodes_a_triangle} * input.boxes.size() + 4096),
        teams_(
            std::min<std::size_t>(shape.most_teams, 256 + 32 * (input.boxes.size() / shape.part))),
        slots_(nodes_.size() + 128 * (input.boxes.size() / shape.part)),
        counters_(1) {
    boxes_.from_host(input.boxes);
  }

  /// Builds a tree. `run(grid, kernel)` starts the kernel and comes back when it is done. Throws
  /// out_of_memory and error; clear() is due all the same.
  template <class Run>
  void build(Run&& run) {
    const kd_build_arguments s = arguments();
    launch<Backend>({1, 32}, kd_plant<typename heap_type::ref_type>{heap_->ref(), s, root_});
    check();
    launch<Backend>(helpers(), kd_fill{s});
    const kernel k(heap_->ref(), s);
    run(shape_.blocks != 0 ? grid{.blocks = shape_.blocks, .threads = shape_.threads}
                           : persistent_grid<Backend>(k, shape_.threads),
        k);
    check();
  }
  void build() {
    build([](const grid& g, const kernel& k) { launch<Backend>(g, k); });
  }

  /// What was built. Throws error where lists hold something that was not written there.
  kd_tree tree() const;

  void clear() {
    const kd_counters c = counters();
    const std::uint32_t nodes = used_nodes(c);
    if (nodes != 0)
      launch<Backend>(helpers(),
                      kd_clear<typename heap_type::ref_type>{heap_->ref(), arguments(), nodes});
    zero(slots_, c.tail);
    zero(teams_, c.teams);
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
            shape_.part,
            limits_,
            nodes_.data(),
            static_cast<std::uint32_t>(nodes_.size()),
            static_cast<std::uint32_t>(teams_.size()),
            teams_.data(),
            counters_.data(),
            {slots_.data(), slots_.size(), counters_.data()}};
  }
  /// For kernels in which lanes do not wait.
  static grid helpers() {
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

  kd_shape shape_;
  kd_limits limits_;
  kd_box root_;
  bytes pool_;
  std::optional<heap_type> heap_;
  simt::array<kd_box, Backend> boxes_;
  simt::array<kd_node, Backend> nodes_;
  simt::array<kd_team, Backend> teams_;
  simt::array<std::uint64_t, Backend> slots_;
  simt::array<kd_counters, Backend> counters_;
};

template <class Allocator, class Backend>
void kd_builder<Allocator, Backend>::check() const {
  const kd_counters c = counters();
  const std::string node = "a node of " + std::to_string(c.failed_at) + " triangles";
  switch (static_cast<kd_failure>(c.failure)) {
    case kd_failure::none: return;
    case kd_failure::no_memory:
      throw out_of_memory("the heap of " + to_text(pool_) + " has no room for the lists of " +
                          node + "; a larger heap helps");
    case kd_failure::no_nodes:
      throw error("the tree has more than " + std::to_string(nodes_.size()) +
                  " nodes; a larger leaf size helps");
    case kd_failure::no_slots:
      throw error("the build has more than " + std::to_string(slots_.size()) +
                  " tasks; a larger leaf size helps");
    case kd_failure::corrupt:
      throw error("the list of " + node +
                  " holds what nobody wrote there: its memory was given to two");
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
  launch<Backend>(helpers(), kd_gather{arguments(), count, offsets.data(), gathered.data()});
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
                      std::to_string(boxes_.size()) + ": its memory was given to two");
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

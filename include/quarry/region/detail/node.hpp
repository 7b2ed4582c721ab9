// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region_node: the state of one region: its pool, the slabs it holds, its position in the tree.
///
/// Each region number has one node, which is reused with the number and exists as long as the tree.
/// A thread that uses the id of a destroyed region therefore finds a valid node with a different
/// id, and its call fails.
///
/// `held` maps the first slab of each range that the region holds to its number of slabs: whole
/// chunks, adjacent ranges joined. Packing visits the ranges in address order; destruction returns
/// them.

#include <quarry/region/detail/metadata_pool.hpp>
#include <quarry/region/detail/spin_lock.hpp>
#include <quarry/region/id.hpp>

#include <atomic>
#include <new>
#include <optional>

namespace quarry {

/// Which threads may call functions of a region at the same time.
enum class sharing : std::uint8_t {
  one_thread,    // one call at a time; no lock is taken
  many_threads,  // concurrent calls; each takes the region's lock
};

/// A registered destructor, at the start of the slot that holds the object. Since the object itself
/// starts later in the slot, deallocate() does not accept its address. Destroying the region runs
/// the list from the latest entry to the first.
struct region_finalizer {
  void (*run)(void*);
  void* object;
  region_finalizer* next;
  region_finalizer* prev;
};

template <slab_geometry Geometry>
class basic_region_tree;

template <slab_geometry Geometry>
class region_node final : public pool_source {
 public:
  using tree_type = basic_region_tree<Geometry>;
  using held_type = trie<0, 32, node_pool>;

  /// A node of no tree: no id equals its lone_id(). See null_region_node.
  constexpr region_node() : tree_(nullptr), number_(0), id_(null_region.value()) {}
  region_node(tree_type& tree, std::uint32_t number)
      : tree_(&tree), number_(number), id_(region_id(1, number).value()) {}

  /// Returns the id of the live region of this node; if there is none, an id with an odd
  /// generation.
  region_id id() const { return region_id(id_.load(std::memory_order_acquire)); }
  /// Returns the same id if calls need no lock, otherwise a value that is no id.
  region_id lone_id() const { return region_id(lone_id_.load(std::memory_order_acquire)); }
  pool_stamp stamp() const { return number_ + 1; }
  bool is_shared() const { return shared_.load(std::memory_order_relaxed); }

  // The state of a region from its creation to its destruction.
  struct life {
    life(region_node& node, const slab_table_view<Geometry>& table)
        : nodes(node), pool(table, node.stamp(), node, nodes), held(nodes) {}
    void forget() {
      pool.discard();
      held.forget();
      nodes.discard();
    }
    node_pool nodes;
    slab_pool<Geometry> pool;
    held_type held;
    std::uint64_t held_slabs = 0;
    slab_number grown_at = 0;       // the first slab of the latest growth; it may be held no more
    std::uint64_t freed_slabs = 0;  // since the tree last took free slabs from the region
    region_finalizer* finalizers = nullptr;
    std::uint32_t pins = 0;
    bool buried_by_last_pin = false;  // the region was destroyed while it was pinned
  };

  // pool_source, for the pool.
  slab_run more_slabs(slab_number least, slab_number wanted) override {
    return tree_->grow(*this, least, wanted);
  }
  void* take_metadata(std::size_t size) override { return tree_->take_metadata(size); }
  void give_metadata(void* p, std::size_t) override { tree_->give_metadata(p); }
  void slabs_freed(slab_number count) override {
    it->freed_slabs += count;
    const std::uint64_t mark = tree_type::surplus_mark(it->held_slabs);
    if (it->pool.runs().slabs() > mark && it->freed_slabs > mark / 2) tree_->take_surplus(*this);
  }

  /// Keeps the memory of the region while a constructor or destructor runs in it, even if the
  /// region is destroyed meanwhile. False: `id` is not the id of the live region.
  bool pin(region_id id) {
    lock_if guard(lock, is_shared());
    if (this->id() != id) return false;
    ++it->pins;
    return true;
  }
  void unpin() {
    bool buries = false;
    {
      lock_if guard(lock, is_shared());
      buries = --it->pins == 0 && it->buried_by_last_pin;
    }
    if (buries) tree_->bury_unpinned(*this);
  }

  /// Adds slabs to `held`. False: no memory for metadata; nothing changes.
  bool hold(slab_run run);
  /// Removes slabs from `held`. Requires that they are in it. False: no memory for metadata;
  /// nothing changes.
  bool let_go(slab_run run);
  /// The held range that contains the slab or is the nearest below it; no slabs at `n`: there is
  /// none.
  slab_run range_of(slab_number n) const {
    const auto range = it->held.at_or_below(n);
    return range ? slab_run{static_cast<slab_number>(range.key()),
                            static_cast<slab_number>(range.value())}
                 : slab_run{n, 0};
  }

  std::optional<life> it;
  spin_lock lock;
  region_node* parent = nullptr;
  region_node* child = nullptr;  // first child
  region_node* next = nullptr;   // siblings
  region_node* prev = nullptr;

 private:
  friend tree_type;
  void begin(region_id id, bool shared) {
    shared_.store(shared, std::memory_order_relaxed);
    lone_id_.store(shared ? ~std::uint64_t{0} : id.value(), std::memory_order_release);
    id_.store(id.value(), std::memory_order_release);
  }
  void end() {
    lone_id_.store(~std::uint64_t{0}, std::memory_order_release);
    id_.store(region_id(id().generation() + 1, number_).value(), std::memory_order_release);
  }

  tree_type* tree_;
  std::uint32_t number_;
  std::atomic<bool> shared_{false};
  std::atomic<std::uint64_t> id_;
  std::atomic<std::uint64_t> lone_id_{~std::uint64_t{0}};
};

/// What handles without a region point at, so that their fast path needs no null check: the id of
/// this node never equals theirs, and they continue on the slow path, which reports the error.
template <slab_geometry Geometry>
inline constinit region_node<Geometry> null_region_node{};

template <slab_geometry Geometry>
bool region_node<Geometry>::hold(slab_run run) {
  held_type& held = it->held;
  const auto below = held.at_or_below(run.first);
  const bool joins = below && below.key() + below.value() == run.first;
  const std::uint64_t* above = held.find(run.end());
  const std::uint64_t count = run.count + (above != nullptr ? *above : 0);
  if (joins)
    *held.find(below.key()) += count;
  else if (held.insert(run.first, count) != trie_insert::done)
    return false;
  if (above != nullptr) held.erase(run.end());
  it->held_slabs += run.count;
  return true;
}

template <slab_geometry Geometry>
bool region_node<Geometry>::let_go(slab_run run) {
  held_type& held = it->held;
  const auto entry = held.at_or_below(run.first);
  const std::uint64_t end = entry.key() + entry.value();
  if (run.end() < end && held.insert(run.end(), end - run.end()) != trie_insert::done) return false;
  if (const std::uint64_t first = entry.key(); first < run.first)
    *held.find(first) = run.first - first;
  else
    held.erase(first);
  it->held_slabs -= run.count;
  return true;
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region_tree: regions in regions; Lyberis et al. (2012), section 4, without messages.
///
///   root 0 --- a --- a1          every region has its own slab pool
///          |      +- a2          free a: a, a1, a2 and all their objects are gone
///          +-- b
///
/// All pools lie in one range of addresses, cut into chunks of 16 slabs. The table knows the owner of
/// every chunk: the region of any address, inside an object or not, is found by a shift and a load.
/// (The paper has two more tries for that: used ranges, used region ids.) Chunks that nobody owns are
/// runs in `free_`, found by address through a trie and by length.
///
/// Growing: a region that lacks slabs is given a page while memory is plentiful, and less when little
/// is left, down to two chunks (watermarks). When there is none, free slabs are trimmed from other
/// regions in turn, starting after the one visited last.
/// Freeing a region gives its ranges back and discards its metadata: the cost grows with the ranges
/// and metadata blocks, not with the objects. Records of dead objects stay in the table; they are
/// wiped when a chunk gets a new owner.
///
/// Threads. Regions are independent: different regions may be used by different threads at once.
/// One region is used by one thread at a time, without any lock on alloc and free, or, made with
/// sharing::many_threads, by all of them under its spin lock. The tree's mutex covers what regions
/// have in common: the tree's shape, free chunks, metadata; pools come to it on slow paths only.
/// Order: a region's lock before the mutex; with the mutex held, region locks are only tried.
/// Living regions have even generations. destroy_region first makes them odd, so that new calls turn back, then waits for the locks of
/// shared regions, then gives the memory back. Of two threads that free one region, one gets ok.
/// Trimming leaves alone what it may not touch: regions of one thread each, unless the whole tree is
/// used by one thread (tree_options::threads), and shared ones whose lock is taken.

#include <quarry/region/detail/node.hpp>

#include <array>
#include <mutex>
#include <vector>

namespace quarry {

struct tree_options {
  std::uint64_t range = std::uint64_t{1} << 40;  // bytes of addresses for objects
  void* where = nullptr;                         // at exactly this address, for snapshots
  std::uint64_t metadata = 0;                    // bytes for metadata; 0: a 64th of range
  std::uint64_t keep = std::uint64_t{1} << 28;  // memory of freed regions that is kept for new ones
  sharing threads = sharing::many_threads;      // of the root; one_thread: of the whole tree
  bool addresses_only = false;  // at `where`, without memory: nothing is free before add_pages
  std::uint64_t most_generations = ~std::uint64_t{0};  // a number is used that often, no more
};

struct region_statistics {
  pool_statistics pool;
  std::uint64_t held_slabs = 0;
  std::uint64_t children = 0;
};

template <slab_geometry Geometry = default_geometry>
class basic_region_tree {
 public:
  using node_type = region_node<Geometry>;
  static constexpr slab_geometry geometry = Geometry;

  explicit basic_region_tree(const tree_options& options = {});
  basic_region_tree(const basic_region_tree&) = delete;
  basic_region_tree& operator=(const basic_region_tree&) = delete;
  ~basic_region_tree();

  region_result<region_id> create_region(region_id parent, sharing threads = sharing::one_thread);
  /// The region, its descendants, their objects. Finalizers run first, children's before parents'.
  region_status destroy_region(region_id id);

  region_result<void*> allocate(region_id id, std::size_t n, std::size_t alignment = Geometry.slot);
  /// nullptr: ok, nothing happens.
  region_status deallocate(void* p);
  /// n bytes at p where that is possible, else in a new place in `target`. p == nullptr: allocates;
  /// n == 0: free, the value is nullptr.
  region_result<void*> reallocate(void* p, std::size_t n, region_id target);
  region_result<void*> reallocate(void* p, std::size_t n);
  /// All of out, or nothing.
  region_status allocate_bulk(region_id id, std::size_t n, std::span<void*> out);

  /// The region that holds the address, inside an object or not.
  region_result<region_id> region_of(const void* p) const;
  region_result<region_id> parent_of(region_id id) const;
  std::size_t usable_size(const void* p) const;
  region_result<region_statistics> statistics(region_id id) const;

  /// Free slabs of all regions that may be touched, and memory that nobody uses, go back. Slabs.
  std::uint64_t trim();

  /// For those who keep a region at hand: nullptr when the id is stale.
  node_type* find(region_id id) const;
  /// Visits the region and its descendants, parents first. Requires: nobody changes the tree.
  template <class Visit>
  void for_each_below(node_type& top, Visit visit) const;

  const slab_table_view<Geometry>& table() const { return table_; }
  std::uint64_t free_slabs() const;
  std::uint64_t regions() const;
  pool_statistics metadata() const;

  /// For those who manage addresses that others have memory for. Whole pages come and go.
  void add_pages(slab_run pages);
  /// Free pages in a row, at most so many; empty: there is none.
  slab_run take_pages(slab_number most);

  /// Takes these chunks out of the free ones and gives them to the region. For snapshots.
  region_status claim(node_type& node, slab_run run);

  /// Empty: sound. Requires: no other thread is at work.
  std::string check_invariants() const;

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork(bool in_child) {
    // In the child the owner's number is another one: it could not unlock.
    if (in_child)
      new (&mutex_) std::recursive_mutex;
    else
      mutex_.unlock();
  }

 private:
  friend node_type;
  static constexpr slab_number chunk = Geometry.slabs_in_chunk();
  static constexpr slab_number high_mark = Geometry.slabs_in_page();
  static constexpr slab_number low_mark = 2 * chunk;
  static constexpr std::uint32_t most_regions = outside - 1;
  static constexpr std::uint64_t surplus_mark(std::uint64_t held) {
    return 4 * high_mark + held / 8;
  }

  using lock_guard = std::lock_guard<std::recursive_mutex>;

  // Called by nodes, without the mutex.
  slab_run grow(node_type& node, slab_number least, slab_number wanted);
  void* take_metadata(std::size_t size);
  void give_metadata(void* p);
  void take_surplus(node_type& node);

  // With the mutex.
  slab_number growth() const;
  slab_run take_free(slab_number least, slab_number wanted);
  std::uint64_t trim_others(const node_type* asking, slab_number wanted);
  std::uint64_t trim_node(node_type& node, std::uint64_t leave);
  void give_free(slab_run run);
  void purge_free();
  node_type* new_node();
  void link(node_type& node, node_type& parent);
  void unlink(node_type& node);
  void bury(node_type& node);

  node_type* node_at(std::uint32_t number) const {
    return std::atomic_ref<node_type*>(numbers_[number]).load(std::memory_order_acquire);
  }
  static bool is_alive(region_id id) { return id.generation() % 2 == 0; }

  static tree_options fitted(tree_options options);

  tree_options options_;
  slab_table<Geometry> table_;
  mutable std::recursive_mutex mutex_;  // a region that grows under it needs metadata under it
  metadata_pool<Geometry> metadata_pool_;
  address_range numbers_range_;
  node_type** numbers_;  // number -> node, or nullptr: never used
  std::uint32_t numbers_begun_ = 0;
  node_type* unused_ = nullptr;  // nodes of dead regions, by `next`
  std::uint32_t visited_ = 0;    // number of the region trimmed last
  std::uint64_t regions_ = 0;
  std::uint64_t slabs_ = 0;        // of all regions, and free
  std::uint64_t dirty_slabs_ = 0;  // free, and perhaps backed by memory
  struct free_nodes final : pool_source {
    explicit free_nodes(metadata_pool<Geometry>& from) : pool(&from) {}
    slab_run more_slabs(slab_number, slab_number) override { return {}; }
    void* take_metadata(std::size_t size) override { return pool->allocate(size); }
    void give_metadata(void* p, std::size_t) override { pool->deallocate(p); }
    metadata_pool<Geometry>* pool;
  } free_source_;
  node_pool nodes_;
  free_runs<Geometry, node_pool> free_;
};

using region_tree = basic_region_tree<>;

template <slab_geometry Geometry>
inline auto basic_region_tree<Geometry>::find(region_id id) const -> node_type* {
  if (id.number() >= most_regions || !is_alive(id)) return nullptr;
  node_type* node = node_at(id.number());
  return node != nullptr && node->id() == id ? node : nullptr;
}

template <slab_geometry Geometry>
inline region_result<region_id> basic_region_tree<Geometry>::region_of(const void* p) const {
  if (!table_.contains(p)) return region_status::not_ours;
  const pool_stamp owner = table_.owner(table_.slab_at(table_.offset_of(p)));
  if (owner == nobody || owner == outside) return region_status::not_ours;
  const region_id id = node_at(owner - 1)->id();
  if (!is_alive(id)) return region_status::not_ours;
  return id;
}

template <slab_geometry Geometry>
template <class Visit>
void basic_region_tree<Geometry>::for_each_below(node_type& top, Visit visit) const {
  for (node_type* node = &top;;) {
    visit(*node);
    if (node->child != nullptr) {
      node = node->child;
      continue;
    }
    while (node != &top && node->next == nullptr) node = node->parent;
    if (node == &top) return;
    node = node->next;
  }
}

/// The library quarry::region holds this instance. Other instances need detail/definitions.hpp.
extern template class basic_region_tree<default_geometry>;

}  // namespace quarry

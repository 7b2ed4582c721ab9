// SPDX-License-Identifier: Apache-2.0
#pragma once
/// basic_region_tree: a tree of regions (Lyberis et al. 2012, section 4, in one process).
///
///   root 0 --- a --- a1          every region has its own slab pool
///          |      +- a2          destroying a destroys a1 and a2 and all objects of the three
///          +-- b
///
/// Memory. All pools share one address range, divided into chunks of 16 slabs. The slab table
/// stores the owner of every chunk, so a shift and a load find the region of any address, also of
/// addresses inside objects. Chunks without an owner are runs in `free_`, indexed by address and by
/// length.
///
/// Growth. A region that needs slabs receives a page while memory is plentiful, and less when
/// little is left, down to two chunks (`high_mark`, `low_mark`). The page comes from the free run
/// that is nearest to where the region grew last, so that a region stays compact; memory that was
/// used before is preferred to unused memory. If no chunk is free, the tree trims free slabs from
/// other regions in turn, starting after the region that it trimmed last.
///
/// Destruction. The tree takes back the ranges of a region and discards its metadata. The cost
/// grows with the number of ranges and metadata blocks, not with the number of objects. The table
/// is not cleared until a chunk gets a new owner.
///
/// Thread safety. Different regions may be used by different threads at the same time. A region
/// with sharing::one_thread is used by one thread at a time and takes no lock in allocate and
/// deallocate. A region with sharing::many_threads may be used by any thread and takes its spin
/// lock. The mutex of the tree protects the shape of the tree, the free chunks and the metadata;
/// pools lock it on slow paths only.
///   Lock order: the lock of a region, then the mutex. A thread that holds the mutex only tries to
///   lock regions.
///   destroy_region: the generation of a live region is even. destroy_region makes it odd, so that
///   new calls fail, then waits for the locks of shared regions, then takes the memory back. If two
///   threads destroy one region, exactly one call returns ok. If a constructor or destructor runs
///   in the region meanwhile (region::create, region::destroy), the call that unpins the region
///   takes the memory back.
///   Trimming skips regions that other threads may be using: those with sharing::one_thread, unless
///   one thread uses the whole tree (tree_options::threads), and shared regions that are locked.

#include <quarry/region/detail/node.hpp>

#include <array>
#include <mutex>
#include <vector>

namespace quarry {

/// From which free memory a region grows: from the run nearest to where it grew last, which keeps
/// its ranges few, or from the lowest run that is long enough.
enum class growth_place : std::uint8_t { nearest, lowest };

struct tree_options {
  std::uint64_t range = std::uint64_t{1} << 40;  // size of the address range for objects
  void* where = nullptr;                         // start of the range, for snapshots; nullptr: any
  std::uint64_t metadata = 0;                    // bytes for metadata; 0: range / 64
  std::uint64_t keep = std::uint64_t{1} << 28;   // bytes of free memory kept for new regions
  sharing threads = sharing::many_threads;  // of the root; one_thread: one thread uses the tree
  growth_place growth = growth_place::nearest;
  bool addresses_only = false;  // reserve no memory at `where`; add_pages adds the first free pages
  std::uint64_t most_generations = ~std::uint64_t{0};  // how often a region number may be reused
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
  /// Destroys a region, its descendants and all their objects. Registered destructors run first,
  /// those of a child before those of its parent.
  region_status destroy_region(region_id id);

  /// Returns n bytes in the region at a multiple of `alignment`, a power of two up to a page.
  region_result<void*> allocate(region_id id, std::size_t n, std::size_t alignment = Geometry.slot);
  /// Requires an object of any region of the tree, or nullptr, which has no effect.
  region_status deallocate(void* p);
  /// Resizes the object at p to n bytes, in place if possible, otherwise by a move into `target`.
  /// p == nullptr allocates; n == 0 deallocates and returns nullptr.
  region_result<void*> reallocate(void* p, std::size_t n, region_id target);
  region_result<void*> reallocate(void* p, std::size_t n);
  /// Fills `out` with objects of n bytes each, or allocates none.
  region_status allocate_bulk(region_id id, std::size_t n, std::span<void*> out);

  /// Returns the region that owns the address, whether or not an object contains it.
  region_result<region_id> region_of(const void* p) const;
  region_result<region_id> parent_of(region_id id) const;
  std::size_t usable_size(const void* p) const;
  region_result<region_statistics> statistics(region_id id) const;

  /// Takes free slabs back from all regions that may be trimmed and returns free memory to the
  /// system.
  /// Returns the number of slabs taken back.
  std::uint64_t trim();

  /// Returns the node of a region, or nullptr if the id is stale.
  node_type* find(region_id id) const;
  /// Visits a region and its descendants, parents first. Requires: no thread changes the tree.
  template <class Visit>
  void for_each_below(node_type& top, Visit visit) const;

  const slab_table_view<Geometry>& table() const { return table_; }
  std::uint64_t free_slabs() const;
  /// Returns the number of free slabs that may be backed by memory.
  std::uint64_t dirty_slabs() const;
  std::uint64_t regions() const;
  pool_statistics metadata() const;

  /// Adds free pages to a tree with addresses_only. Requires whole pages.
  void add_pages(slab_run pages);
  /// Removes a run of free pages, at most `most` slabs, from the tree. Empty: no page is free.
  slab_run take_pages(slab_number most);

  /// Gives these free chunks to the region. Used when a snapshot is loaded.
  region_status claim(node_type& node, slab_run run);

  /// Returns a description of the first violated invariant, or an empty string. Requires
  /// quiescence.
  std::string check_invariants() const;

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork(bool in_child) {
    // The thread id of the child differs from that of the owner, so it cannot unlock the mutex.
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
  /// The number of free slabs that a region may keep. The tree trims a region that has more, but
  /// not before the region has freed half as many slabs since it was last trimmed: free slabs that
  /// fill no chunk stay, and looking for others visits all free runs.
  static constexpr std::uint64_t surplus_mark(std::uint64_t held) { return high_mark + held / 8; }
  std::uint64_t most_dirty() const {
    return options_.keep / Geometry.slab + (slabs_ - free_.slabs()) / 16;
  }

  using lock_guard = std::lock_guard<std::recursive_mutex>;

  // Nodes call these functions; they lock the mutex.
  slab_run grow(node_type& node, slab_number least, slab_number wanted);
  void bury_unpinned(node_type& node);
  void* take_metadata(std::size_t size);
  void give_metadata(void* p);
  void take_surplus(node_type& node);

  // The caller holds the mutex.
  slab_number growth() const;
  void assign(slab_run run, pool_stamp owner);
  std::uint64_t trim_others(const node_type* asking, slab_number wanted);
  std::uint64_t trim_node(node_type& node, std::uint64_t leave);
  void give_free(slab_run run);
  void purge_free(std::uint64_t leave);
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
  mutable std::recursive_mutex mutex_;  // recursive: grow() allocates metadata, which locks it
  metadata_pool<Geometry> metadata_pool_;
  address_range numbers_range_;
  node_type** numbers_;  // number -> node; nullptr: number never used
  std::uint32_t numbers_begun_ = 0;
  node_type* unused_ = nullptr;  // nodes of destroyed regions, linked by `next`
  std::uint32_t visited_ = 0;    // number of the region trimmed last
  std::uint64_t regions_ = 0;
  std::uint64_t slabs_ = 0;        // in regions and in free_
  std::uint64_t dirty_slabs_ = 0;  // in free_ and possibly backed by memory
  slab_number dirty_end_ = 0;      // no free slab from here on is dirty
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
  if (owner == no_owner || owner == outside) return region_status::not_ours;
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// metadata_pool: the pool that holds the metadata of all pools, its own included.
///
/// Problem. A request may need slabs; taking slabs changes the index of free runs; the index may
/// need a new trie node, which is a request to the same pool. Solution of Lyberis et al. (2012): a
/// nested request only sets bits in slabs that the pool already has, and the pool keeps a reserve
/// of those.
///
/// There are two kinds of nested requests: trie nodes (64 B) and class blocks (2 KiB). A nested
/// request takes a slot from the list of its class and never nests again. Let D be the number of
/// levels of the index. One outer request needs at most:
///   one class block                                         1 block
///   slabs from the source, joined to the runs               D nodes   (insert: one entry)
///   a run split, with remainders on both sides             2D nodes
///   runs that reclaim() inserts                             D nodes per group; insert may fail
///                                                           without harm
/// Refilling the reserve of a class takes at most "slabs from the source" and "a run split": 3D
/// nodes, and yields at least one slab of slots. Therefore `node_reserve` = 6D + 2 free node slots
/// and two block slots at the start of an outer request suffice: the request spends at most 3D
/// nodes, and refilling the node class at most 3D. The block class is refilled after the node
/// class, from a full reserve. A request that starts with less than the reserve refills it first,
/// and fails if it cannot. An insert without a node has no consequence but a missing index entry
/// (free_runs.hpp). `shortfalls` counts such inserts; tests require 0.
///
/// Deallocation never allocates. A nested deallocation (a node that the index drops) clears a bit
/// and at most leaves its group empty. Groups return to the free runs only in trim(), when no call
/// is in progress. Lyberis et al. raise a flag when empty slabs are short; here each outer request
/// counts the reserve.
///
/// Bootstrap. Before the pool has class blocks and index nodes, nested requests are placed one
/// after another in the first slabs of the range and recorded. Then these slabs are formatted, and
/// each recorded object is requested again. The pool allocates the lowest slots first, so each
/// request returns the address of the recorded object; the bootstrap checks this.
///
/// Thread safety: none; the caller holds the lock of the owner.

#include <quarry/region/detail/slab_pool.hpp>

#include <cstdlib>

namespace quarry {

inline constexpr std::uint64_t metadata_node_reserve = 6 * 11 + 2;

template <slab_geometry Geometry, std::uint64_t Reserve>
class metadata_pool;

/// The source of nodes for the index of the metadata pool's own free runs: nested requests.
template <slab_geometry Geometry, std::uint64_t Reserve>
struct metadata_nodes {
  metadata_pool<Geometry, Reserve>* pool;
  void* take_node();
  void give_node(void* p);
};

/// `Reserve` is a template argument so that a test can run without a reserve.
template <slab_geometry Geometry = default_geometry, std::uint64_t Reserve = metadata_node_reserve>
class metadata_pool final : private pool_source {
 public:
  /// Reserves an address range of `size` bytes for metadata. Throws out_of_memory.
  explicit metadata_pool(bytes size) : table_(size), pool_(table_, stamp, *this, nodes_) {
    bootstrap();
  }
  metadata_pool(const metadata_pool&) = delete;
  metadata_pool& operator=(const metadata_pool&) = delete;
  ~metadata_pool() { pool_.forget(); }

  /// Returns n bytes, aligned to the slot size, or nullptr: n is 0, or the range is full.
  void* allocate(std::size_t n);
  region_status deallocate(void* p);
  std::size_t usable_size(const void* p) const { return pool_.usable_size(p); }
  bool contains(const void* p) const { return table_.contains(p); }

  std::string check_invariants() const;
  pool_statistics statistics() const { return pool_.statistics(); }
  slab_number slabs_begun() const { return begun_; }
  std::uint64_t shortfalls() const { return shortfalls_; }
  /// Returns the minimum number of free node slots since the bootstrap.
  std::uint64_t least_spare_nodes() const { return least_spare_; }
  std::uint64_t spare_nodes() const { return pool_.spare(node_units); }

  static constexpr unsigned index_levels = trie<0, 32, metadata_nodes<Geometry, Reserve>>::levels;
  static_assert(Reserve == 0 || Reserve >= 6 * index_levels + 2, "see above");
  static constexpr std::uint64_t node_reserve = Reserve;
  static constexpr std::uint64_t block_reserve = 2;

 private:
  friend struct metadata_nodes<Geometry, Reserve>;
  static constexpr pool_stamp stamp = 1;
  static constexpr unsigned units_of(std::size_t size) {
    return static_cast<unsigned>((size + Geometry.slot - 1) / Geometry.slot);
  }
  static constexpr unsigned node_units = units_of(sizeof(trie_node));
  static constexpr unsigned block_units = units_of(sizeof(class_block));

  /// Opens the protected members that a pool which serves itself needs.
  struct inner : slab_pool<Geometry, metadata_nodes<Geometry, Reserve>> {
    using base = slab_pool<Geometry, metadata_nodes<Geometry, Reserve>>;
    using base::allocate_here, base::class_of, base::format, base::give_back, base::make_class,
        base::refill, base::keeps_empty_groups_, base::has_no_magazines_;
    using base::base;
    /// Returns the number of free slots of an existing class.
    std::uint64_t spare(unsigned units) const {
      const size_class& c = base::class_of(units);
      const std::uint64_t slots = c.group * Geometry.units_in_slab() / units;
      return c.slabs / c.group * slots - c.taken;
    }
  };
  struct bootstrap_places {
    slab_number first = 0;  // slab of the first object
    unsigned units = 0;
    unsigned placed = 0;
  };

  slab_run more_slabs(slab_number least, slab_number wanted) override;
  void* take_metadata(std::size_t size) override { return nested(units_of(size)); }
  void give_metadata(void* p, std::size_t) override { nested_free(p); }

  void* nested(unsigned units);
  void nested_free(void* p);
  bool has_reserve() const {
    return pool_.spare(node_units) >= node_reserve && pool_.spare(block_units) >= block_reserve;
  }
  bool top_up();
  void trim(size_class& c);
  void bootstrap();
  void replay(const bootstrap_places& places);

  slab_table<Geometry> table_;
  metadata_nodes<Geometry, Reserve> nodes_{this};
  slab_number begun_ = 0;
  bool booting_ = true;
  bootstrap_places boot_blocks_;
  bootstrap_places boot_nodes_;
  std::uint64_t shortfalls_ = 0;
  std::uint64_t least_spare_ = ~std::uint64_t{0};
  inner pool_;
};

/// The library quarry::region holds this instance. Other instances need detail/definitions.hpp.
extern template class metadata_pool<default_geometry>;

}  // namespace quarry

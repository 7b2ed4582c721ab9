// SPDX-License-Identifier: Apache-2.0
#pragma once
/// metadata_pool: the pool that holds the metadata of all pools, its own included.
///
/// Why that is not obvious: a request may need slabs, to take slabs changes the index of free runs,
/// and the index may need a new node, which is a request to the same pool. Lyberis et al. (2012):
/// requests that arrive while another is served may only flip bits in slabs that are already there,
/// and enough of those are kept in reserve.
///
/// The recursion here has two kinds of nested request: trie nodes (64 B) and class blocks (2 KiB).
/// Let D be the levels of the index. A nested request takes slots from its class's list and nothing
/// else, so it never nests again. What one outer request needs at most, before reserves are topped:
///   one class block                                          1 block
///   slabs from the source joined to the runs                 D nodes   (insert: one entry)
///   a run cut, remainders on both sides                     2D nodes
///   a run cut after reclaim; what reclaim returns           D nodes for each group returned, but
///                                                            insert gives up without harm
/// Topping up a class is again at most "slabs from the source" and "a run cut": 3D nodes, and gives
/// at least a slab of slots. So with `node_reserve` = 6D + 2 free node slots and two block slots at
/// the start of an outer request, no nested request of it or of the topping up of the node class
/// finds its class empty: 3D are spent by each. After the node class the block class is topped up,
/// from a reserve that is full again. A request that would start with less than the reserve, because
/// topping up failed for lack of memory, first tops up, and is refused if that fails.
/// An insert without a node does no harm (free_runs.hpp): even a wrong count above would only cost
/// the index an entry. `shortfalls` counts such events while there was a reserve; tests hold it at 0.
///
/// Frees never ask for memory. A nested free (a node the index gave up) moves a bit and, at most,
/// leaves its group empty: groups go back to the runs only in trim(), when nothing is in progress,
/// so the paper's queue of delayed frees is not needed.
///
/// Bootstrap: before the pool's classes have blocks and the index nodes, nested requests are placed
/// one after another in the first slabs of the range and remembered. Then those slabs are formatted
/// and every remembered object is requested again the normal way; lowest slots come first, so each
/// lands where it lies. The check that it does is part of the bootstrap.
///
/// Not thread-safe: the owner's lock covers it.

#include <quarry/region/detail/slab_pool.hpp>

#include <cstdlib>

namespace quarry {

inline constexpr std::uint64_t metadata_node_reserve = 6 * 11 + 2;

template <slab_geometry Geometry, std::uint64_t Reserve>
class metadata_pool;

/// Nodes for the index of the metadata pool's own free runs: nested requests.
template <slab_geometry Geometry, std::uint64_t Reserve>
struct metadata_nodes {
  metadata_pool<Geometry, Reserve>* pool;
  void* take_node();
  void give_node(void* p);
};

/// `Reserve` is an argument so that a test can show what happens without one.
template <slab_geometry Geometry = default_geometry, std::uint64_t Reserve = metadata_node_reserve>
class metadata_pool final : private pool_source {
 public:
  /// A range of its own for metadata, `size` at most. Throws out_of_memory.
  explicit metadata_pool(bytes size) : table_(size), pool_(table_, stamp, *this, nodes_) {
    bootstrap();
  }
  metadata_pool(const metadata_pool&) = delete;
  metadata_pool& operator=(const metadata_pool&) = delete;
  ~metadata_pool() { pool_.forget(); }

  /// n bytes, aligned to the slot size. nullptr: n is 0, or the range is full.
  void* allocate(std::size_t n);
  region_status deallocate(void* p);
  std::size_t usable_size(const void* p) const { return pool_.usable_size(p); }
  bool contains(const void* p) const { return table_.contains(p); }

  std::string check_invariants() const;
  pool_statistics statistics() const { return pool_.statistics(); }
  slab_number slabs_begun() const { return begun_; }
  std::uint64_t shortfalls() const { return shortfalls_; }
  /// Fewest node slots that were free at any time since the bootstrap.
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

  /// The pool, with the parts that a pool serving itself needs.
  struct inner : slab_pool<Geometry, metadata_nodes<Geometry, Reserve>> {
    using base = slab_pool<Geometry, metadata_nodes<Geometry, Reserve>>;
    using base::allocate_here, base::class_of, base::format, base::give_back, base::make_class,
        base::refill, base::keeps_empty_groups_, base::has_no_magazines_;
    using base::base;
    /// Free slots of a class that is made.
    std::uint64_t spare(unsigned units) const {
      const size_class& c = base::class_of(units);
      const std::uint64_t slots = c.group * Geometry.units_in_slab() / units;
      return c.slabs / c.group * slots - c.taken;
    }
  };
  struct bootstrap_places {
    slab_number first = 0;  // slab of the first one
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

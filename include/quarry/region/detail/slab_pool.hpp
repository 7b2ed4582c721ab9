// SPDX-License-Identifier: Apache-2.0
#pragma once
/// slab_pool: objects of any size from slabs (Lyberis et al. 2012, section 3), with a fast path.
///
///   small    up to 8 slabs: a slot in a group of slabs (geometry.hpp)
///   large    slabs of its own; only the first one is marked in the table
///
/// allocate pops an address from the magazine of the size class. Slow path, in this order:
///   1. Fill the magazine with the lowest free slots of the class's current slab.
///   2. Make the first slab of the class's list the current slab.
///   3. Format up to 16 slabs of the lowest free run as groups of this class.
///   4. Request slabs from the source.
/// deallocate checks the owner and the live bit in the slab table and pushes the address onto the
/// magazine. If the magazine is full, its older half returns to the slabs. A slab that was full
/// moves to the front of its list, a slab that becomes empty to the end, so that partially used
/// slabs are filled first. An empty group stays with its class while the class has at most 16 empty
/// slabs; beyond that its slabs join the free runs.
/// Large objects: a freed object of up to 64 slabs is cached for the next request of that length,
/// up to 1024 cached slabs in total. Other large objects join the free runs.
///
/// Invariants for a slab of a size class:
///   free & live == 0
///   slots that start in the slab and are in neither mask are in the magazine
///   in the list  <=>  free != 0 and the slab is not current
///   busy (first slab of the group) == number of slabs in the group that are current or have a slot
///   that is not free
/// Metadata never lies in slabs.
/// Thread safety: one call at a time per pool. Pools on one table are independent.

#include <quarry/region/detail/free_runs.hpp>
#include <quarry/region/detail/size_class.hpp>
#include <quarry/region/status.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <span>
#include <string>

namespace quarry {

struct pool_statistics {
  std::uint64_t objects = 0;
  std::uint64_t live_bytes = 0;     // slots of live objects
  std::uint64_t full_slabs = 0;     // without a free slot, and slabs of large objects
  std::uint64_t partial_slabs = 0;  // with free and used slots
  std::uint64_t empty_slabs = 0;    // without a used slot, kept by their size class
  std::uint64_t free_slabs = 0;     // in free runs
  std::uint64_t free_runs = 0;
};

template <slab_geometry Geometry = default_geometry, trie_node_source Nodes = node_pool>
class slab_pool {
 public:
  using table_type = slab_table_view<Geometry>;
  static constexpr slab_geometry geometry = Geometry;
  static constexpr slab_number kept_slabs = 16;  // empty slabs per class; also the unit of growth
  static constexpr slab_number largest_kept =
      64;  // slabs of a large object that is cached when freed
  static constexpr slab_number kept_large = 1024;  // slabs of all cached large objects
  /// A magazine holds up to 64 addresses, and fewer of large slots: 32 KiB, but at least 16.
  static constexpr std::size_t magazine_bytes = std::size_t{1} << 15;
  static constexpr unsigned magazine_size(unsigned units) {
    return static_cast<unsigned>(
        std::clamp<std::size_t>(magazine_bytes / (units * Geometry.slot), 16, 64));
  }

  slab_pool(const table_type& table, pool_stamp stamp, pool_source& source, Nodes& nodes)
      : table_(table), source_(&source), stamp_(stamp), runs_(table, stamp, nodes) {
    for (class_block*& b : blocks_) b = &no_classes;
    for (slab_number& head : waiting_) head = no_slab;
  }
  slab_pool(const slab_pool&) = delete;
  slab_pool& operator=(const slab_pool&) = delete;
  ~slab_pool() { discard(); }

  /// Returns n bytes, aligned to the slot size, or nullptr: n is 0, or no run is long enough.
  void* allocate(std::size_t n) {
    const std::size_t unit = (n - 1) / Geometry.slot;
    if (unit >= Geometry.most_units()) return allocate_large(n, 1);
    size_class& c = class_of(static_cast<unsigned>(unit) + 1);
    if (c.top == c.floor) return allocate_slow(static_cast<unsigned>(unit) + 1);
    return pop(c);
  }
  /// The same at a multiple of `alignment`, a power of two. nullptr also if the address range does
  /// not start at a multiple of it; every range starts at a page.
  void* allocate(std::size_t n, std::size_t alignment);

  /// Returns ok, or not_ours or not_an_object without an effect. nullptr is not_ours.
  region_status deallocate(void* p) {
    const std::uintptr_t offset = table_.offset_of(p);
    if (offset >= table_.size()) return region_status::not_ours;
    const slab_number n = table_.slab_at(offset);
    const auto chunk = table_.chunk_of(n);
    if (chunk.owner() != stamp_) return region_status::not_ours;
    std::uint64_t& live = table_.live(n);
    if (offset % Geometry.slot != 0 || (live >> unit_of(offset) & 1) == 0)
      return region_status::not_an_object;
    live ^= std::uint64_t{1} << unit_of(offset);
    unsigned units = chunk.units();
    if (units == 0) {
      units = table_.units(n);
      if (units > Geometry.most_units()) return deallocate_large(n);
    }
    size_class& c = class_of(units);
    if (c.top == c.limit) return deallocate_slow(c, p);
    *c.top++ = p;
    return region_status::ok;
  }

  /// Returns the size of the slot at p, or 0 if no object of this pool starts at p.
  std::size_t usable_size(const void* p) const;

  /// Resizes the object at p to n bytes in place. False: impossible; the object is unchanged.
  bool resize(void* p, std::size_t n);

  /// Fills `out` with objects of n bytes. False: not enough memory; none is allocated.
  bool allocate_bulk(std::size_t n, std::span<void*> out);

  /// Allocates up to `most` objects of n bytes, n at most 8 slabs, slab by slab: visit(slab, mask),
  /// where bit i of the mask is an object that starts at unit i. Returns the number of objects,
  /// which is less than `most` only if memory runs out.
  template <class Visit>
  std::uint64_t allocate_slots(std::size_t n, std::uint64_t most, Visit visit);

  /// Adds free slabs to the pool; removes exactly these slabs (false: one of them is not free).
  void add_run(slab_run run) { runs_.insert(run); }
  bool remove_run(slab_run run) { return runs_.take_at(run); }
  /// Moves empty groups, magazines and cached large objects to the free runs.
  void reclaim();
  const free_runs<Geometry, Nodes>& runs() const { return runs_; }

  pool_stamp stamp() const { return stamp_; }
  pool_statistics statistics() const;
  /// Visits the runs of slabs in `scope` that hold a part of a live object, in address order.
  template <class Visit>
  void for_each_used(slab_run scope, Visit visit) const;
  /// Returns a description of the first violated invariant, or an empty string. `scope` is the list
  /// of all runs that the pool holds.
  std::string check_invariants(std::span<const slab_run> scope) const;

  /// Adds slabs whose table entries were restored from a file, and rebuilds lists and counters.
  region_status adopt(slab_run scope);

  /// Returns all metadata to the source. The owner of the table takes the slabs. Complexity: linear
  /// in the number of class blocks.
  void discard();
  /// Drops the metadata without returning it; its source is discarded as a whole.
  void forget();

 protected:
  size_class& class_of(unsigned units) const {
    // The index of the first block is a constant: one dependent load less for small sizes.
    if (units <= class_block::classes) return blocks_[0]->of[units - 1];
    return blocks_[(units - 1) / class_block::classes]->of[(units - 1) % class_block::classes];
  }
  size_class* make_class(unsigned units);
  /// Allocates a slot that the class already has. nullptr: it has none. Requests nothing from the
  /// source.
  void* allocate_here(size_class& c);
  bool refill(size_class& c);
  bool class_is_made(unsigned units) const {
    return blocks_[(units - 1) / class_block::classes] != &no_classes;
  }
  bool give_back(size_class& c);
  void format(size_class& c, slab_run run);

  bool keeps_empty_groups_ = false;  // until give_back or reclaim
  bool has_no_magazines_ = false;

 private:
  using list = slab_list<Geometry>;
  static constexpr unsigned block_count =
      (Geometry.most_units() + class_block::classes - 1) / class_block::classes;

  static unsigned unit_of(std::uintptr_t offset) {
    return static_cast<unsigned>(offset / Geometry.slot) % Geometry.units_in_slab();
  }
  void* pop(size_class& c) {
    void* p = *--c.top;
    const std::uintptr_t offset = table_.offset_of(p);
    table_.live(table_.slab_at(offset)) |= std::uint64_t{1} << unit_of(offset);
    return p;
  }
  /// Returns whether all slots that start in the slab are free, and at least one starts there.
  bool is_empty(slab_number n) const {
    const slab_links& l = table_.links(n);
    const unsigned units = table_.units(n);
    if (units >= Geometry.units_in_slab()) return l.free != 0;
    return l.free == all_start_masks<Geometry>.of[units - 1][l.place];
  }
  // Out of line, so that the fast paths spill no registers.
  QUARRY_NOINLINE void* allocate_slow(unsigned units);
  QUARRY_NOINLINE void* allocate_large(std::size_t n, slab_number alignment);
  QUARRY_NOINLINE region_status deallocate_slow(size_class& c, void* p);
  QUARRY_NOINLINE region_status deallocate_large(slab_number first);
  bool next_current(size_class& c);
  unsigned fill(size_class& c);
  bool make_room(size_class& c);
  void put_back(size_class& c, void* p);
  void flush(size_class& c, std::uint64_t how_many);
  void drop_group(size_class& c, slab_number first);
  void retire_current(size_class& c);
  void empty_waiting();
  slab_run take_slabs(slab_number least, slab_number wanted, slab_number alignment);
  slab_number first_of_group(slab_number n) const { return n - table_.links(n).place; }
  /// Returns the slab of the object that starts at p, or no_slab.
  slab_number slab_of_object(const void* p) const;

  table_type table_;
  pool_source* source_;
  pool_stamp stamp_;
  slab_number waiting_slabs_ = 0;
  class_block* blocks_[block_count];
  slab_number waiting_[largest_kept + 1];
  std::uint64_t large_objects_ = 0;
  std::uint64_t large_slabs_ = 0;
  free_runs<Geometry, Nodes> runs_;
};

namespace detail {
/// Returns a mask: bit i is set if slab i of the group holds a part of a live object. Of the
/// objects that start in a slab, only the last one can extend into the next slab.
template <slab_geometry Geometry>
std::uint32_t used_in_group(const slab_table_view<Geometry>& table, slab_number first,
                            unsigned group) {
  const unsigned units = table.units(first);
  std::uint32_t used = 0;
  for (unsigned i = 0; i < group; ++i) {
    const std::uint64_t live = table.live(first + i);
    if (live == 0) continue;
    const unsigned last = i * Geometry.units_in_slab() + log2_floor(live);
    for (unsigned s = i; s <= (last + units - 1) / Geometry.units_in_slab(); ++s) used |= 1u << s;
  }
  return used;
}
}  // namespace detail

template <slab_geometry Geometry, trie_node_source Nodes>
template <class Visit>
void slab_pool<Geometry, Nodes>::for_each_used(slab_run scope, Visit visit) const {
  for (slab_number n = scope.first; n < scope.end();) {
    const unsigned units = table_.units(n);
    if (units == slab_units::run || units == slab_units::large) {
      const auto count = static_cast<slab_number>(table_.links(n).count);
      if (table_.live(n) != 0) visit(slab_run{n, count});
      n += count;
      continue;
    }
    const unsigned group = class_of(units).group;
    const std::uint32_t used = detail::used_in_group(table_, n, group);
    for (unsigned i = 0; i < group; ++i)
      if ((used >> i & 1) != 0) visit(slab_run{n + i, 1});
    n += group;
  }
}

template <slab_geometry Geometry, trie_node_source Nodes>
template <class Visit>
std::uint64_t slab_pool<Geometry, Nodes>::allocate_slots(std::size_t n, std::uint64_t most,
                                                         Visit visit) {
  const std::size_t unit = (n - 1) / Geometry.slot;
  if (unit >= Geometry.most_units()) return 0;
  size_class* c = make_class(static_cast<unsigned>(unit) + 1);
  std::uint64_t got = 0;
  while (c != nullptr && got < most) {
    if (!next_current(*c) && (!refill(*c) || !next_current(*c))) break;
    std::uint64_t& free = table_.links(c->current).free;
    std::uint64_t mask = free;
    while (static_cast<std::uint64_t>(std::popcount(mask)) > most - got)
      mask ^= std::bit_floor(mask);  // the lowest are enough
    free ^= mask;
    table_.live(c->current) |= mask;
    const auto count = static_cast<std::uint64_t>(std::popcount(mask));
    c->taken += count;
    got += count;
    visit(c->current, mask);
  }
  return got;
}

/// The library quarry::region holds this instance. Other instances need detail/definitions.hpp.
extern template class slab_pool<default_geometry, node_pool>;

}  // namespace quarry

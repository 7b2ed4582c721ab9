// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region_heap: a general-purpose heap for any number of threads, made of shared regions.
///
/// Each thread allocates in a region that no other thread allocates in, as long as there are enough
/// regions: four per processor, 8 to 64 in total. A region is created when a thread first needs it.
/// The region of a thread that has ended serves the next thread, so the heap has at most as many
/// regions as threads existed at the same time. Two threads contend for a region if they share it,
/// or if one frees an object of the other: deallocate finds the region by the address and takes its
/// lock. A request of 0 bytes returns an object, as malloc does.
///
/// Memory. Requests are rounded up to slot_size(), by at most an eighth. Region r holds at most
///
///   held(r) <= (S(r) + F(r) + 8 MiB) * 16/13
///     S(r) = sum over sizes up to 8 KiB of (the largest number of bytes that objects of r of this
///            size had at once + 16 KiB) + the same number for all larger objects together
///     F(r) = 30 KiB * (number of groups of slabs and of larger objects that S(r) counts)
///
/// and statistics().committed_bytes <= H * 17/16 + keep, where H is the sum of held(r) and `keep`
/// is tree_options::keep, 8 MiB by default. Metadata adds 3.5 % of the largest H so far. The terms:
///   16 KiB   a size receives slabs when all of its slots are live, 16 at most
///   30 KiB   a free run of 31 slabs contains a whole chunk, which the tree takes back
///   8 MiB    cached larger objects 1 MiB and free runs beside them 4 MiB, growth 1 MiB, free
///            chunks 1.5 MiB; with 3/16 of what the region holds as more free chunks: hence 16/13
///   keep     free memory that is not yet returned to the system, with a 16th of H
/// S(r) counts the largest numbers of bytes, not those of now: the slots of a slab with one live
/// object stay committed, as in every heap that does not move objects.

#include <quarry/region/detail/thread_places.hpp>
#include <quarry/region/tree.hpp>

#include <array>
#include <cstring>

namespace quarry {

/// Small slots and slabs, since most objects of ordinary programs are small.
inline constexpr slab_geometry heap_geometry{1024, std::size_t{1} << 20, 16};

struct region_heap_statistics {
  std::uint64_t regions = 0;          // that threads have used so far
  std::uint64_t live_bytes = 0;       // slots of live objects
  std::uint64_t committed_bytes = 0;  // slabs that may be backed by memory
};

template <slab_geometry Geometry = heap_geometry>
class region_heap {
 public:
  using tree_type = basic_region_tree<Geometry>;

  explicit region_heap(const tree_options& options = default_options()) : tree_(options) {}

  /// The options of a tree, except that less free memory is kept.
  static tree_options default_options() {
    tree_options options;
    options.keep = std::uint64_t{8} << 20;
    return options;
  }

  /// Returns n rounded up to a size that the heap uses: a multiple of the smallest slot, with at
  /// most four significant bits, so that there are eight sizes from one power of two to the next.
  static constexpr std::size_t slot_size(std::size_t n) {
    if (n > ~std::size_t{0} / 4) return n;  // no heap has that much
    const std::size_t units = n <= Geometry.slot ? 1 : (n - 1) / Geometry.slot + 1;
    const std::size_t step = units <= 16 ? 1 : std::bit_floor(units - 1) / 8;
    return align_up(units, step) * Geometry.slot;
  }

  /// Returns n bytes at a multiple of `alignment`, a power of two up to 1 GiB in a range of 64 GiB
  /// or more, or nullptr. n may be 0.
  void* allocate(std::size_t n, std::size_t alignment = Geometry.slot) {
    auto* node = mine();
    if (node == nullptr) return nullptr;
    lock_if guard(node->lock, true);
    return node->it->pool.allocate(slot_size(n), alignment);
  }

  region_status deallocate(void* p) {
    if (p == nullptr) return region_status::ok;
    auto* node = owner(p);
    if (node == nullptr) return region_status::not_ours;
    lock_if guard(node->lock, true);
    return node->it->pool.deallocate(p);
  }

  /// Returns the size of the slot at p, or 0 if no object starts at p.
  std::size_t usable_size(const void* p) {
    auto* node = owner(p);
    if (node == nullptr) return 0;
    lock_if guard(node->lock, true);
    return node->it->pool.usable_size(p);
  }

  /// Resizes the object at p, as realloc does. Returns nullptr, and leaves p unchanged, if memory
  /// is missing or p is not an object.
  void* reallocate(void* p, std::size_t n) {
    if (p == nullptr) return allocate(n);
    auto* node = owner(p);
    if (node == nullptr) return nullptr;
    std::size_t had = 0;
    {
      lock_if guard(node->lock, true);
      had = node->it->pool.usable_size(p);
      if (had == 0) return nullptr;
      if (node->it->pool.resize(p, slot_size(n))) return p;
    }
    void* fresh = allocate(n);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, p, std::min(had, n));
    deallocate(p);
    return fresh;
  }

  /// Each region is inspected at a different time if other threads use the heap meanwhile.
  region_heap_statistics statistics() {
    region_heap_statistics s;
    for (auto& place : nodes_) {
      auto* node = place.load(std::memory_order_acquire);
      if (node == nullptr) continue;
      lock_if guard(node->lock, true);
      ++s.regions;
      s.live_bytes += node->it->pool.statistics().live_bytes;
      s.committed_bytes += node->it->held_slabs * Geometry.slab;
    }
    s.committed_bytes += tree_.dirty_slabs() * Geometry.slab;
    return s;
  }

  tree_type& tree() { return tree_; }

  /// fork copies the state of locks: before_fork takes all of them, after_fork releases them in the
  /// parent and in the child.
  void before_fork() {
    making_.lock();
    for (auto& place : nodes_)
      if (auto* node = place.load(std::memory_order_acquire)) node->lock.lock();
    tree_.lock_for_fork();
  }
  void after_fork(bool in_child) {
    tree_.unlock_after_fork(in_child);
    for (auto& place : nodes_)
      if (auto* node = place.load(std::memory_order_acquire)) node->lock.unlock();
    making_.unlock();
    if (in_child) detail::thread_places::after_fork_in_child();
  }

 private:
  /// Returns the region of an address. Regions of a heap are never destroyed.
  typename tree_type::node_type* owner(const void* p) {
    const region_result<region_id> id = tree_.region_of(p);
    return id ? tree_.find(*id) : nullptr;
  }

  typename tree_type::node_type* mine() {
    const unsigned place = detail::thread_places::mine();
    auto* node = nodes_[place].load(std::memory_order_acquire);
    return node != nullptr ? node : make(place);
  }
  typename tree_type::node_type* make(unsigned place) {
    std::lock_guard guard(making_);
    auto* node = nodes_[place].load(std::memory_order_relaxed);
    if (node != nullptr) return node;
    const auto id = tree_.create_region(root_region, sharing::many_threads);
    if (!id) return nullptr;
    node = tree_.find(*id);
    nodes_[place].store(node, std::memory_order_release);
    return node;
  }

  tree_type tree_;
  spin_lock making_;
  std::array<std::atomic<typename tree_type::node_type*>, detail::thread_places::most> nodes_{};
};

/// The library quarry::region holds these instances. Other geometries need detail/definitions.hpp.
extern template class slab_pool<heap_geometry, node_pool>;
extern template class metadata_pool<heap_geometry>;
extern template class basic_region_tree<heap_geometry>;

}  // namespace quarry

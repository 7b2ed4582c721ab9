// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region_heap: a general-purpose heap for any number of threads, made of shared regions.
///
/// Each thread allocates in one of 64 regions, assigned round-robin. Two threads contend for a
/// region only if more than 64 threads exist, or if one frees an object of the other: deallocate
/// finds the region by the address and takes its lock. A request of 0 bytes returns an object, as
/// malloc does.

#include <quarry/region/tree.hpp>

#include <array>
#include <cstring>

namespace quarry {

template <slab_geometry Geometry = default_geometry>
class region_heap {
 public:
  using tree_type = basic_region_tree<Geometry>;

  explicit region_heap(const tree_options& options = {}) : tree_(options) {}

  /// Returns n bytes at a multiple of `alignment`, a power of two up to 1 GiB in a range of 64 GiB
  /// or more, or nullptr. n may be 0.
  void* allocate(std::size_t n, std::size_t alignment = Geometry.slot) {
    auto* node = mine();
    if (node == nullptr) return nullptr;
    lock_if guard(node->lock, true);
    return node->it->pool.allocate(n == 0 ? 1 : n, alignment);
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
      if (node->it->pool.resize(p, n == 0 ? 1 : n)) return p;
    }
    void* fresh = allocate(n);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, p, std::min(had, n));
    deallocate(p);
    return fresh;
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
  }

 private:
  static constexpr unsigned places = 64;

  /// Returns the region of an address. Regions of a heap are never destroyed.
  typename tree_type::node_type* owner(const void* p) {
    const region_result<region_id> id = tree_.region_of(p);
    return id ? tree_.find(*id) : nullptr;
  }

  typename tree_type::node_type* mine() {
    static std::atomic<unsigned> threads{0};
    static thread_local const unsigned place =
        threads.fetch_add(1, std::memory_order_relaxed) % places;
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
  std::array<std::atomic<typename tree_type::node_type*>, places> nodes_{};
};

}  // namespace quarry

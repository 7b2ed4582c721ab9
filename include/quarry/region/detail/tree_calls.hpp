// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Members of basic_region_tree that users call. Part of definitions.hpp.

#include <quarry/region/detail/metadata_pool_calls.hpp>
#include <quarry/region/tree.hpp>

#include <cstring>

namespace quarry {

template <slab_geometry Geometry>
region_result<region_id> basic_region_tree<Geometry>::create_region(region_id parent,
                                                                    sharing threads) {
  lock_guard guard(mutex_);
  node_type* above = find(parent);
  if (above == nullptr) return region_status::stale_region;
  node_type* node = new_node();
  if (node == nullptr)
    return numbers_begun_ == most_regions ? region_status::too_many : region_status::out_of_memory;
  node->it.emplace(*node, table_);
  link(*node, *above);
  ++regions_;
  const region_id id(node->id().generation() + 1, node->number_);
  node->begin(id, threads == sharing::many_threads);
  return id;
}

template <slab_geometry Geometry>
region_status basic_region_tree<Geometry>::destroy_region(region_id id) {
  if (id == root_region) return region_status::is_root;
  std::vector<node_type*> dying;
  {
    lock_guard guard(mutex_);
    node_type* top = find(id);
    if (top == nullptr) return region_status::stale_region;
    for_each_below(*top, [&](node_type& node) { dying.push_back(&node); });
    unlink(*top);
    for (node_type* node : dying) node->end();
  }
  // Wait for calls that hold a lock. Later calls read the new id and fail.
  for (node_type* node : dying)
    if (node->is_shared()) {
      node->lock.lock();
      node->lock.unlock();
    }
  for (auto node = dying.rbegin(); node != dying.rend(); ++node)
    for (region_finalizer* f = (*node)->it->finalizers; f != nullptr; f = f->next)
      f->run(f->object);
  std::erase_if(dying, [](node_type* node) {
    lock_if guard(node->lock, node->is_shared());
    node->it->buried_by_last_pin = node->it->pins != 0;
    return node->it->buried_by_last_pin;
  });
  lock_guard guard(mutex_);
  for (auto node = dying.rbegin(); node != dying.rend(); ++node) bury(**node);
  return region_status::ok;
}

template <slab_geometry Geometry>
void basic_region_tree<Geometry>::bury_unpinned(node_type& node) {
  lock_guard guard(mutex_);
  bury(node);
}

template <slab_geometry Geometry>
region_result<void*> basic_region_tree<Geometry>::allocate(region_id id, std::size_t n,
                                                           std::size_t alignment) {
  if (n == 0) return region_status::zero_size;
  if (n > table_.size()) return region_status::too_large;
  if (!std::has_single_bit(alignment) || alignment > Geometry.page)
    return region_status::bad_alignment;
  node_type* node = find(id);
  if (node == nullptr) return region_status::stale_region;
  lock_if guard(node->lock, node->is_shared());
  if (node->id() != id) return region_status::stale_region;
  void* p = node->it->pool.allocate(n, alignment);
  if (p == nullptr) return region_status::out_of_memory;
  return p;
}

template <slab_geometry Geometry>
region_status basic_region_tree<Geometry>::deallocate(void* p) {
  if (p == nullptr) return region_status::ok;
  const region_result<region_id> id = region_of(p);
  if (!id) return id.status;
  node_type* node = find(*id);
  if (node == nullptr) return region_status::not_ours;
  lock_if guard(node->lock, node->is_shared());
  if (node->id() != *id) return region_status::not_ours;
  return node->it->pool.deallocate(p);
}

template <slab_geometry Geometry>
region_result<void*> basic_region_tree<Geometry>::reallocate(void* p, std::size_t n) {
  if (p == nullptr) return allocate(root_region, n);
  const region_result<region_id> id = region_of(p);
  if (!id) return id.status;
  return reallocate(p, n, *id);
}

template <slab_geometry Geometry>
region_result<void*> basic_region_tree<Geometry>::reallocate(void* p, std::size_t n,
                                                             region_id target) {
  if (p == nullptr) return allocate(target, n);
  if (n == 0) {
    if (const region_status s = deallocate(p); s != region_status::ok) return s;
    return static_cast<void*>(nullptr);
  }
  const region_result<region_id> id = region_of(p);
  if (!id) return id.status;
  node_type* node = find(*id);
  if (node == nullptr) return region_status::not_ours;
  std::size_t had = 0;
  {
    lock_if guard(node->lock, node->is_shared());
    if (node->id() != *id) return region_status::not_ours;
    had = node->it->pool.usable_size(p);
    if (had == 0) return region_status::not_an_object;
    if (*id == target && node->it->pool.resize(p, n)) return p;
  }
  const region_result<void*> fresh = allocate(target, n);
  if (!fresh) return fresh;
  std::memcpy(*fresh, p, std::min(had, n));
  if (const region_status s = deallocate(p); s != region_status::ok) {
    deallocate(*fresh);  // another thread freed p during the call
    return s;
  }
  return fresh;
}

template <slab_geometry Geometry>
region_status basic_region_tree<Geometry>::allocate_bulk(region_id id, std::size_t n,
                                                         std::span<void*> out) {
  if (n == 0) return region_status::zero_size;
  if (n > table_.size()) return region_status::too_large;
  node_type* node = find(id);
  if (node == nullptr) return region_status::stale_region;
  lock_if guard(node->lock, node->is_shared());
  if (node->id() != id) return region_status::stale_region;
  return node->it->pool.allocate_bulk(n, out) ? region_status::ok : region_status::out_of_memory;
}

template <slab_geometry Geometry>
region_result<region_id> basic_region_tree<Geometry>::parent_of(region_id id) const {
  lock_guard guard(mutex_);
  node_type* node = find(id);
  if (node == nullptr) return region_status::stale_region;
  return node->parent == nullptr ? id : node->parent->id();
}

template <slab_geometry Geometry>
std::size_t basic_region_tree<Geometry>::usable_size(const void* p) const {
  const region_result<region_id> id = region_of(p);
  node_type* node = id ? find(*id) : nullptr;
  if (node == nullptr) return 0;
  lock_if guard(node->lock, node->is_shared());
  return node->id() == *id ? node->it->pool.usable_size(p) : 0;
}

template <slab_geometry Geometry>
region_result<region_statistics> basic_region_tree<Geometry>::statistics(region_id id) const {
  node_type* node = find(id);
  if (node == nullptr) return region_status::stale_region;
  lock_if guard(node->lock, node->is_shared());
  lock_guard tree_guard(mutex_);
  if (node->id() != id) return region_status::stale_region;
  region_statistics s{node->it->pool.statistics(), node->it->held_slabs, 0};
  for (const node_type* c = node->child; c != nullptr; c = c->next) ++s.children;
  return s;
}

}  // namespace quarry

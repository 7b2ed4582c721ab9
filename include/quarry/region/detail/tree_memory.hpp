// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Members of basic_region_tree for chunks, nodes, metadata and invariants. Part of
/// definitions.hpp.

#include <quarry/region/detail/metadata_pool_calls.hpp>
#include <quarry/region/tree.hpp>

namespace quarry {

template <slab_geometry Geometry>
tree_options basic_region_tree<Geometry>::fitted(tree_options options) {
  if (options.metadata == 0)
    options.metadata = std::max<std::uint64_t>(options.range / 64, 2 * Geometry.page);
  return options;
}

template <slab_geometry Geometry>
basic_region_tree<Geometry>::basic_region_tree(const tree_options& options)
    : options_(fitted(options)),
      table_(options_.range, options_.where, !options_.addresses_only),
      metadata_pool_(options_.metadata),
      numbers_range_(std::size_t{most_regions} * sizeof(node_type*), 4096),
      numbers_(reinterpret_cast<node_type**>(numbers_range_.base())),
      free_source_(metadata_pool_),
      nodes_(free_source_),
      free_(table_, no_owner, nodes_) {
  if (!options_.addresses_only) {  // otherwise add_pages adds the free slabs
    free_.insert({0, table_.count()});
    slabs_ = table_.count();
  }
  node_type* root = new_node();
  if (root == nullptr) throw out_of_memory("the range for metadata is too small for the root");
  root->it.emplace(*root, table_);
  root->begin(root_region, options_.threads == sharing::many_threads);
  regions_ = 1;
}

template <slab_geometry Geometry>
basic_region_tree<Geometry>::~basic_region_tree() {
  std::vector<node_type*> all;
  for_each_below(*node_at(0), [&](node_type& node) { all.push_back(&node); });
  for (auto node = all.rbegin(); node != all.rend(); ++node) {
    for (region_finalizer* f = (*node)->it->finalizers; f != nullptr; f = f->next)
      f->run(f->object);
    (*node)->it->forget();
  }
  free_.forget();
}

// ---- chunks -------------------------------------------------------------------------------------

/// Returns the number of slabs for a region that grows: a page, or less when little memory is left.
template <slab_geometry Geometry>
slab_number basic_region_tree<Geometry>::growth() const {
  const std::uint64_t plenty = std::max<std::uint64_t>(slabs_ / 8, 1);
  const std::uint64_t share = high_mark * free_.slabs() / plenty / chunk * chunk;
  return static_cast<slab_number>(std::clamp<std::uint64_t>(share, low_mark, high_mark));
}

/// Records the owner of chunks that are no longer free.
template <slab_geometry Geometry>
void basic_region_tree<Geometry>::assign(slab_run run, pool_stamp owner) {
  for (slab_number n = run.first; n < std::min(run.end(), dirty_end_); n += chunk)
    if (table_.is_dirty(n)) dirty_slabs_ -= chunk;
  table_.set_owner(run, owner);
}

template <slab_geometry Geometry>
slab_run basic_region_tree<Geometry>::grow(node_type& node, slab_number least, slab_number wanted) {
  lock_guard guard(mutex_);
  const auto exact = static_cast<slab_number>(
      std::min<std::uint64_t>(align_up(std::uint64_t{least}, chunk), table_.count()));
  if (exact < least) return {};
  const slab_number usual =
      std::max({exact, growth(),
                static_cast<slab_number>(std::min<std::uint64_t>(
                    align_up(std::uint64_t{wanted}, chunk), table_.count()))});
  slab_run run;
  if (options_.growth == growth_place::nearest && node.it->held_slabs != 0) {
    // Memory that was used before is preferred to memory that the system would have to provide.
    const slab_number limit = options_.addresses_only ? no_slab : dirty_end_;
    run = free_.take_nearest(node.range_of(node.it->grown_at), limit, exact, usual);
  }
  if (!run) run = free_.take_multiple(exact, usual);
  if (!run && trim_others(&node, exact) != 0) run = free_.take(exact);
  if (!run) return {};
  assign(run, node.stamp());
  table_.forget(run);
  if (node.hold(run)) {
    node.it->grown_at = run.first;
    return run;
  }
  give_free(run);
  return {};
}

template <slab_geometry Geometry>
void basic_region_tree<Geometry>::add_pages(slab_run pages) {
  lock_guard guard(mutex_);
  table_.set_owner(pages, no_owner);
  table_.forget(pages);
  free_.insert(pages);
  slabs_ += pages.count;
}

template <slab_geometry Geometry>
slab_run basic_region_tree<Geometry>::take_pages(slab_number most) {
  lock_guard guard(mutex_);
  slab_run found;
  free_.for_each([&](slab_run run) {
    const slab_number first = (run.first + high_mark - 1) / high_mark * high_mark;
    const slab_number end = run.end() / high_mark * high_mark;
    if (first < end && end - first > found.count) found = {first, end - first};
  });
  found.count = std::min(found.count, most / high_mark * high_mark);
  if (!found) return {};
  free_.take_at(found);
  assign(found, outside);  // otherwise stale marks would look like free runs
  slabs_ -= found.count;
  return found;
}

template <slab_geometry Geometry>
region_status basic_region_tree<Geometry>::claim(node_type& node, slab_run run) {
  lock_guard guard(mutex_);
  if (run.first % chunk != 0 || run.count % chunk != 0 || run.count == 0 ||
      run.count > table_.count() || run.first > table_.count() - run.count)
    return region_status::too_large;
  if (!free_.take_at(run)) return region_status::out_of_memory;
  assign(run, node.stamp());
  table_.forget(run);
  if (node.hold(run)) return region_status::ok;
  give_free(run);
  return region_status::out_of_memory;
}

/// Requires: no slab of the run is in use.
template <slab_geometry Geometry>
void basic_region_tree<Geometry>::give_free(slab_run run) {
  table_.set_dirty(run);
  free_.insert(run);
  dirty_slabs_ += run.count;
  dirty_end_ = std::max(dirty_end_, run.end());
  if (dirty_slabs_ > most_dirty()) purge_free(most_dirty() / 2);
}

/// Returns memory of free runs to the system, the longest runs first, until at most `leave` free
/// slabs are dirty.
template <slab_geometry Geometry>
void basic_region_tree<Geometry>::purge_free(std::uint64_t leave) {
  free_.for_each([&](slab_run run) {
    const slab_number end = std::min(run.end(), dirty_end_);
    for (slab_number n = run.first; n < end && dirty_slabs_ > leave; n += chunk) {
      slab_run part{n, 0};
      while (part.end() < end && table_.is_dirty(part.end())) part.count += chunk;
      if (!part) continue;
      table_.purge(part);
      table_.set_owner(part, no_owner);
      dirty_slabs_ -= part.count;
      n = part.end();
    }
  });
}

/// Takes whole chunks of the region's free runs and leaves at least `leave` free slabs. Returns the
/// number of slabs taken.
template <slab_geometry Geometry>
std::uint64_t basic_region_tree<Geometry>::trim_node(node_type& node, std::uint64_t leave) {
  // No std::vector: this tree may implement operator new.
  std::array<slab_run, 32> parts;
  std::uint64_t given = 0;
  for (std::size_t count = parts.size(); count == parts.size();) {
    count = 0;
    std::uint64_t left = node.it->pool.runs().slabs();
    node.it->pool.runs().for_each([&](slab_run run) {
      const slab_number first = (run.first + chunk - 1) / chunk * chunk;
      const slab_number end = run.end() / chunk * chunk;
      if (first >= end || left < leave + chunk || count == parts.size()) return;
      const std::uint64_t most = (left - leave) / chunk * chunk;
      const auto part = static_cast<slab_number>(std::min<std::uint64_t>(end - first, most));
      parts[count++] = {end - part, part};
      left -= part;
    });
    for (std::size_t i = 0; i < count; ++i) {
      if (!node.it->pool.remove_run(parts[i])) return given;
      if (!node.let_go(parts[i])) {
        node.it->pool.add_run(parts[i]);
        return given;  // no memory for the metadata of the remainder
      }
      give_free(parts[i]);
      given += parts[i].count;
    }
  }
  return given;
}

template <slab_geometry Geometry>
void basic_region_tree<Geometry>::take_surplus(node_type& node) {
  lock_guard guard(mutex_);
  trim_node(node, surplus_mark(node.it->held_slabs) / 2);
  node.it->freed_slabs = 0;
}

template <slab_geometry Geometry>
std::uint64_t basic_region_tree<Geometry>::trim_others(const node_type* asking,
                                                       slab_number wanted) {
  std::uint64_t given = 0;
  for (std::uint32_t i = 0; i < numbers_begun_ && given < wanted; ++i) {
    visited_ = visited_ + 1 >= numbers_begun_ ? 0 : visited_ + 1;
    node_type& node = *node_at(visited_);
    if (&node == asking || !is_alive(node.id())) continue;
    if (node.is_shared()) {
      if (!node.lock.try_lock()) continue;
    } else if (options_.threads == sharing::many_threads) {
      continue;
    }
    node.it->pool.reclaim();
    given += trim_node(node, low_mark);
    if (node.is_shared()) node.lock.unlock();
  }
  return given;
}

template <slab_geometry Geometry>
std::uint64_t basic_region_tree<Geometry>::trim() {
  lock_guard guard(mutex_);
  const std::uint64_t given = trim_others(nullptr, no_slab);
  purge_free(0);
  return given;
}

// ---- metadata -----------------------------------------------------------------------------------

template <slab_geometry Geometry>
void* basic_region_tree<Geometry>::take_metadata(std::size_t size) {
  lock_guard guard(mutex_);
  return metadata_pool_.allocate(size);
}

template <slab_geometry Geometry>
void basic_region_tree<Geometry>::give_metadata(void* p) {
  lock_guard guard(mutex_);
  if (metadata_pool_.deallocate(p) != region_status::ok) std::abort();  // the metadata is corrupt
}

/// Returns the node of a destroyed region, or a node with a new number. nullptr: neither is left.
template <slab_geometry Geometry>
auto basic_region_tree<Geometry>::new_node() -> node_type* {
  if (unused_ != nullptr) {
    node_type* node = unused_;
    unused_ = node->next;
    return node;
  }
  if (numbers_begun_ == most_regions) return nullptr;
  void* memory = metadata_pool_.allocate(sizeof(node_type));
  if (memory == nullptr) return nullptr;
  auto* node = new (memory) node_type(*this, numbers_begun_);
  std::atomic_ref<node_type*>(numbers_[numbers_begun_]).store(node, std::memory_order_release);
  ++numbers_begun_;
  return node;
}

template <slab_geometry Geometry>
void basic_region_tree<Geometry>::link(node_type& node, node_type& parent) {
  node.parent = &parent;
  node.child = node.prev = nullptr;
  node.next = parent.child;
  if (node.next != nullptr) node.next->prev = &node;
  parent.child = &node;
}

template <slab_geometry Geometry>
void basic_region_tree<Geometry>::unlink(node_type& node) {
  (node.prev == nullptr ? node.parent->child : node.prev->next) = node.next;
  if (node.next != nullptr) node.next->prev = node.prev;
  node.next = node.prev = nullptr;
}

/// Takes back the memory and metadata of a region whose id is already invalid.
template <slab_geometry Geometry>
void basic_region_tree<Geometry>::bury(node_type& node) {
  for (const auto [first, count] : node.it->held)
    give_free({static_cast<slab_number>(first), static_cast<slab_number>(count)});
  node.it->forget();
  node.it.reset();
  --regions_;
  if (node.id().generation() + 2 >= options_.most_generations) return;
  node.next = unused_;
  unused_ = &node;
}

// ---- queries -------------------------------------------------------------------------------

template <slab_geometry Geometry>
std::uint64_t basic_region_tree<Geometry>::free_slabs() const {
  lock_guard guard(mutex_);
  return free_.slabs();
}

template <slab_geometry Geometry>
std::uint64_t basic_region_tree<Geometry>::dirty_slabs() const {
  lock_guard guard(mutex_);
  return dirty_slabs_;
}

template <slab_geometry Geometry>
std::uint64_t basic_region_tree<Geometry>::regions() const {
  lock_guard guard(mutex_);
  return regions_;
}

template <slab_geometry Geometry>
pool_statistics basic_region_tree<Geometry>::metadata() const {
  lock_guard guard(mutex_);
  return metadata_pool_.statistics();
}

template <slab_geometry Geometry>
std::string basic_region_tree<Geometry>::check_invariants() const {
  lock_guard guard(mutex_);
  if (std::string fault = metadata_pool_.check_invariants(); !fault.empty()) return fault;
  if (std::string fault = free_.check_invariants(); !fault.empty()) return "tree: " + fault;
  std::string fault;
  std::uint64_t held = 0, regions = 0;
  for_each_below(*node_at(0), [&](node_type& node) {
    if (!fault.empty()) return;
    const std::string name = "region " + std::to_string(node.number_) + ": ";
    ++regions;
    if (!is_alive(node.id())) fault = name + "is in the tree but was destroyed";
    fault = node.it->held.check_invariants();
    std::vector<slab_run> scope;
    std::uint64_t slabs = 0;
    for (const auto [first, count] : node.it->held) {
      scope.push_back({static_cast<slab_number>(first), static_cast<slab_number>(count)});
      slabs += count;
    }
    if (fault.empty() && slabs != node.it->held_slabs) fault = "the number of its slabs is wrong";
    if (fault.empty()) fault = node.it->pool.check_invariants(scope);
    if (!fault.empty()) fault = name + fault;
    held += slabs;
  });
  if (!fault.empty()) return fault;
  if (regions != regions_) return "the number of regions is wrong";
  if (held + free_.slabs() != slabs_)
    return "the slabs of regions and free runs do not sum to the slabs of the tree";
  return {};
}

}  // namespace quarry

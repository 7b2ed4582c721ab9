// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region: a handle. Makes a region under a parent, frees it with everything in it at the end of its
/// scope.
///
///   quarry::region_tree tree;
///   quarry::region document(tree);                        // under the root
///   quarry::region chapter = document.make_child();
///   auto* n = new (chapter) node(...);                    // no destructor will run
///   auto* s = chapter.make<std::string>("...");           // its destructor runs with the region's end
///   std::vector<int, quarry::region::allocator<int>> v(chapter);
///   std::pmr::map<int, int> m(&chapter.resource());
///
/// Destructors. Freeing a region runs none: its objects are memory that goes away. Those made with
/// make<T>, where T has one, are registered and run, the latest first, before the memory goes;
/// children's before their parent's.
/// A parent takes its children along: a child's handle then holds a stale id, its calls throw
/// region_error, and its own end does nothing.
///
/// Errors: alloc throws out_of_memory; anything else that can not be done throws region_error.

#include <quarry/region/region_memory.hpp>
#include <quarry/region/region_tree.hpp>

#include <memory_resource>
#include <type_traits>
#include <utility>

namespace quarry {

/// A call that makes no sense: a bad pointer, a region that was freed.
class region_error : public error {
 public:
  region_error(const std::string& what, region_status status)
      : error(what + ": " + to_text(status)), status_(status) {}
  region_status status() const { return status_; }

 private:
  region_status status_;
};

class region {
 public:
  /// The standard's containers in a region.
  using memory_resource = region_resource<region>;

  explicit region(region_tree& tree, region_id parent = root_region,
                  sharing threads = sharing::one_thread)
      : tree_(&tree), id_(made(tree.create(parent, threads))), node_(tree.find(id_)) {}
  region make_child(sharing threads = sharing::one_thread) { return region(*tree_, id_, threads); }
  /// Takes over a region that exists.
  static region adopt(region_tree& tree, region_id id) { return region(&tree, id); }

  region(region&& other) noexcept
      : tree_(std::exchange(other.tree_, nullptr)), id_(other.id_), node_(other.node_) {}
  region& operator=(region&& other) noexcept {
    std::swap(tree_, other.tree_);
    std::swap(id_, other.id_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~region() {
    if (tree_ != nullptr) tree_->free_region(id_);
  }

  /// Never nullptr. Requires n > 0 and an alignment up to a page.
  void* alloc(std::size_t n, std::size_t alignment) {
    if (alignment <= region_tree::geometry.slot) return alloc(n);
    const region_result<void*> p = tree_->alloc(id_, n, alignment);
    if (!p) refuse(n, p.status);
    return *p;
  }
  void* alloc(std::size_t n) {
    if (node_->lone_id() == id_)
      if (void* p = node_->it->pool.alloc(n)) return p;
    return alloc_slow(n);
  }
  /// An object of this region, or nullptr.
  void free(void* p) {
    const region_status s = try_free(p);
    if (s != region_status::ok) fail("free", s);
  }
  region_status try_free(void* p) {
    if (node_->lone_id() != id_) return free_slow(p);
    const region_status s = node_->it->pool.free(p);
    return s == region_status::ok || p != nullptr ? s : region_status::ok;
  }

  /// A T whose destructor, if it has one that does anything, runs before the region goes.
  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(alignof(T) <= region_tree::geometry.page);
    void* memory = alloc(sizeof(T), alignof(T));
    if constexpr (std::is_trivially_destructible_v<T>) {
      return construct<T>(memory, std::forward<Args>(args)...);
    } else {
      void* note = nullptr;
      try {
        note = alloc(sizeof(region_finalizer));
      } catch (...) {
        free(memory);
        throw;
      }
      T* object = nullptr;
      try {
        object = construct<T>(memory, std::forward<Args>(args)...);
      } catch (...) {
        free(note);
        throw;
      }
      lock_if guard(node_->lock, node_->is_shared());
      region_finalizer*& first = node_->it->finalizers;
      first = new (note) region_finalizer{[](void* p) { static_cast<T*>(p)->~T(); }, object, first};
      return object;
    }
  }

  template <class T>
  using allocator = region_allocator<T, region>;
  /// Lives as long as this handle, at one address only as long as it is not moved.
  memory_resource& resource() { return resource_; }

  region_id id() const { return id_; }
  region_tree& tree() const { return *tree_; }
  region_statistics statistics() const {
    const auto s = tree_->statistics(id_);
    if (!s) throw region_error("statistics", s.status);
    return s.value;
  }
  bool is_same(const region& other) const { return id_ == other.id_ && tree_ == other.tree_; }
  /// Leaves the region alive; its id keeps it.
  region_id release() {
    tree_ = nullptr;
    return id_;
  }

 private:
  region(region_tree* tree, region_id id) : tree_(tree), id_(id), node_(tree->find(id)) {
    if (node_ == nullptr) throw region_error("adopt", region_status::stale_region);
  }
  static region_id made(const region_result<region_id>& id) {
    if (!id) throw region_error("make a region", id.status);
    return *id;
  }
  template <class T, class... Args>
  T* construct(void* memory, Args&&... args) {
    try {
      return new (memory) T(std::forward<Args>(args)...);
    } catch (...) {
      free(memory);
      throw;
    }
  }
  QUARRY_NOINLINE void* alloc_slow(std::size_t n) {
    const region_result<void*> p = tree_->alloc(id_, n);
    if (!p) refuse(n, p.status);
    return *p;
  }
  [[noreturn]] QUARRY_NOINLINE static void fail(const char* what, region_status why) {
    throw region_error(what, why);
  }
  QUARRY_NOINLINE region_status free_slow(void* p) {
    if (p == nullptr) return region_status::ok;
    lock_if guard(node_->lock, node_->is_shared());
    if (node_->id() != id_) return region_status::stale_region;
    return node_->it->pool.free(p);
  }
  [[noreturn]] QUARRY_NOINLINE static void refuse(std::size_t n, region_status why) {
    if (why == region_status::out_of_memory || why == region_status::too_large)
      throw out_of_memory("no " + quarry::to_text(bytes(n)) + " for a region: " + to_text(why) +
                          "; free regions, or give the tree a larger range");
    throw region_error("alloc", why);
  }

  region_tree* tree_;
  region_id id_;
  region_tree::node_type* node_;
  memory_resource resource_{*this};
};

}  // namespace quarry

/// new (region) T: the object lives until the region goes, or until region.free; no destructor runs.
inline void* operator new(std::size_t n, quarry::region& in) { return in.alloc(n); }
inline void* operator new[](std::size_t n, quarry::region& in) { return in.alloc(n); }
inline void* operator new(std::size_t n, std::align_val_t a, quarry::region& in) {
  return in.alloc(n, static_cast<std::size_t>(a));
}
/// Called when a constructor throws.
inline void operator delete(void* p, quarry::region& in) { in.try_free(p); }
inline void operator delete[](void* p, quarry::region& in) { in.try_free(p); }
inline void operator delete(void* p, std::align_val_t, quarry::region& in) { in.try_free(p); }

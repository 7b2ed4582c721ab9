// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region: a handle that owns a region. The constructor creates the region under a parent; the
/// destructor destroys it with its descendants and all their objects.
///
///   quarry::region_tree tree;
///   quarry::region document(tree);                        // a child of the root
///   quarry::region chapter = document.create_child();
///   auto* n = new (chapter) node(...);                    // destructor never runs
///   auto* s = chapter.create<std::string>("...");         // destructor runs at the region's end
///   std::vector<int, quarry::region::allocator<int>> v(chapter);
///   std::pmr::map<int, int> m(&chapter.resource());
///
/// Destructors. Destroying a region releases the memory of its objects and runs no destructor, with
/// one exception: create<T> registers the destructor of T unless it is trivial. Registered
/// destructors run before the memory is released, in reverse order of registration, those of a
/// child before those of its parent.
///
/// Lifetime. Destroying a region destroys its descendants. The handle of such a descendant then
/// holds a stale id: its calls throw region_error, and its destructor has no effect.
///
/// Moves. A moved-from or released handle owns no region; its calls throw region_error with
/// region_status::no_region. Resources and allocators of a region stay valid when its handle moves.
///
/// Errors: allocate throws out_of_memory if the tree has no memory left; every other failure throws
/// region_error.
/// Thread safety: a handle is used by one thread at a time, unless the region was created with
/// sharing::many_threads; then allocate, deallocate, create and destroy may be called concurrently.

#include <quarry/region/resource.hpp>
#include <quarry/region/tree.hpp>

#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

namespace quarry {

/// A call on a region failed: the region was destroyed, or an argument is invalid.
class region_error : public error {
 public:
  region_error(const std::string& what, region_status status)
      : error(what + ": " + to_text(status)), status_(status) {}
  region_status status() const { return status_; }

 private:
  region_status status_;
};

/// Refers to a region without owning it. Copyable; valid as long as the tree exists. Calls through
/// a reference to a destroyed region throw region_error, as do calls through a default-constructed
/// one.
class region_reference {
 public:
  region_reference() = default;
  /// Throws region_error if the region does not exist.
  region_reference(region_tree& tree, region_id id) : tree_(&tree), id_(id), node_(tree.find(id)) {
    if (node_ == nullptr) throw region_error("refer to a region", region_status::stale_region);
  }

  /// Returns n bytes, never nullptr. Requires n > 0, and a power of two up to a page as alignment.
  void* allocate(std::size_t n, std::size_t alignment) const {
    if (alignment <= region_tree::geometry.slot) return allocate(n);
    const region_result<void*> p = tree().allocate(id_, n, alignment);
    if (!p) fail_allocation(n, p.status);
    return *p;
  }
  void* allocate(std::size_t n) const {
    if (node_->lone_id() == id_)
      if (void* p = node_->it->pool.allocate(n)) return p;
    return allocate_slow(n);
  }
  /// Requires an object of this region, or nullptr, which has no effect.
  void deallocate(void* p) const {
    const region_status s = try_deallocate(p);
    if (s != region_status::ok) fail("deallocate", s);
  }
  /// The same, but reports failure as a status.
  region_status try_deallocate(void* p) const {
    if (node_->lone_id() != id_) return deallocate_slow(p);
    const region_status s = node_->it->pool.deallocate(p);
    return s == region_status::ok || p != nullptr ? s : region_status::ok;
  }

  /// Throws region_error if this refers to no region.
  region_tree& tree() const {
    if (tree_ == nullptr) fail("use a region", region_status::no_region);
    return *tree_;
  }
  region_id id() const { return id_; }
  explicit operator bool() const { return tree_ != nullptr; }
  friend bool operator==(const region_reference& a, const region_reference& b) {
    return a.tree_ == b.tree_ && a.id_ == b.id_;
  }

 private:
  friend class region;
  using node_type = region_tree::node_type;

  QUARRY_NOINLINE void* allocate_slow(std::size_t n) const {
    const region_result<void*> p = tree().allocate(id_, n);
    if (!p) fail_allocation(n, p.status);
    return *p;
  }
  QUARRY_NOINLINE region_status deallocate_slow(void* p) const {
    if (p == nullptr) return region_status::ok;
    if (tree_ == nullptr) return region_status::no_region;
    lock_if guard(node_->lock, node_->is_shared());
    if (node_->id() != id_) return region_status::stale_region;
    return node_->it->pool.deallocate(p);
  }
  /// Registers the destructor of an object. `memory` has room for a region_finalizer.
  void push_finalizer(void* memory, void (*run)(void*), void* object) const {
    lock_if guard(node_->lock, node_->is_shared());
    region_finalizer*& first = node_->it->finalizers;
    first = new (memory) region_finalizer{run, object, first};
  }
  /// Removes the registration of the object's destructor; throws region_error if there is none.
  region_finalizer* remove_finalizer(const void* object) const {
    lock_if guard(node_->lock, node_->is_shared());
    if (node_->id() != id_) fail("destroy", region_status::stale_region);
    region_finalizer** link = &node_->it->finalizers;
    while (*link != nullptr && (*link)->object != object) link = &(*link)->next;
    if (*link == nullptr) fail("destroy", region_status::not_an_object);
    return std::exchange(*link, (*link)->next);
  }
  [[noreturn]] QUARRY_NOINLINE static void fail(const char* what, region_status why) {
    throw region_error(what, why);
  }
  [[noreturn]] QUARRY_NOINLINE static void fail_allocation(std::size_t n, region_status why) {
    if (why == region_status::out_of_memory || why == region_status::too_large)
      throw out_of_memory("cannot allocate " + quarry::to_text(bytes(n)) +
                          " in a region: " + to_text(why) +
                          "; destroy regions, or create the tree with a larger range");
    throw region_error("allocate", why);
  }

  region_tree* tree_ = nullptr;
  region_id id_ = null_region;
  node_type* node_ = &null_region_node<region_tree::geometry>;
};

class region {
 public:
  using memory_resource = region_resource<region_reference>;
  template <class T>
  using allocator = region_allocator<T, region_reference>;

  explicit region(region_tree& tree, region_id parent = root_region,
                  sharing threads = sharing::one_thread)
      : region() {
    const region_result<region_id> id = tree.create_region(parent, threads);
    if (!id) throw region_error("create a region", id.status);
    bind({tree, *id});
  }
  region create_child(sharing threads = sharing::one_thread) {
    return region(tree(), id(), threads);
  }
  /// Returns a handle that owns an existing region.
  static region adopt(region_tree& tree, region_id id) {
    region adopted;
    adopted.bind({tree, id});
    return adopted;
  }

  region(region&& other) noexcept
      : resource_(std::move(other.resource_)), region_(std::exchange(other.region_, {})) {}
  /// Destroys the region that this handle owned.
  region& operator=(region&& other) noexcept {
    region taken(std::move(other));
    std::swap(resource_, taken.resource_);
    std::swap(region_, taken.region_);
    return *this;
  }
  ~region() {
    if (region_) region_.tree().destroy_region(region_.id());
  }

  void* allocate(std::size_t n, std::size_t alignment) { return region_.allocate(n, alignment); }
  void* allocate(std::size_t n) { return region_.allocate(n); }
  void deallocate(void* p) { region_.deallocate(p); }
  region_status try_deallocate(void* p) { return region_.try_deallocate(p); }

  /// Constructs a T in the region. Its destructor, unless trivial, runs in destroy() or before the
  /// region's memory is released.
  template <class T, class... Args>
  T* create(Args&&... args) {
    static_assert(alignof(T) <= region_tree::geometry.page);
    void* memory = allocate(sizeof(T), alignof(T));
    if constexpr (std::is_trivially_destructible_v<T>) {
      return construct<T>(memory, std::forward<Args>(args)...);
    } else {
      void* finalizer = nullptr;
      try {
        finalizer = allocate(sizeof(region_finalizer));
      } catch (...) {
        deallocate(memory);
        throw;
      }
      T* object = nullptr;
      try {
        object = construct<T>(memory, std::forward<Args>(args)...);
      } catch (...) {
        deallocate(finalizer);
        throw;
      }
      region_.push_finalizer(
          finalizer, [](void* p) { static_cast<T*>(p)->~T(); }, object);
      return object;
    }
  }
  /// Runs the destructor of an object and deallocates it. Requires the pointer that create<T>
  /// returned, or nullptr, which has no effect.
  /// Complexity: constant if the destructor is trivial; otherwise linear in the number of
  /// destructors registered after this one.
  template <class T>
  void destroy(T* object) {
    if (object == nullptr) return;
    if constexpr (!std::is_trivially_destructible_v<T>) {
      region_finalizer* finalizer = region_.remove_finalizer(object);
      object->~T();
      deallocate(finalizer);
    }
    deallocate(object);
  }

  /// The resource stays at its address when this handle moves. It is valid until the handle that
  /// owns the region is destroyed or released.
  memory_resource& resource() {
    tree();
    return *resource_;
  }
  region_reference reference() const {
    tree();
    return region_;
  }

  region_id id() const { return region_.id(); }
  region_tree& tree() const { return region_.tree(); }
  region_statistics statistics() const {
    const auto s = tree().statistics(id());
    if (!s) throw region_error("statistics", s.status);
    return s.value;
  }
  /// Returns whether both handles name the same region.
  bool is_same(const region& other) const { return region_ == other.region_; }
  /// Returns whether this handle owns a region: it was neither moved from nor released.
  explicit operator bool() const { return static_cast<bool>(region_); }
  /// Gives up ownership: the region stays alive, and its id is returned.
  region_id release() {
    const region_id id = reference().id();
    region_ = {};
    return id;
  }

 private:
  /// The resource is allocated before the region is created, so that no exception leaks the region.
  region() : resource_(std::make_unique<memory_resource>(region_reference())) {}
  void bind(const region_reference& to) {
    region_ = to;
    *resource_ = memory_resource(to);
  }
  template <class T, class... Args>
  T* construct(void* memory, Args&&... args) {
    try {
      return new (memory) T(std::forward<Args>(args)...);
    } catch (...) {
      deallocate(memory);
      throw;
    }
  }

  std::unique_ptr<memory_resource> resource_;
  region_reference region_;
};

}  // namespace quarry

/// new (region) T: the object exists until the region is destroyed or region.deallocate is called;
/// its destructor never runs.
inline void* operator new(std::size_t n, quarry::region& in) { return in.allocate(n); }
inline void* operator new[](std::size_t n, quarry::region& in) { return in.allocate(n); }
inline void* operator new(std::size_t n, std::align_val_t a, quarry::region& in) {
  return in.allocate(n, static_cast<std::size_t>(a));
}
/// The compiler calls these if a constructor throws.
inline void operator delete(void* p, quarry::region& in) { in.try_deallocate(p); }
inline void operator delete[](void* p, quarry::region& in) { in.try_deallocate(p); }
inline void operator delete(void* p, std::align_val_t, quarry::region& in) { in.try_deallocate(p); }

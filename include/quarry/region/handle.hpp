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
/// child before those of its parent. They must not throw. destroy() runs a registered destructor
/// earlier; deallocate() rejects the object (region_status::not_an_object).
///
/// Lifetime. Destroying a region destroys its descendants. The handle of such a descendant then
/// holds a stale id: its calls throw region_error, and its destructor has no effect. deallocate and
/// destroy have no effect then, since the objects are gone: a container may outlive its region.
///
/// If a thread destroys the region while another one is in create<T>, the memory stays until the
/// constructor returns; create<T> then destroys the object and throws region_error with
/// region_status::stale_region. `new (region) T` has no such protection.
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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

namespace quarry {

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
  /// Requires an object of this region, or nullptr, which has no effect. If the region was
  /// destroyed, the call has no effect.
  void deallocate(void* p) const {
    const region_status s = try_deallocate(p);
    if (s != region_status::ok && s != region_status::stale_region) fail("deallocate", s);
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
  /// Keeps the memory of the region while this object exists.
  class pin {
   public:
    explicit pin(const region_reference& in)
        : node_(in && in.node_->pin(in.id_) ? in.node_ : nullptr) {}
    pin(const pin&) = delete;
    pin& operator=(const pin&) = delete;
    ~pin() {
      if (node_ != nullptr) node_->unpin();
    }
    /// False: the region was destroyed before.
    explicit operator bool() const { return node_ != nullptr; }

   private:
    node_type* node_;
  };

  /// Registers a destructor. Requires a pin. False: the region was destroyed.
  bool push_finalizer(region_finalizer& f) const {
    lock_if guard(node_->lock, node_->is_shared());
    if (node_->id() != id_) return false;
    f.next = node_->it->finalizers;
    if (f.next != nullptr) f.next->prev = &f;
    node_->it->finalizers = &f;
    return true;
  }
  /// Removes a registration. Requires a pin. Returns stale_region if the region was destroyed, or
  /// not_an_object if `object` was not created at `offset` in a slot of this region.
  region_status remove_finalizer(const void* object, std::size_t offset) const {
    lock_if guard(node_->lock, node_->is_shared());
    if (node_->id() != id_) return region_status::stale_region;
    auto* const f =
        reinterpret_cast<region_finalizer*>(reinterpret_cast<std::uintptr_t>(object) - offset);
    if (node_->it->pool.usable_size(f) <= offset || f->object != object)
      return region_status::not_an_object;
    (f->prev != nullptr ? f->prev->next : node_->it->finalizers) = f->next;
    if (f->next != nullptr) f->next->prev = f->prev;
    f->object = nullptr;
    return region_status::ok;
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
    static_assert(alignof(T) <= region_tree::geometry.page,
                  "the alignment of T is larger than a page of a region");
    static_assert(std::is_nothrow_destructible_v<T>,
                  "the destructor of T may throw: a region could not be destroyed as a whole");
    constexpr std::size_t offset = object_offset<T>;
    const region_reference::pin pinned(region_);
    void* const memory = allocate(offset + sizeof(T), std::max(alignof(T), alignof(void*)));
    T* const object = construct<T>(memory, offset, std::forward<Args>(args)...);
    if constexpr (offset != 0) {
      auto* const finalizer = new (memory)
          region_finalizer{[](void* p) { static_cast<T*>(p)->~T(); }, object, nullptr, nullptr};
      if (region_.push_finalizer(*finalizer)) return object;
      object->~T();
    } else if (region_.node_->id() == region_.id()) {
      return object;
    }
    throw region_error("create", region_status::stale_region);
  }
  /// Runs the destructor of an object and deallocates it. Requires the pointer that create<T>
  /// returned, or nullptr, which has no effect. If the region was destroyed, its destruction has
  /// destroyed the object or will do so, and the call has no effect. Complexity: constant.
  template <class T>
  void destroy(T* object) {
    if (object == nullptr) return;
    if constexpr (object_offset<T> == 0) return deallocate(object);
    tree();
    const region_reference::pin pinned(region_);
    if (!pinned) return;
    const region_status s = region_.remove_finalizer(object, object_offset<T>);
    if (s == region_status::stale_region) return;
    if (s != region_status::ok) throw region_error("destroy", s);
    object->~T();
    deallocate(reinterpret_cast<std::byte*>(object) - object_offset<T>);
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
    return s.value();
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
  /// Where create<T> places an object in its slot: behind the registration of its destructor.
  template <class T>
  static constexpr std::size_t object_offset = std::is_trivially_destructible_v<T>
                                                   ? 0
                                                   : (sizeof(region_finalizer) + alignof(T) - 1) /
                                                         alignof(T) * alignof(T);
  template <class T, class... Args>
  T* construct(void* memory, std::size_t offset, Args&&... args) {
    try {
      return new (static_cast<std::byte*>(memory) + offset) T(std::forward<Args>(args)...);
    } catch (...) {
      try_deallocate(memory);
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
inline void* operator new[](std::size_t n, quarry::region& in) {
  return in.allocate(n == 0 ? 1 : n);  // an array may have no elements
}
inline void* operator new(std::size_t n, std::align_val_t a, quarry::region& in) {
  return in.allocate(n, static_cast<std::size_t>(a));
}
/// The compiler calls these if a constructor throws.
inline void operator delete(void* p, quarry::region& in) { in.try_deallocate(p); }
inline void operator delete[](void* p, quarry::region& in) { in.try_deallocate(p); }
inline void operator delete(void* p, std::align_val_t, quarry::region& in) { in.try_deallocate(p); }

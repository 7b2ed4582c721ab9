// SPDX-License-Identifier: Apache-2.0
#pragma once
/// cluster::region: a handle that owns a region of the cluster. The constructor creates the region
/// under a parent; the destructor destroys it with its descendants and all their objects.
///
///   void worker_main(quarry::cluster::worker& w) {
///     quarry::cluster::region document(w);                  // a child of the root
///     quarry::cluster::region chapter = document.create_child();
///     auto* n = new (chapter) node(...);
///     std::pmr::map<int, int> m(&chapter.resource());
///     document.hand_over(1);                                // owned by worker 1 now
///   }
///   auto document = quarry::cluster::region::take_over(w, 0);   // on worker 1, equal addresses
///
/// The interface is that of quarry::region, with two differences. Any worker may destroy a region,
/// so no worker can be relied on to run destructors: create<T> accepts trivially destructible types
/// only. And a handle belongs to the worker it was created with: regions and their ids travel,
/// handles do not.
///
/// A container over resource() or allocator<T> refers to a worker, which exists in this process
/// alone. Only the process that built the container may change and destroy it; others read its
/// elements.
///
/// A moved-from, released or handed-over handle owns no region; its calls throw region_error with
/// region_status::no_region. Resources and allocators stay valid when the handle moves.
///
/// Errors: allocate throws out_of_memory; every other failure throws region_error.

#include <quarry/cluster/worker.hpp>
#include <quarry/region/handle.hpp>
#include <quarry/region/resource.hpp>

#include <memory>
#include <memory_resource>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace quarry::cluster {

/// Refers to a region of the cluster, as one worker sees it, without owning it. Copyable.
class region_reference {
 public:
  region_reference() = default;
  region_reference(cluster::worker& w, rid id) : worker_(&w), id_(id) {}

  /// Returns n bytes, never nullptr. Requires n > 0, and a power of two up to a page as alignment.
  void* allocate(std::size_t n, std::size_t alignment = default_geometry.slot) const {
    const region_result<void*> p =
        worker().allocate(id_, n, std::max(alignment, default_geometry.slot));
    if (!p) fail_allocation(n, p.status);
    return *p;
  }
  /// Requires an object, or nullptr. An object in another worker's lease is freed later;
  /// worker::flush then reports errors.
  void deallocate(void* p) const {
    const region_status s = try_deallocate(p);
    if (s != region_status::ok && s != region_status::stale_region)
      throw region_error("deallocate", s);
  }
  /// The same, but reports failure as a status.
  region_status try_deallocate(void* p) const {
    if (p == nullptr) return region_status::ok;
    return worker_ == nullptr ? region_status::no_region : worker_->deallocate(p);
  }

  /// Throws region_error if this refers to no region.
  cluster::worker& worker() const {
    if (worker_ == nullptr) throw region_error("use a region", region_status::no_region);
    return *worker_;
  }
  rid id() const { return id_; }
  explicit operator bool() const { return worker_ != nullptr; }
  friend bool operator==(const region_reference&, const region_reference&) = default;

 private:
  friend class region;
  [[noreturn]] static void fail_allocation(std::size_t n, region_status why) {
    if (why == region_status::out_of_memory || why == region_status::too_large)
      throw out_of_memory("cannot allocate " + quarry::to_text(bytes(n)) + " in a region: " +
                          to_text(why) + "; destroy regions, or give the cluster more memory");
    throw region_error("allocate", why);
  }

  cluster::worker* worker_ = nullptr;
  rid id_ = root;
};

class region {
 public:
  using memory_resource = region_resource<region_reference>;
  template <class T>
  using allocator = region_allocator<T, region_reference>;

  /// level_hint: the depth of the region in the tree, 0 for a child of the root; -1: unknown.
  explicit region(worker& w, rid parent = root, int level_hint = -1) : region() {
    const region_result<rid> id = w.create_region(parent, level_hint);
    check("create a region", id.status);
    bind({w, *id});
  }
  region create_child(int level_hint = -1) { return region(owner(), id(), level_hint); }
  /// Returns a handle that owns an existing region.
  static region adopt(worker& w, rid id) {
    region adopted;
    adopted.bind({w, id});
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
    if (region_) owner().destroy_region(id());
  }

  void* allocate(std::size_t n, std::size_t alignment = default_geometry.slot) {
    return region_.allocate(n, alignment);
  }
  void deallocate(void* p) { region_.deallocate(p); }
  region_status try_deallocate(void* p) { return region_.try_deallocate(p); }
  /// Resizes the object at p to n bytes, at p or elsewhere in this region, and keeps its contents.
  /// p may belong to another region.
  void* reallocate(void* p, std::size_t n) {
    const region_result<void*> q = owner().reallocate(p, n, id());
    if (!q) region_reference::fail_allocation(n, q.status);
    return *q;
  }
  /// Fills `out` with objects of n bytes each, or throws and allocates none.
  void allocate_bulk(std::size_t n, std::span<void*> out) {
    const region_status s = owner().allocate_bulk(id(), n, out);
    if (s != region_status::ok) region_reference::fail_allocation(n, s);
  }

  template <class T, class... Args>
  T* create(Args&&... args) {
    static_assert(alignof(T) <= default_geometry.page);
    static_assert(std::is_trivially_destructible_v<T>,
                  "any worker may destroy the region, and none of them would run this destructor");
    void* memory = allocate(sizeof(T), alignof(T));
    try {
      return new (memory) T(std::forward<Args>(args)...);
    } catch (...) {
      try_deallocate(memory);
      throw;
    }
  }
  /// Deallocates an object that create<T> returned.
  template <class T>
  void destroy(T* object) {
    static_assert(std::is_trivially_destructible_v<T>);
    deallocate(object);
  }

  /// The resource stays at its address when this handle moves. It is valid until the handle that
  /// owns the region is destroyed, released or handed over.
  memory_resource& resource() {
    owner();
    return *resource_;
  }
  region_reference reference() const {
    owner();
    return region_;
  }

  // ---- between workers ----
  /// The peer gets a copy, by receive; this handle keeps the region.
  void send(unsigned peer) const {
    const rid id = this->id();
    check("send", owner().send(peer, std::span(&id, 1)));
  }
  /// The region of a handle that the peer sends, at the same addresses. Freed by the sender.
  static rid receive(worker& w, unsigned peer, rid expected = root) {
    check("receive", w.receive(peer, std::span(&expected, 1)));
    return expected;
  }
  /// The peer gets the region, by take_over; this handle has none any more.
  void hand_over(unsigned peer) {
    const rid id = this->id();
    check("hand over", owner().hand_over(peer, std::span(&id, 1)));
    region_ = {};
  }
  static region take_over(worker& w, unsigned peer) {
    rid id = root;
    check("take over", w.take_over(peer, std::span(&id, 1)));
    return adopt(w, id);
  }

  rid id() const { return region_.id(); }
  /// The worker that this handle was created with.
  worker& owner() const { return region_.worker(); }
  /// Returns the address ranges of all objects of the region and of its descendants.
  packed_region pack() const {
    const region_result<packed_region> p = owner().pack(id());
    check("pack", p.status);
    return p.value();
  }
  /// Returns whether both handles name the same region.
  bool is_same(const region& other) const { return region_ == other.region_; }
  /// Returns whether this handle owns a region: it was not moved from, released or handed over.
  explicit operator bool() const { return static_cast<bool>(region_); }
  /// Gives up ownership: the region stays alive, and its id is returned.
  rid release() {
    const rid id = reference().id();
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
  static void check(const char* what, region_status s) {
    if (s != region_status::ok) throw region_error(what, s);
  }

  std::unique_ptr<memory_resource> resource_;
  region_reference region_;
};

}  // namespace quarry::cluster

/// new (region) T: the object exists until the region is destroyed, or until region.deallocate is
/// called; its destructor never runs.
inline void* operator new(std::size_t n, quarry::cluster::region& in) { return in.allocate(n); }
inline void* operator new[](std::size_t n, quarry::cluster::region& in) {
  return in.allocate(n == 0 ? 1 : n);  // an array may have no elements
}
inline void* operator new(std::size_t n, std::align_val_t a, quarry::cluster::region& in) {
  return in.allocate(n, static_cast<std::size_t>(a));
}
/// The compiler calls these if a constructor throws.
inline void operator delete(void* p, quarry::cluster::region& in) { in.try_deallocate(p); }
inline void operator delete[](void* p, quarry::cluster::region& in) { in.try_deallocate(p); }
inline void operator delete(void* p, std::align_val_t, quarry::cluster::region& in) {
  in.try_deallocate(p);
}

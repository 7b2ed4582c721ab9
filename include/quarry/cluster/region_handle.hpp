// SPDX-License-Identifier: Apache-2.0
#pragma once
/// cluster::region: a handle. Makes a region of the cluster under a parent, frees it with
/// everything in it at the end of its scope.
///
///   void worker_main(quarry::cluster::worker& w) {
///     quarry::cluster::region document(w);                  // under the root
///     quarry::cluster::region chapter = document.make_child();
///     auto* n = new (chapter) node(...);
///     std::pmr::map<int, int> m(&chapter.resource());
///     document.hand_over(1);                                // another worker's now
///   }
///   auto document = quarry::cluster::region::take_over(w, 0);   // there, at the same addresses
///
/// As quarry::region in one process, with the same names. Two things differ. Any worker may free a
/// region, so no destructor can be promised: make<T> takes types without one. And a handle belongs
/// to the worker it was made with: what travels is the region, and its id.
///
/// A container over resource() or allocator<T> holds the address of a handle, which lies in this
/// process alone: the one that built it may change it and destroy it, others read what was sent,
/// through its elements.
///
/// Errors: alloc throws out_of_memory; anything else that can not be done throws region_error.

#include <quarry/cluster/worker.hpp>
#include <quarry/region/region_handle.hpp>
#include <quarry/region/region_memory.hpp>

#include <memory_resource>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace quarry::cluster {

class region {
 public:
  /// The standard's containers in a region.
  using memory_resource = region_resource<region>;

  /// level_hint: how deep it lies, 0 right below the root; -1: unknown.
  explicit region(worker& w, rid parent = root, int level_hint = -1)
      : worker_(&w), id_(made(w.create(parent, level_hint))) {}
  region make_child(int level_hint = -1) { return region(*worker_, id_, level_hint); }
  /// Takes over a region that exists.
  static region adopt(worker& w, rid id) { return region(&w, id); }

  region(region&& other) noexcept
      : worker_(std::exchange(other.worker_, nullptr)), id_(other.id_) {}
  region& operator=(region&& other) noexcept {
    std::swap(worker_, other.worker_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~region() {
    if (worker_ != nullptr) worker_->free_region(id_);
  }

  /// Never nullptr. Requires n > 0 and an alignment up to a page.
  void* alloc(std::size_t n, std::size_t alignment = default_geometry.slot) {
    const region_result<void*> p =
        worker_->alloc(id_, n, std::max(alignment, default_geometry.slot));
    if (!p) refuse(n, p.status);
    return *p;
  }
  /// An object, or nullptr. One that was leased to another worker is freed later, and what is wrong
  /// with it told by worker::flush.
  void free(void* p) {
    const region_status s = try_free(p);
    if (s != region_status::ok) throw region_error("free", s);
  }
  region_status try_free(void* p) { return worker_->free(p); }
  /// n bytes at p or elsewhere in this region, with what p held; p may be another region's.
  void* realloc(void* p, std::size_t n) {
    const region_result<void*> q = worker_->realloc(p, n, id_);
    if (!q) refuse(n, q.status);
    return *q;
  }
  /// All of out, or an exception.
  void alloc_bulk(std::size_t n, std::span<void*> out) {
    const region_status s = worker_->alloc_bulk(id_, n, out);
    if (s != region_status::ok) refuse(n, s);
  }

  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(alignof(T) <= default_geometry.page);
    static_assert(std::is_trivially_destructible_v<T>,
                  "any worker may free the region, and none of them would run this destructor");
    void* memory = alloc(sizeof(T), alignof(T));
    try {
      return new (memory) T(std::forward<Args>(args)...);
    } catch (...) {
      try_free(memory);
      throw;
    }
  }

  template <class T>
  using allocator = region_allocator<T, region>;
  /// Lives as long as this handle, at one address only as long as it is not moved.
  memory_resource& resource() { return resource_; }

  // ---- between workers ----
  /// The peer gets a copy, by receive; this handle keeps the region.
  void send(unsigned peer) const { check("send", worker_->send(peer, std::span(&id_, 1))); }
  /// The region of a handle that the peer sends, at the same addresses. Freed by the sender.
  static rid receive(worker& w, unsigned peer, rid expected = root) {
    check("receive", w.receive(peer, std::span(&expected, 1)));
    return expected;
  }
  /// The peer gets the region, by take_over; this handle has none any more.
  void hand_over(unsigned peer) {
    check("hand over", worker_->hand_over(peer, std::span(&id_, 1)));
    worker_ = nullptr;
  }
  static region take_over(worker& w, unsigned peer) {
    rid id = root;
    check("take over", w.take_over(peer, std::span(&id, 1)));
    return region(&w, id);
  }

  rid id() const { return id_; }
  worker& owner() const { return *worker_; }
  /// The addresses of everything inside.
  packed_region pack() const {
    const region_result<packed_region> p = worker_->pack(id_);
    check("pack", p.status);
    return p.value;
  }
  bool is_same(const region& other) const { return id_ == other.id_ && worker_ == other.worker_; }
  /// Leaves the region alive; its id keeps it.
  rid release() {
    worker_ = nullptr;
    return id_;
  }

 private:
  region(worker* w, rid id) : worker_(w), id_(id) {}
  static rid made(const region_result<rid>& id) {
    check("make a region", id.status);
    return *id;
  }
  static void check(const char* what, region_status s) {
    if (s != region_status::ok) throw region_error(what, s);
  }
  [[noreturn]] static void refuse(std::size_t n, region_status why) {
    if (why == region_status::out_of_memory || why == region_status::too_large)
      throw out_of_memory("no " + quarry::to_text(bytes(n)) + " for a region: " + to_text(why) +
                          "; free regions, or give the cluster more room");
    throw region_error("alloc", why);
  }

  worker* worker_;
  rid id_;
  memory_resource resource_{*this};
};

}  // namespace quarry::cluster

/// new (region) T: the object lives until the region goes, or until region.free; no destructor
/// runs.
inline void* operator new(std::size_t n, quarry::cluster::region& in) { return in.alloc(n); }
inline void* operator new[](std::size_t n, quarry::cluster::region& in) { return in.alloc(n); }
inline void* operator new(std::size_t n, std::align_val_t a, quarry::cluster::region& in) {
  return in.alloc(n, static_cast<std::size_t>(a));
}
/// Called when a constructor throws.
inline void operator delete(void* p, quarry::cluster::region& in) { in.try_free(p); }
inline void operator delete[](void* p, quarry::cluster::region& in) { in.try_free(p); }
inline void operator delete(void* p, std::align_val_t, quarry::cluster::region& in) {
  in.try_free(p);
}

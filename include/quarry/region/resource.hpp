// SPDX-License-Identifier: Apache-2.0
#pragma once
/// region_resource and region_allocator: a region as a std::pmr::memory_resource and as a standard
/// allocator.
///
/// Both store a Reference by value, not the address of a handle. They stay valid when the handle is
/// moved, and as long as the region and its tree (or, in a cluster, its worker) exist.
///
/// A Reference is copyable, comparable, and has allocate(n, alignment) and deallocate(p), which
/// throw: quarry::region_reference, quarry::cluster::region_reference. A handle has reference().

#include <concepts>
#include <cstddef>
#include <memory_resource>
#include <new>

namespace quarry {

template <class Handle, class Reference>
concept region_handle_of = requires(const Handle& handle) {
  { handle.reference() } -> std::same_as<Reference>;
};

/// Compares equal to a resource of the same region, so containers may exchange their elements.
template <class Reference>
class region_resource final : public std::pmr::memory_resource {
 public:
  explicit region_resource(const Reference& in) : region_(in) {}
  template <region_handle_of<Reference> Handle>
  explicit region_resource(const Handle& in) : region_(in.reference()) {}

 private:
  void* do_allocate(std::size_t n, std::size_t alignment) override {
    return region_.allocate(n == 0 ? 1 : n, alignment);
  }
  void do_deallocate(void* p, std::size_t, std::size_t) override { region_.deallocate(p); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    const auto* same = dynamic_cast<const region_resource*>(&other);
    return same != nullptr && same->region_ == region_;
  }
  Reference region_;
};

template <class T, class Reference>
class region_allocator {
 public:
  using value_type = T;

  region_allocator(const Reference& in) : region_(in) {}
  template <region_handle_of<Reference> Handle>
  region_allocator(const Handle& in) : region_(in.reference()) {}
  template <class U>
  region_allocator(const region_allocator<U, Reference>& other) : region_(other.reference()) {}

  T* allocate(std::size_t n) {
    if (n > ~std::size_t{0} / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(region_.allocate(n == 0 ? 1 : n * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, std::size_t) { region_.deallocate(p); }
  const Reference& reference() const { return region_; }

  template <class U>
  friend bool operator==(const region_allocator& a, const region_allocator<U, Reference>& b) {
    return a.reference() == b.reference();
  }

 private:
  Reference region_;
};

}  // namespace quarry

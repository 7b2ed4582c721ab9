// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The standard's two ways to ask for memory, over a region handle: of one process or of a cluster.
/// A handle has alloc(n, alignment), free(p) and is_same(handle). It must stay where it is.

#include <cstddef>
#include <memory_resource>
#include <new>

namespace quarry {

/// Equal when it is the same region: then containers may swap.
template <class Region>
class region_resource final : public std::pmr::memory_resource {
 public:
  explicit region_resource(Region& in) : region_(&in) {}

 private:
  void* do_allocate(std::size_t n, std::size_t alignment) override {
    return region_->alloc(n == 0 ? 1 : n, alignment);
  }
  void do_deallocate(void* p, std::size_t, std::size_t) override { region_->free(p); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    const auto* same = dynamic_cast<const region_resource*>(&other);
    return same != nullptr && same->region_->is_same(*region_);
  }
  Region* region_;
};

template <class T, class Region>
class region_allocator {
 public:
  using value_type = T;

  region_allocator(Region& in) : region_(&in) {}
  template <class U>
  region_allocator(const region_allocator<U, Region>& other) : region_(other.where()) {}

  T* allocate(std::size_t n) {
    if (n > ~std::size_t{0} / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(region_->alloc(n == 0 ? 1 : n * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, std::size_t) { region_->free(p); }
  Region* where() const { return region_; }

  template <class U>
  friend bool operator==(const region_allocator& a, const region_allocator<U, Region>& b) {
    return a.where() == b.where();
  }

 private:
  Region* region_;
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Memory for a heap from somebody else's allocator: cuda::mr resources, RMM's, std::pmr's on the CPU.
///
///   rmm::mr::pool_memory_resource pool(…);
///   quarry::heap<quarry::slab> heap(pool, 1_GiB);        // goes back to `pool` with the heap
///
/// A source has allocate(bytes, alignment) and deallocate(p, bytes, alignment), or the same with _sync behind the
/// names, as newer versions of cuda::mr have it. What it gives must be ready for use: of a resource that works in the
/// order of a stream, take the synchronous functions. It must outlive the heap.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace quarry {

template <class Source>
concept sync_memory_source = requires(Source& s, void* p, std::size_t n) {
  { s.allocate_sync(n, n) } -> std::same_as<void*>;
  s.deallocate_sync(p, n, n);
};
template <class Source>
concept memory_source = sync_memory_source<Source> || requires(Source& s, void* p, std::size_t n) {
  { s.allocate(n, n) } -> std::same_as<void*>;
  s.deallocate(p, n, n);
};

/// Memory of a source, given back with the last copy of the pointer.
template <memory_source Source>
std::shared_ptr<void> borrow(Source& source, std::size_t size, std::size_t alignment) {
  if constexpr (sync_memory_source<Source>) {
    return {source.allocate_sync(size, alignment),
            [&source, size, alignment](void* p) { source.deallocate_sync(p, size, alignment); }};
  } else {
    return {source.allocate(size, alignment),
            [&source, size, alignment](void* p) { source.deallocate(p, size, alignment); }};
  }
}

}  // namespace quarry

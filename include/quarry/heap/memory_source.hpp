// SPDX-License-Identifier: Apache-2.0
#pragma once
/// memory_source: an allocator of the program that a heap takes its memory from. Resources of
/// cuda::mr and RMM are memory sources; on the CPU backend, so is std::pmr::memory_resource.
///
///   rmm::mr::pool_memory_resource pool(...);
///   quarry::heap<quarry::slab> heap(pool, 1_GiB);     // returns its memory to `pool` at its end
///
/// A source has allocate(bytes, alignment) and deallocate(p, bytes, alignment), or allocate_sync
/// and deallocate_sync with the same parameters, as newer versions of cuda::mr name them. The
/// memory must be accessible when allocate returns: the heap uses the synchronous functions of a
/// stream-ordered resource. The source must outlive the heap.

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

namespace detail {

/// Allocates from a source. The last copy of the result returns the memory to the source.
template <memory_source Source>
std::shared_ptr<void> allocate_shared(Source& source, std::size_t size, std::size_t alignment) {
  if constexpr (sync_memory_source<Source>) {
    return {source.allocate_sync(size, alignment),
            [&source, size, alignment](void* p) { source.deallocate_sync(p, size, alignment); }};
  } else {
    return {source.allocate(size, alignment),
            [&source, size, alignment](void* p) { source.deallocate(p, size, alignment); }};
  }
}

}  // namespace detail
}  // namespace quarry

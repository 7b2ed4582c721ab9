// SPDX-License-Identifier: Apache-2.0
#pragma once
/// heap_ref: the handle through which kernels use a heap.
///
/// A heap_ref has a few words and is trivially copyable: pass it as a kernel argument, capture it,
/// or store it in a __device__ global. It is valid until the heap ends, also when the heap moves or
/// grows.
///
/// heap_ref forwards malloc and free to the allocator and builds the other functions on them:
///   calloc           malloc, then clears the block
///   realloc          keeps the block if it is large enough, otherwise allocates, copies and frees
///   create<T>        malloc, then runs the constructor; destroy<T> is the inverse
///   aligned_malloc   allocates a larger block and stores its address in front of the user's bytes:
///
///     | padding | address of the block | user's bytes ...... |
///     block                            user, a multiple of the alignment
///
/// Blocks of aligned_malloc need aligned_free: otherwise every free would have to look for that
/// address in front of its block. If the allocator itself supports larger alignments, malloc(n,
/// alignment) exists, and free takes these blocks.
///
/// Functions that the allocator can not support do not compile. The heap counts failed allocations
/// (failures.hpp).
///
/// Thread safety: any lanes of any kernels may call all functions concurrently, in any control
/// flow.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/heap/default.hpp>
#include <quarry/heap/detail/block_bytes.hpp>
#include <quarry/heap/failures.hpp>
#include <quarry/simt/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace quarry {

template <allocator Allocator = default_allocator, backend Backend = default_backend>
class heap_ref {
 public:
  using allocator_type = Allocator;
  using backend_type = Backend;
  static_assert(std::is_trivially_default_constructible_v<Allocator>,
                "a heap_ref must be usable as a __device__ global");
  static constexpr abilities can = Allocator::can;
  /// False for bump and wrap, which are baselines of minimal cost.
  static constexpr bool records_failures = can.frees_one || resizable_allocator<Allocator>;

  heap_ref() = default;  // uninitialised: assign another heap_ref before use
  explicit heap_ref(const Allocator& a, failure_log* failures = nullptr)
      : allocator_(a), failures_(failures) {}

  /// Allocates n bytes, 16-byte aligned. Returns nullptr if n is 0 or no free memory fits.
  QUARRY_DEVICE void* malloc(std::size_t n) const { return recorded(allocator_.malloc(n), n); }

  /// As malloc(n), with a larger alignment: a power of two up to can.max_alignment.
  QUARRY_DEVICE void* malloc(std::size_t n,
                             std::size_t alignment) const requires aligning_allocator<Allocator> {
    return recorded(allocator_.malloc(n, alignment), n);
  }

  /// Frees a block. Requires: p from malloc, calloc or realloc of this heap, not freed since, or
  /// nullptr. Any lane of any later kernel may free.
  QUARRY_DEVICE void free(void* p) const requires freeing_allocator<Allocator> {
    allocator_.free(p);
  }

  /// Allocates count * size bytes and sets them to zero. Returns nullptr if the product overflows,
  /// too.
  QUARRY_DEVICE void* calloc(std::size_t count, std::size_t size) const {
    const std::uint64_t n = saturating_multiply(std::uint64_t{count}, std::uint64_t{size});
    void* const block = malloc(n);
    if (block != nullptr) detail::clear_block(block, n);
    return block;
  }

  /// Returns the number of bytes that the live block p can hold: at least the requested size.
  QUARRY_DEVICE std::uint64_t usable_size(void* p) const requires sizing_allocator<Allocator> {
    return allocator_.usable_size(p);
  }

  /// Returns a block of n bytes with the contents of p: p itself if it can hold them. Returns
  /// nullptr if the allocation failed, and p is unchanged; or if n is 0, and p is freed.
  QUARRY_DEVICE void* realloc(void* p, std::size_t n) const
      requires(freeing_allocator<Allocator>&& sizing_allocator<Allocator>) {
    return realloc(p, p == nullptr ? 0 : usable_size(p), n);
  }
  /// As above for allocators without usable_size: `had` is the size that p was allocated with.
  QUARRY_DEVICE void* realloc(void* p, std::size_t had,
                              std::size_t n) const requires freeing_allocator<Allocator> {
    if (p != nullptr && n == 0) return free(p), nullptr;
    if (p != nullptr && n <= capacity_of(p, had)) return p;
    void* const block = malloc(n);
    if (block == nullptr || p == nullptr) return block;
    detail::copy_block(block, p, had < n ? had : n);
    free(p);
    return block;
  }

  /// Allocates n bytes at a multiple of `alignment`, any power of two. aligned_free frees them.
  QUARRY_DEVICE void* aligned_malloc(std::size_t n, std::size_t alignment) const requires
      freeing_allocator<Allocator> {
    if (alignment < block_alignment) alignment = block_alignment;
    // The block is 16-byte aligned, so padding and address together take at most `alignment` bytes.
    auto* const block = static_cast<std::byte*>(
        malloc(n == 0 ? 0 : saturating_add(std::uint64_t{n}, std::uint64_t{alignment})));
    if (block == nullptr) return nullptr;
    const auto first = reinterpret_cast<std::uintptr_t>(block);
    std::byte* const user = block + (align_up(first + block_alignment, alignment) - first);
    reinterpret_cast<std::byte**>(user)[-1] = block;
    return user;
  }
  /// Requires: p from aligned_malloc of this heap, not freed since, or nullptr.
  QUARRY_DEVICE void aligned_free(void* p) const requires freeing_allocator<Allocator> {
    if (p != nullptr) free(static_cast<std::byte**>(p)[-1]);
  }

  /// Allocates and constructs a T. Returns nullptr if the allocation failed; no constructor ran
  /// then.
  template <class T, class... Arguments>
  QUARRY_DEVICE T* create(Arguments&&... arguments) const {
    void* const block = allocate_for<T>();
    return block == nullptr ? nullptr : ::new (block) T(std::forward<Arguments>(arguments)...);
  }
  /// Destroys and frees an object. Requires: p from create, not destroyed since, or nullptr.
  template <class T>
  QUARRY_DEVICE void destroy(T* p) const requires freeing_allocator<Allocator> {
    if (p == nullptr) return;
    p->~T();
    free(p);
  }

  /// Returns the allocator, for functions that only one allocator has.
  QUARRY_DEVICE const Allocator& allocator() const { return allocator_; }

 private:
  /// Records a failed allocation, and returns the block.
  QUARRY_DEVICE void* recorded(void* block, std::size_t n) const {
    if constexpr (records_failures)
      if (block == nullptr && n != 0 && failures_ != nullptr) failures_->record(n);
    return block;
  }
  QUARRY_DEVICE std::uint64_t capacity_of(void* p, std::size_t had) const {
    if constexpr (sizing_allocator<Allocator>) return allocator_.usable_size(p);
    return had;
  }
  template <class T>
  QUARRY_DEVICE void* allocate_for() const {
    if constexpr (alignof(T) <= block_alignment) {
      return malloc(sizeof(T));
    } else {
      static_assert(
          aligning_allocator<Allocator> && alignof(T) <= can.max_alignment,
          "create<T>: this allocator does not serve the alignment of T; use aligned_malloc");
      return malloc(sizeof(T), alignof(T));
    }
  }

  Allocator allocator_;
  failure_log* failures_;
};

}  // namespace quarry

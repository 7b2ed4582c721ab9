// SPDX-License-Identifier: Apache-2.0
#pragma once
/// heap_ref: a heap as kernels see it. A few words, trivially copyable: a kernel argument, a captured
/// variable, a __device__ global. It stays valid as long as the heap lives, also when the heap moves or grows.
///
/// What an allocator has is passed on; what it does not have is made of that:
///   calloc        malloc, and cleared
///   realloc       stays where it is if the block holds it (the allocator must know: usable_size); else moves
///   create<T>     malloc and a constructor; destroy is the way back
///   aligned       | … | block's address | user bytes …… |      a larger block, a header in front of the user's
///                                       ^ a multiple of the alignment
/// Why aligned blocks have a free of their own. To let plain free take them, every free would have to look in
/// front of its block for a header that is almost never there. Where the allocator aligns blocks itself,
/// malloc(n, alignment) is there too, and plain free is right for that one.
///
/// The heap counts failed allocations (failures.hpp).

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/heap/block_bytes.hpp>
#include <quarry/heap/default.hpp>
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
                "or it could not be a __device__ global");
  static constexpr abilities can = Allocator::can;
  /// False for bump and wrap, which are baselines of minimal cost.
  static constexpr bool records_failures = can.frees_one || resizable_allocator<Allocator>;

  heap_ref() = default;  // uninitialised: assign one before use
  explicit heap_ref(const Allocator& a, failure_log* failures = nullptr)
      : allocator_(a), failures_(failures) {}

  /// n bytes, 16-byte aligned; nullptr for n = 0 and when nothing fits.
  QUARRY_DEVICE void* malloc(std::size_t n) const { return recorded(allocator_.malloc(n), n); }

  /// As above at a larger alignment, a power of two up to can.max_alignment.
  QUARRY_DEVICE void* malloc(std::size_t n,
                             std::size_t alignment) const requires aligning_allocator<Allocator> {
    return recorded(allocator_.malloc(n, alignment), n);
  }

  /// Requires: p from malloc of this heap, not freed since, or nullptr.
  QUARRY_DEVICE void free(void* p) const requires freeing_allocator<Allocator> {
    allocator_.free(p);
  }

  /// count * size bytes, all zero; nullptr also where that is no size.
  QUARRY_DEVICE void* calloc(std::size_t count, std::size_t size) const {
    const std::uint64_t n = saturating_multiply(std::uint64_t{count}, std::uint64_t{size});
    void* const block = malloc(n);
    if (block != nullptr) detail::clear_block(block, n);
    return block;
  }

  /// What the live block p may hold: at least what was asked for.
  QUARRY_DEVICE std::uint64_t usable_size(void* p) const requires sizing_allocator<Allocator> {
    return allocator_.usable_size(p);
  }

  /// A block of n bytes with the contents of p, which is p itself if that holds them. nullptr: nothing fits, and p is
  /// as it was; or n = 0, and p is freed.
  QUARRY_DEVICE void* realloc(void* p, std::size_t n) const
      requires(freeing_allocator<Allocator>&& sizing_allocator<Allocator>) {
    return realloc(p, p == nullptr ? 0 : usable_size(p), n);
  }
  /// The same where the caller knows what p was asked for, and the allocator need not.
  QUARRY_DEVICE void* realloc(void* p, std::size_t had,
                              std::size_t n) const requires freeing_allocator<Allocator> {
    if (p != nullptr && n == 0) return free(p), nullptr;
    if (p != nullptr && n <= holds(p, had)) return p;
    void* const block = malloc(n);
    if (block == nullptr || p == nullptr) return block;
    detail::copy_block(block, p, had < n ? had : n);
    free(p);
    return block;
  }

  /// n bytes at a multiple of `alignment`, any power of two. Only aligned_free takes them back.
  QUARRY_DEVICE void* aligned_malloc(std::size_t n, std::size_t alignment) const requires
      freeing_allocator<Allocator> {
    if (alignment < block_alignment) alignment = block_alignment;
    // A block starts at a multiple of 16: the header and what is left in front of it take `alignment` at most.
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

  /// A T made of the arguments; nullptr: nothing fits, and none was made.
  template <class T, class... Arguments>
  QUARRY_DEVICE T* create(Arguments&&... arguments) const {
    void* const place = place_for<T>();
    return place == nullptr ? nullptr : ::new (place) T(std::forward<Arguments>(arguments)...);
  }
  /// Requires: p from create, not destroyed since, or nullptr.
  template <class T>
  QUARRY_DEVICE void destroy(T* p) const requires freeing_allocator<Allocator> {
    if (p == nullptr) return;
    p->~T();
    free(p);
  }

  /// For layers and tests that need the allocator itself.
  QUARRY_DEVICE const Allocator& allocator() const { return allocator_; }

 private:
  QUARRY_DEVICE void* recorded(void* block, std::size_t n) const {
    if constexpr (records_failures)
      if (block == nullptr && n != 0 && failures_ != nullptr) failures_->record(n);
    return block;
  }
  QUARRY_DEVICE std::uint64_t holds(void* p, std::size_t had) const {
    if constexpr (sizing_allocator<Allocator>) return allocator_.usable_size(p);
    return had;
  }
  template <class T>
  QUARRY_DEVICE void* place_for() const {
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

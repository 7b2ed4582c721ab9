// SPDX-License-Identifier: Apache-2.0
#pragma once
/// vector: a dynamic array in a kernel.
///
///   quarry::vector<int> found(heap);             // heap: a heap_ref
///   if (!found.push_back(42)) ...                // the allocation failed, nothing has changed
///   warp_list->append(group, value, wanted);     // warp-aggregated: one vector for all lanes
///
///   data     | 0 | 1 | ... | size-1 | unused ... |      one block of the heap
///
/// There are no exceptions in kernels: functions that allocate return false if the allocation
/// failed, and the vector is unchanged then. Elements are moved if they can be. With an allocator
/// that can not free, outgrown blocks remain allocated.
///
/// Invariant: size <= capacity; the elements [0, size) are constructed. Complexity: the capacity at
/// least doubles, so n calls of push_back move fewer than 2n elements. The vector uses bytes by
/// which the allocator rounds a request up. Thread safety: none; one lane at a time uses a vector,
/// or the lanes of one warp that call append together. A vector may outlive the kernel: it is a few
/// words that include the heap_ref.

#include <quarry/heap/detail/block_bytes.hpp>
#include <quarry/heap/ref.hpp>
#include <quarry/simt/bits.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace quarry {

template <class T, class Ref = heap_ref<>>
class vector {
  static_assert(alignof(T) <= block_alignment, "blocks are aligned to 16 bytes");
  static constexpr bool copies_bytes = std::is_trivially_copyable_v<T>;
  static constexpr bool frees = freeing_allocator<typename Ref::allocator_type>;
  static constexpr bool knows_sizes = sizing_allocator<typename Ref::allocator_type>;

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  QUARRY_DEVICE explicit vector(const Ref& heap) : heap_(heap) {}
  QUARRY_DEVICE vector(vector&& other) noexcept
      : heap_(other.heap_), data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
    other.set_empty();
  }
  QUARRY_DEVICE vector& operator=(vector&& other) noexcept {
    if (this == &other) return *this;
    release();
    heap_ = other.heap_;
    data_ = other.data_;
    size_ = other.size_;
    capacity_ = other.capacity_;
    other.set_empty();
    return *this;
  }
  QUARRY_DEVICE ~vector() { release(); }

  QUARRY_DEVICE std::size_t size() const { return size_; }
  QUARRY_DEVICE std::size_t capacity() const { return capacity_; }
  QUARRY_DEVICE bool empty() const { return size_ == 0; }
  QUARRY_DEVICE T* data() { return data_; }
  QUARRY_DEVICE const T* data() const { return data_; }
  QUARRY_DEVICE T* begin() { return data_; }
  QUARRY_DEVICE T* end() { return data_ + size_; }
  QUARRY_DEVICE const T* begin() const { return data_; }
  QUARRY_DEVICE const T* end() const { return data_ + size_; }
  /// Requires i < size().
  QUARRY_DEVICE T& operator[](std::size_t i) { return data_[i]; }
  QUARRY_DEVICE const T& operator[](std::size_t i) const { return data_[i]; }
  /// Requires !empty().
  QUARRY_DEVICE T& back() { return data_[size_ - 1]; }
  QUARRY_DEVICE const T& back() const { return data_[size_ - 1]; }

  /// Makes the capacity at least n. Returns false if the allocation failed.
  QUARRY_DEVICE bool reserve(std::size_t n);
  /// Appends an element. Returns false if the allocation failed. Arguments may refer to elements of
  /// this vector.
  template <class... Arguments>
  QUARRY_DEVICE bool emplace_back(Arguments&&... arguments) {
    if (size_ == capacity_) {
      T value(std::forward<Arguments>(arguments)...);  // before the elements move
      if (!grow(size_ + 1)) return false;
      ::new (static_cast<void*>(data_ + size_++)) T(std::move(value));
      return true;
    }
    ::new (static_cast<void*>(data_ + size_++)) T(std::forward<Arguments>(arguments)...);
    return true;
  }
  QUARRY_DEVICE bool push_back(const T& value) { return emplace_back(value); }
  QUARRY_DEVICE bool push_back(T&& value) { return emplace_back(std::move(value)); }
  /// Requires !empty().
  QUARRY_DEVICE void pop_back() { data_[--size_].~T(); }
  /// Makes the size n; new elements are T{}. Returns false if the allocation failed.
  QUARRY_DEVICE bool resize(std::size_t n);
  QUARRY_DEVICE void clear() {
    while (size_ != 0) pop_back();
  }

  /// Appends the value of each lane of `group` whose `wanted` is true, in lane order. Returns false
  /// in all lanes if the allocation failed. Requires: all lanes of the group call with the same
  /// group and the same vector, which lies in memory that all of them can access.
  QUARRY_DEVICE bool append(simt::lane_mask group, const T& value, bool wanted = true);

 private:
  QUARRY_DEVICE bool grow(std::size_t needed) {
    const std::size_t twice = capacity_ < 8 ? 8 : 2 * capacity_;
    return reserve(twice > needed ? twice : needed) || (twice > needed && reserve(needed));
  }
  QUARRY_DEVICE void set_empty() {
    data_ = nullptr;
    size_ = capacity_ = 0;
  }
  QUARRY_DEVICE void release() {
    if constexpr (!std::is_trivially_destructible_v<T>) clear();
    free_block(data_);
    set_empty();
  }
  QUARRY_DEVICE void free_block(T* block) {
    if constexpr (frees) heap_.free(block);
  }

  Ref heap_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// ---- member functions ---------------------------------------------------------------------------

template <class T, class Ref>
QUARRY_DEVICE bool vector<T, Ref>::reserve(std::size_t n) {
  if (n <= capacity_) return true;
  const std::uint64_t wanted = saturating_multiply(std::uint64_t{n}, std::uint64_t{sizeof(T)});
  auto* const block = static_cast<T*>(heap_.malloc(wanted));
  if (block == nullptr) return false;
  if constexpr (copies_bytes) {
    detail::copy_block(block, data_, size_ * sizeof(T));
  } else {
    for (std::size_t i = 0; i < size_; ++i) {
      ::new (static_cast<void*>(block + i)) T(std::move(data_[i]));
      data_[i].~T();
    }
  }
  free_block(data_);
  data_ = block;
  capacity_ = n;
  if constexpr (knows_sizes) capacity_ = heap_.usable_size(block) / sizeof(T);
  return true;
}

template <class T, class Ref>
QUARRY_DEVICE bool vector<T, Ref>::resize(std::size_t n) {
  if (n > capacity_ && !grow(n)) return false;
  while (size_ > n) pop_back();
  while (size_ < n) ::new (static_cast<void*>(data_ + size_++)) T{};
  return true;
}

template <class T, class Ref>
QUARRY_DEVICE bool vector<T, Ref>::append(simt::lane_mask group, const T& value, bool wanted) {
  const simt::lane_mask appending = simt::ballot(group, wanted);
  const bool is_leader = simt::lane_id() == simt::lowest_bit(group);
  bool room = false;
  if (is_leader) {
    const std::size_t n = size_ + simt::popc(appending);
    room = n <= capacity_ || grow(n);
  }
  simt::sync_warp(group);  // all lanes see the new block
  if (!simt::any(group, room)) return false;
  if (wanted)
    ::new (static_cast<void*>(data_ + size_ + simt::popc(appending & simt::lanes_below())))
        T(value);
  simt::sync_warp(group);
  if (is_leader) size_ += simt::popc(appending);
  simt::sync_warp(group);
  return true;
}

}  // namespace quarry

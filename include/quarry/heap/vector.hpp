// SPDX-License-Identifier: Apache-2.0
#pragma once
/// vector: an array that grows inside a kernel.
///
///   quarry::vector<int> found(heap);                    // heap: a heap_ref
///   if (!found.push_back(42)) …                         // no memory: the vector is as it was
///   warp_list->append(group, value, wanted);            // the lanes of a warp together, one vector for all
///
/// data     | 0 | 1 | … | size-1 | room … |              a block of the heap; a larger one when there is no room
///
/// It belongs to one lane at a time, or to the lanes of one warp that call append together; nothing here is
/// atomic. Kernels may leave one to the next kernel: it is a few words, which hold the heap_ref.
/// What could not be had is told by the result: there are no exceptions in kernels. Elements move where they
/// can be moved, and over an allocator without free the blocks that were too small stay behind.
///
/// Invariant: size <= capacity; elements [0, size) are constructed, the rest of the block is not.
/// Cost: the block doubles, so n push_backs copy fewer than 2n elements. What an allocator rounds up is used.

#include <quarry/heap/block_bytes.hpp>
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
  static constexpr bool as_bytes = std::is_trivially_copyable_v<T>;
  static constexpr bool frees = freeing_allocator<typename Ref::allocator_type>;
  static constexpr bool knows_sizes = sizing_allocator<typename Ref::allocator_type>;

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  QUARRY_DEVICE explicit vector(const Ref& heap) : heap_(heap) {}
  QUARRY_DEVICE vector(vector&& other) noexcept
      : heap_(other.heap_), data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
    other.forget();
  }
  QUARRY_DEVICE vector& operator=(vector&& other) noexcept {
    if (this == &other) return *this;
    release();
    heap_ = other.heap_;
    data_ = other.data_;
    size_ = other.size_;
    capacity_ = other.capacity_;
    other.forget();
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

  /// Room for n elements. false: no memory, and nothing has changed.
  QUARRY_DEVICE bool reserve(std::size_t n);
  /// Adds an element. false: no memory, and nothing has changed. The argument may be one of this vector's.
  template <class... Arguments>
  QUARRY_DEVICE bool emplace_back(Arguments&&... arguments) {
    if (size_ == capacity_) {
      T value(std::forward<Arguments>(arguments)...);  // before the block moves
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
  /// New elements are T{}. false: no memory, and nothing has changed.
  QUARRY_DEVICE bool resize(std::size_t n);
  QUARRY_DEVICE void clear() {
    while (size_ != 0) pop_back();
  }

  /// Each lane of `group` that wants to adds an element, in the order of lanes. All lanes of the group call, with the
  /// same group, on the same vector, in memory that all can reach. false, for all: no memory, and nothing has changed.
  QUARRY_DEVICE bool append(simt::lane_mask group, const T& value, bool wanted = true);

 private:
  QUARRY_DEVICE bool grow(std::size_t least) {
    const std::size_t twice = capacity_ < 8 ? 8 : 2 * capacity_;
    return reserve(twice > least ? twice : least) || (twice > least && reserve(least));
  }
  QUARRY_DEVICE void forget() {
    data_ = nullptr;
    size_ = capacity_ = 0;
  }
  QUARRY_DEVICE void release() {
    if constexpr (!std::is_trivially_destructible_v<T>) clear();
    give_back(data_);
    forget();
  }
  QUARRY_DEVICE void give_back(T* block) {
    if constexpr (frees) heap_.free(block);
  }

  Ref heap_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// ---- bodies ------------------------------------------------------------------------------------------

template <class T, class Ref>
QUARRY_DEVICE bool vector<T, Ref>::reserve(std::size_t n) {
  if (n <= capacity_) return true;
  const std::uint64_t wanted = saturating_multiply(std::uint64_t{n}, std::uint64_t{sizeof(T)});
  auto* const block = static_cast<T*>(heap_.malloc(wanted));
  if (block == nullptr) return false;
  if constexpr (as_bytes) {
    detail::copy_block(block, data_, size_ * sizeof(T));
  } else {
    for (std::size_t i = 0; i < size_; ++i) {
      ::new (static_cast<void*>(block + i)) T(std::move(data_[i]));
      data_[i].~T();
    }
  }
  give_back(data_);
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
  const simt::lane_mask takers = simt::ballot(group, wanted);
  const bool leads = simt::lane_id() == simt::lowest_bit(group);
  bool room = false;
  if (leads) {
    const std::size_t n = size_ + simt::popc(takers);
    room = n <= capacity_ || grow(n);
  }
  simt::sync_warp(group);  // now all see the block
  if (!simt::any(group, room)) return false;
  if (wanted)
    ::new (static_cast<void*>(data_ + size_ + simt::popc(takers & simt::lanes_below()))) T(value);
  simt::sync_warp(group);
  if (leads) size_ += simt::popc(takers);
  simt::sync_warp(group);
  return true;
}

}  // namespace quarry

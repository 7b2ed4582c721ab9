// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bump: one counter, and memory is handed out in order. AtomicMalloc of Vinkler and Havran (2014).
///
///   pool   | handed out ………………… | free ……………… |
///                                 next            size
/// malloc: add the size to `next`; the old value is the block. One atomic, nothing to search. There is
/// no free: the heap is reset as a whole. Nothing that can hand out memory is faster for a lone lane,
/// and nothing is smaller; it is the yardstick for the others.
///
/// warp_bump asks once for all lanes of a warp that are there together: an exclusive scan gives each
/// its place, one lane adds the total. The counter then sees 32 times fewer atomics.
///
/// Full pool. An add that crosses `size` hands out nothing. Left at that, the tail of the pool would be
/// lost to smaller requests, and failing calls would carry `next` away until it wraps. So:
///   - the call whose block starts inside the pool and ends outside takes its add back with one
///     compare-exchange, which succeeds if nobody has added since;
///   - a call whose block starts outside pulls `next` back to `size` (fetch_min).
/// Why that is sound: while next >= size every add starts outside and hands out nothing, and only the
/// one call that crossed can bring `next` below `size` again, to the start of its own block, above which
/// nothing was handed out. For a warp the same holds with the first lane that did not get its block.
/// Bound: two atomics for a success, three for a failure. `next` never exceeds size by more than the
/// lanes in flight times the largest request, far below 2^64.
/// Invariant (quiescent): next <= size; blocks are disjoint and lie in [0, next).
/// Ordering: relaxed. A block handed out was never anybody's before (reset happens between kernels).
///
/// growing_bump and growing_warp_bump read the pool's end from memory, where resize moves it between kernels: a load
/// beside the atomic. What is handed out stays below it.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

/// Who asks the pool: every lane for itself, or one lane for its warp.
enum class asking : std::uint8_t { each_lane, once_a_warp };
/// Where the pool ends: known when the handle is made, or a word that changes between kernels.
enum class pool_end : std::uint8_t { fixed, moving };

template <asking Asking, pool_end End = pool_end::fixed>
class basic_bump {
  static constexpr bool moves = End == pool_end::moving;

 public:
  static constexpr abilities can = {.frees_one = false,
                                    .frees_all = true,
                                    .reuses = false,
                                    .max_alignment = std::uint64_t{1} << 30};

  basic_bump() = default;
  basic_bump(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        size_(align_down(pool.size, block_alignment)),
        next_(metadata.take<std::uint64_t>("next", moves ? 2 : 1)) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t) const {
    if (moves && lane == 0) next_[1] = size_;
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    const std::uint64_t size = n <= end() ? align_up(std::uint64_t{n}, block_alignment) : 0;
    return Asking == asking::each_lane ? take(size) : take_together(size);
  }

  /// Alignment: a power of two; up to alignment - 16 bytes are left unused in front.
  QUARRY_DEVICE void* malloc(std::size_t n, std::size_t alignment) const {
    if (alignment <= block_alignment) return malloc(n);
    const bool fits = n != 0 && n <= end() && alignment <= can.max_alignment;
    auto* block = static_cast<std::byte*>(malloc(fits ? n + (alignment - block_alignment) : 0));
    if (block == nullptr) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    return block + (align_up(address, alignment) - address);
  }

  std::string check_invariants() const {
    if (*next_ > end())
      return "next is " + std::to_string(*next_) + ", beyond the pool of " + std::to_string(end());
    if (*next_ % block_alignment != 0) return "next is not a multiple of 16";
    return {};
  }

  /// What was handed out counts as live: nothing is ever freed.
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = end();
    s.live_bytes = *next_;
    s.free_bytes = s.largest_free = end() - *next_;
    return s;
  }
  template <class Visit>
  void visit_pieces(Visit&& visit) const {
    if (*next_ != 0) visit(pool_piece{0, *next_, piece_kind::used});
    if (*next_ != end()) visit(pool_piece{*next_, end() - *next_, piece_kind::free});
    if (end() != size_) visit(pool_piece{end(), size_ - end(), piece_kind::uncommitted});
  }

  QUARRY_DEVICE std::uint64_t resize(std::uint64_t, std::uint64_t to) const requires(moves) {
    const std::uint64_t wanted = align_down(to < size_ ? to : size_, block_alignment);
    return next_[1] = wanted > *next_ ? wanted : *next_;
  }

 private:
  QUARRY_DEVICE std::uint64_t end() const { return moves ? next_[1] : size_; }

  QUARRY_DEVICE void* take(std::uint64_t size) const {
    // A request for nothing is treated as one outside the pool: written so, it costs no register.
    const std::uint64_t first = size != 0 ? next().fetch_add(size, simt::relaxed) : end() + 1;
    if (first + size <= end()) return pool_ + first;
    if (size != 0) give_back(first, first + size);
    return nullptr;
  }

  QUARRY_DEVICE void* take_together(std::uint64_t size) const {
    const simt::lane_mask group = simt::active_mask();
    const auto sum = simt::scan_add(group, size);
    const unsigned leader = simt::lowest_bit(group);
    std::uint64_t start = 0;
    if (simt::lane_id() == leader) start = next().fetch_add(sum.total, simt::relaxed);
    start = simt::shuffle(group, start, leader);
    const std::uint64_t first = start + sum.before;
    if (size == 0) return nullptr;
    if (first + size <= end()) return pool_ + first;
    // The first lane that got nothing speaks for those after it.
    if (first <= end() || sum.before == 0) give_back(first, start + sum.total);
    return nullptr;
  }

  /// A block at `first` was not granted; the add that asked for it had carried `next` to `after`.
  QUARRY_DEVICE void give_back(std::uint64_t first, std::uint64_t after) const {
    if (first < end() && next().compare_exchange(after, first, simt::relaxed)) return;
    next().fetch_min(end(), simt::relaxed);
  }

  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> next() const {
    return simt::atomic_ref<std::uint64_t>(*next_);
  }

  std::byte* pool_;
  std::uint64_t size_;
  std::uint64_t* next_;  // and behind it the end, where that moves
};

using bump = basic_bump<asking::each_lane>;
using warp_bump = basic_bump<asking::once_a_warp>;
using growing_bump = basic_bump<asking::each_lane, pool_end::moving>;
using growing_warp_bump = basic_bump<asking::once_a_warp, pool_end::moving>;

static_assert(allocator<bump> && !freeing_allocator<bump> && aligning_allocator<bump>);
static_assert(allocator<warp_bump> && !resizable_allocator<bump>);
static_assert(resizable_allocator<growing_bump> && resizable_allocator<growing_warp_bump>);

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bump: a bump-pointer allocator over one shared counter. AtomicMalloc of Vinkler and Havran
/// (2014).
///
///   pool   | allocated …………………… | free ……………… |
///                                 next            size
///
/// malloc is one fetch_add of the rounded size on `next`; the previous value is the offset of the
/// block. There is no free: the heap is reset as a whole. bump is the baseline for the other
/// allocators, since it has the shortest malloc and the least metadata.
///
/// warp_bump is warp-aggregated: an exclusive scan gives each active lane its offset, and the
/// leader adds the sum. The counter receives up to 32 times fewer atomics.
///
/// Full pool. An addition that crosses `size` reserves no block. Without a correction, smaller
/// requests could not use the tail of the pool, and failed requests would advance `next` until it
/// overflows:
///   - The lane whose block would start inside the pool and end outside undoes its addition with
///     one compare-exchange, which succeeds if no other lane has added since.
///   - A lane whose block would start outside the pool lowers `next` to `size` (fetch_min).
/// Soundness: while next >= size, every addition starts outside the pool and reserves nothing. Only
/// the lane whose request crossed `size` can lower `next` below `size`. It restores the start of
/// its own request, and no block lies above that offset. In warp_bump, the first lane without a
/// block takes this part.
///
/// Invariant (quiescent): next <= size; the blocks are disjoint and lie in [0, next).
/// Ordering: relaxed. No block has a previous owner, since a reset happens between kernels.
/// Progress: wait-free; two atomics for a success, three for a failure. `next` exceeds `size` by at
/// most the number of concurrent lanes times the largest request, far below 2^64.
///
/// growing_bump and growing_warp_bump load the end of the pool from metadata; resize() moves the
/// end between kernels. Each malloc costs one more load. The end is never below `next`.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

/// Whether each lane updates the shared counter, or one lane on behalf of all active lanes.
enum class aggregation : std::uint8_t { per_lane, per_warp };
/// Whether the end of the pool is a constant of the handle, or a word that resize() changes.
enum class pool_end : std::uint8_t { fixed, resizable };

template <aggregation Aggregation, pool_end End = pool_end::fixed>
class basic_bump {
  static constexpr bool is_resizable = End == pool_end::resizable;

 public:
  static constexpr abilities can = {.frees_one = false,
                                    .frees_all = true,
                                    .reuses = false,
                                    .max_alignment = std::uint64_t{1} << 30};

  basic_bump() = default;
  basic_bump(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        size_(align_down(pool.size, block_alignment)),
        next_(metadata.take<std::uint64_t>("next", is_resizable ? 2 : 1)) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t) const {
    if (is_resizable && lane == 0) next_[1] = size_;
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    const std::uint64_t size = n <= end() ? align_up(std::uint64_t{n}, block_alignment) : 0;
    return Aggregation == aggregation::per_lane ? reserve(size) : reserve_for_warp(size);
  }

  /// Requires `alignment` to be a power of two. Wastes at most alignment - 16 bytes before the
  /// block.
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
      return "next is " + std::to_string(*next_) + ", beyond the pool size of " +
             std::to_string(end());
    if (*next_ % block_alignment != 0) return "next is not a multiple of 16";
    return {};
  }

  /// All allocated bytes count as live, since no block is freed alone.
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

  QUARRY_DEVICE std::uint64_t resize(std::uint64_t, std::uint64_t to) const requires(is_resizable) {
    const std::uint64_t wanted = align_down(to < size_ ? to : size_, block_alignment);
    return next_[1] = wanted > *next_ ? wanted : *next_;
  }

 private:
  QUARRY_DEVICE std::uint64_t end() const { return is_resizable ? next_[1] : size_; }

  /// Reserves `size` bytes for the calling lane; nullptr if they do not fit or size is 0.
  QUARRY_DEVICE void* reserve(std::uint64_t size) const {
    // A request of 0 bytes takes the path of an offset outside the pool, which needs no register.
    const std::uint64_t first = size != 0 ? next().fetch_add(size, simt::relaxed) : end() + 1;
    if (first + size <= end()) return pool_ + first;
    if (size != 0) undo(first, first + size);
    return nullptr;
  }

  /// Reserves `size` bytes for each active lane with one addition.
  QUARRY_DEVICE void* reserve_for_warp(std::uint64_t size) const {
    const simt::lane_mask group = simt::active_mask();
    const auto sum = simt::scan_add(group, size);
    const unsigned leader = simt::lowest_bit(group);
    std::uint64_t start = 0;
    if (simt::lane_id() == leader) start = next().fetch_add(sum.total, simt::relaxed);
    start = simt::shuffle(group, start, leader);
    const std::uint64_t first = start + sum.before;
    if (size == 0) return nullptr;
    if (first + size <= end()) return pool_ + first;
    // The first lane without a block corrects `next` on behalf of the lanes after it.
    if (first <= end() || sum.before == 0) undo(first, start + sum.total);
    return nullptr;
  }

  /// Undoes a failed reservation at `first`, whose addition has advanced `next` to `after`.
  QUARRY_DEVICE void undo(std::uint64_t first, std::uint64_t after) const {
    if (first < end() && next().compare_exchange(after, first, simt::relaxed)) return;
    next().fetch_min(end(), simt::relaxed);
  }

  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> next() const {
    return simt::atomic_ref<std::uint64_t>(*next_);
  }

  std::byte* pool_;
  std::uint64_t size_;
  std::uint64_t* next_;  // followed by the end of the pool if it is resizable
};

using bump = basic_bump<aggregation::per_lane>;
using warp_bump = basic_bump<aggregation::per_warp>;
using growing_bump = basic_bump<aggregation::per_lane, pool_end::resizable>;
using growing_warp_bump = basic_bump<aggregation::per_warp, pool_end::resizable>;

static_assert(allocator<bump> && !freeing_allocator<bump> && aligning_allocator<bump>);
static_assert(allocator<warp_bump> && !resizable_allocator<bump>);
static_assert(resizable_allocator<growing_bump> && resizable_allocator<growing_warp_bump>);

}  // namespace quarry

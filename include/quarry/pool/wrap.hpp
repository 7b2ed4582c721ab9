// SPDX-License-Identifier: Apache-2.0
#pragma once
/// wrap: a bump-pointer allocator that restarts at the front of the pool. AWMalloc of Vinkler and
/// Havran (2014), repaired.
///
///   pool   | current round …… | previous round, intact until overwritten ……… |
///                              next                                            size
///
/// **wrap overwrites live blocks.** There is no free. When the pool is exhausted, malloc returns
/// the oldest addresses again. wrap suits data with a bounded lifetime: a block stays intact while
/// less than size - (largest request) bytes are allocated after it.
///
/// malloc adds the size to `next`. If the block ends inside the pool, malloc returns it. Otherwise
/// the lane tries to wrap: a compare-exchange replaces `next` by the lane's size, and the block is
/// at 0. If the compare-exchange fails, another lane has changed `next`:
///   - next <= size: another lane has wrapped, and the lane repeats its addition.
///   - next > size:  another lane has advanced `next`, and the lane retries the wrap from there.
/// The published algorithm tests next + request <= size instead. If `next` is near the end, its
/// call returns memory that it did not reserve.
///
/// Offsets count granules of 16 bytes (more in pools over 16 GiB) in 32 bits, which halves the
/// registers. `next` exceeds 2^32 only if concurrent lanes request three pools at once. It then
/// continues at a small value, which is equivalent to a wrap: the start of a block decides whether
/// the block is valid, so no block crosses the end of the pool.
///
/// Invariant (between kernels): next <= size, since a lane that advances `next` beyond `size`
/// returns only after a wrap.
/// Ordering: relaxed. The user orders the accesses of the previous and the next owner of a block.
/// Progress: lock-free. A lane repeats an addition or a wrap only after another lane's addition or
/// wrap succeeded, and it adds once per round of the pool. Requests larger than the pool fail at
/// once.

#include <quarry/pool/bump.hpp>

namespace quarry {

template <aggregation Aggregation>
class basic_wrap {
 public:
  static constexpr abilities can = {.frees_one = false, .reuses = true, .overwrites = true};

  basic_wrap() = default;
  basic_wrap(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        shift_(granule_shift(pool.size)),
        size_(static_cast<std::uint32_t>(pool.size >> shift_)),
        next_(metadata.take<std::uint32_t>("next", 1)) {}

  QUARRY_DEVICE void initialise(std::uint64_t, std::uint64_t) const {}

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if constexpr (Aggregation == aggregation::per_lane) {
      return n - 1 < std::uint64_t{size_} << shift_ ? reserve(granules(n)) : nullptr;
    } else {
      return reserve_for_warp(n - 1 < std::uint64_t{size_} << shift_ ? granules(n) : 0);
    }
  }

  std::string check_invariants() const {
    return *next_ <= size_ ? std::string() : "next lies beyond the end of the pool";
  }

  /// The number of live blocks is unknown. A request may be as large as the pool.
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = std::uint64_t{size_} << shift_;
    s.largest_free = s.pool_bytes;
    return s;
  }

 private:
  /// log2 of the granule: 16 bytes, or more if the pool has more than 2^30 granules of 16 bytes.
  static std::uint32_t granule_shift(std::uint64_t bytes) {
    std::uint32_t shift = 4;
    while (bytes >> shift > std::uint64_t{1} << 30) ++shift;
    return shift;
  }
  QUARRY_DEVICE std::uint32_t granules(std::size_t n) const {
    return static_cast<std::uint32_t>((n - 1) >> shift_) + 1;
  }

  /// Reserves `size` granules, 0 < size <= size_.
  QUARRY_DEVICE std::byte* reserve(std::uint32_t size) const {
    const simt::atomic_ref<std::uint32_t> next(*next_);
    for (;;) {
      std::uint32_t at = next.fetch_add(size, simt::relaxed);
      if (at <= size_ - size) return pool_ + (std::uint64_t{at} << shift_);
      at += size;
      while (at > size_)  // the lane whose compare-exchange wraps `next` owns the front of the pool
        if (next.compare_exchange(at, size, simt::relaxed)) return pool_;
    }
  }

  /// Reserves adjacent blocks for all active lanes. If their sum exceeds the pool, each lane
  /// reserves its own block.
  QUARRY_DEVICE void* reserve_for_warp(std::uint32_t size) const {
    const simt::lane_mask group = simt::active_mask();
    const auto sum = simt::scan_add(group, std::uint64_t{size});
    if (sum.total > size_) return size == 0 ? nullptr : reserve(size);
    const unsigned leader = simt::lowest_bit(group);
    std::byte* start = nullptr;
    if (simt::lane_id() == leader && sum.total != 0)
      start = reserve(static_cast<std::uint32_t>(sum.total));
    start = simt::shuffle(group, start, leader);
    return size == 0 ? nullptr : start + (sum.before << shift_);
  }

  std::byte* pool_;
  std::uint32_t shift_;
  std::uint32_t size_;   // in granules
  std::uint32_t* next_;  // in granules
};

using wrap = basic_wrap<aggregation::per_lane>;
using warp_wrap = basic_wrap<aggregation::per_warp>;

static_assert(allocator<wrap> && !freeing_allocator<wrap>);
static_assert(allocator<warp_wrap>);

}  // namespace quarry

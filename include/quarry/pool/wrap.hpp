// SPDX-License-Identifier: Apache-2.0
#pragma once
/// wrap: bump that starts again at the front. AWMalloc of Vinkler and Havran (2014), repaired.
///
///   pool   | this round ……… | last round: still there until overwritten ……… |
///                            next                                             size
/// **It overwrites.** There is no free; when the pool is used up the oldest blocks are handed out again,
/// in use or not. It is for data that is short-lived by construction: a block stays intact while less
/// than size - (largest request) bytes have been asked for after it.
///
/// malloc: add the size to `next`. If the block ends inside the pool it is ours. Else try to wrap: replace
/// `next` by our size and take the block at 0. If somebody changed `next` meanwhile, either it was
/// wrapped (next <= size): add again; or it was only carried further: try to wrap from there.
/// As published, the test for "was wrapped" was next + size <= pool: a `next` near the end passed neither
/// test and the call returned memory it had not reserved.
///
/// Positions count granules of 16 bytes (more in pools over 16 GiB) in 32 bits: half the registers. Lanes
/// that add before anybody wraps can carry `next` beyond 2^32 only by asking for three pools at once; it then
/// goes on at a small value, which is a wrap like any other: whether a block is ours is decided by where it
/// starts, so that no block ever lies across the end.
///
/// Bound: an add or a wrap that has to be repeated was overtaken by another call's add or wrap; a lane
/// adds once per round of the pool. Larger requests than the pool fail at once.
/// Invariant (between kernels): next <= size, because a lane that carries it further stays until it is wrapped.
/// Ordering: relaxed; what passes from an old owner to a new one is the user's affair.

#include <quarry/pool/bump.hpp>

namespace quarry {

template <asking Asking>
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
    if constexpr (Asking == asking::each_lane) {
      return n - 1 < std::uint64_t{size_} << shift_ ? take(granules(n)) : nullptr;
    } else {
      return take_together(n - 1 < std::uint64_t{size_} << shift_ ? granules(n) : 0);
    }
  }

  std::string check_invariants() const {
    return *next_ <= size_ ? std::string() : "next lies behind the pool's end";
  }

  /// Nobody knows what is still in use; the whole pool can be had again.
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = std::uint64_t{size_} << shift_;
    s.largest_free = s.pool_bytes;
    return s;
  }

 private:
  /// 16 bytes, or more where the pool has more than 2^30 of those.
  static std::uint32_t granule_shift(std::uint64_t bytes) {
    std::uint32_t shift = 4;
    while (bytes >> shift > std::uint64_t{1} << 30) ++shift;
    return shift;
  }
  QUARRY_DEVICE std::uint32_t granules(std::size_t n) const {
    return static_cast<std::uint32_t>((n - 1) >> shift_) + 1;
  }

  /// Reserves `size` granules, 0 < size <= size_.
  QUARRY_DEVICE std::byte* take(std::uint32_t size) const {
    const simt::atomic_ref<std::uint32_t> next(*next_);
    for (;;) {
      std::uint32_t at = next.fetch_add(size, simt::relaxed);
      if (at <= size_ - size) return pool_ + (std::uint64_t{at} << shift_);
      at += size;
      while (at > size_)  // the round is over: whoever wraps has the front of the pool
        if (next.compare_exchange(at, size, simt::relaxed)) return pool_;
    }
  }

  /// The warp's blocks lie side by side; where they do not all fit the pool at once, each asks alone.
  QUARRY_DEVICE void* take_together(std::uint32_t size) const {
    const simt::lane_mask group = simt::active_mask();
    const auto sum = simt::scan_add(group, std::uint64_t{size});
    if (sum.total > size_) return size == 0 ? nullptr : take(size);
    const unsigned leader = simt::lowest_bit(group);
    std::byte* start = nullptr;
    if (simt::lane_id() == leader && sum.total != 0)
      start = take(static_cast<std::uint32_t>(sum.total));
    start = simt::shuffle(group, start, leader);
    return size == 0 ? nullptr : start + (sum.before << shift_);
  }

  std::byte* pool_;
  std::uint32_t shift_;
  std::uint32_t size_;  // in granules, as next
  std::uint32_t* next_;
};

using wrap = basic_wrap<asking::each_lane>;
using warp_wrap = basic_wrap<asking::once_a_warp>;

static_assert(allocator<wrap> && !freeing_allocator<wrap>);
static_assert(allocator<warp_wrap>);

}  // namespace quarry

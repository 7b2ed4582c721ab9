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
/// Bound: an add or a wrap that has to be repeated was overtaken by another call's add or wrap; a lane
/// adds once per round of the pool. Larger requests than the pool fail at once; `next` exceeds size by
/// at most the lanes in flight times the largest request, far below 2^64.
/// Invariant (between kernels): the next block that fits starts at next, if next <= size.
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
        size_(align_down(pool.size, block_alignment)),
        next_(metadata.take<std::uint64_t>("next", 1)) {}

  QUARRY_DEVICE void initialise(std::uint64_t, std::uint64_t) const {}

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    const std::uint64_t size = n <= size_ ? align_up(std::uint64_t{n}, block_alignment) : 0;
    if constexpr (Asking == asking::each_lane) {
      return size == 0 ? nullptr : pool_ + take(size);
    } else {
      return take_together(size);
    }
  }

  std::string check_invariants() const {
    return *next_ % block_alignment == 0 ? std::string() : "next is not a multiple of 16";
  }

  /// Nobody knows what is still in use; the whole pool can be had again.
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = size_;
    s.largest_free = size_;
    return s;
  }

 private:
  /// Reserves `size` bytes, 0 < size <= size_; returns where.
  QUARRY_DEVICE std::uint64_t take(std::uint64_t size) const {
    const simt::atomic_ref<std::uint64_t> next(*next_);
    for (;;) {
      const std::uint64_t first = next.fetch_add(size, simt::relaxed);
      std::uint64_t seen = first + size;
      if (seen <= size_) return first;
      while (seen > size_)  // the round is over: whoever wraps has the front of the pool
        if (next.compare_exchange(seen, size, simt::relaxed)) return 0;
    }
  }

  /// The warp's blocks lie side by side; where they do not all fit the pool at once, each asks alone.
  QUARRY_DEVICE void* take_together(std::uint64_t size) const {
    const simt::lane_mask group = simt::coalesced();
    const auto sum = simt::scan_add(group, size);
    if (sum.total > size_) return size == 0 ? nullptr : pool_ + take(size);
    const unsigned leader = simt::lowest_bit(group);
    std::uint64_t start = 0;
    if (simt::lane_id() == leader && sum.total != 0) start = take(sum.total);
    start = simt::shuffle(group, start, leader);
    return size == 0 ? nullptr : pool_ + start + sum.before;
  }

  std::byte* pool_;
  std::uint64_t size_;
  std::uint64_t* next_;
};

using wrap = basic_wrap<asking::each_lane>;
using warp_wrap = basic_wrap<asking::once_a_warp>;

static_assert(allocator<wrap> && !freeing_allocator<wrap>);
static_assert(allocator<warp_wrap>);

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// AWMalloc as published: Vinkler and Havran (2014), Algorithm 2, line by line, with its defects.
///
/// Main defect: line 13 uses the offset that the compare-and-swap returned even if this offset lies
/// inside the pool and only the request does not fit behind it. The loop then ends, and the lane
/// returns memory that it never reserved. Repair `adds_again_inside`: an offset inside the pool
/// means that another lane has wrapped, so the lane repeats its fetch_add.
/// Second defect: a request larger than the pool is served from the start of the pool.
/// Repair `rejects_oversize`: such a request returns nullptr.
/// Third defect, without a repair here: the 32-bit offset overshoots without bound.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>
#include <string>

namespace quarry::mutants {

struct awmalloc_repairs {
  bool adds_again_inside = false;
  bool rejects_oversize = false;
};

template <awmalloc_repairs Fix = awmalloc_repairs{}>
class published_awmalloc {
 public:
  static constexpr abilities can = {.overwrites = true, .min_pool = 64};

  published_awmalloc(memory_range pool, carve& metadata)
      : mem_(pool.begin),
        memory_size_(static_cast<std::uint32_t>(align_down(pool.size, block_alignment))),
        mem_offset_(metadata.take<std::uint32_t>("memOffset", 1)) {}

  void initialise(std::uint64_t, std::uint64_t) const {}

  void* malloc(std::size_t n) const {
    if (n == 0) return nullptr;
    if (Fix.rejects_oversize && n > memory_size_) return nullptr;
    const auto size = static_cast<std::uint32_t>(align_up(std::uint64_t{n}, block_alignment));
    std::uint32_t offset = atomic_add(size);         // 2
    std::uint32_t new_offset = offset + size;        // 3
    while (new_offset > memory_size_) {              // 4
      new_offset = atomic_cas(new_offset, size);     // 5, 6
      if (new_offset == offset + size) return mem_;  // 7, 8
      if (new_offset + size <= memory_size_ ||       // 9
          (Fix.adds_again_inside && new_offset <= memory_size_)) {
        offset = atomic_add(size);   // 10
        new_offset = offset + size;  // 11
      } else {
        offset = new_offset - size;  // 13
      }
    }
    return mem_ + offset;  // 14
  }

  std::string check_invariants() const { return {}; }
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = memory_size_;
    return s;
  }

 private:
  std::uint32_t atomic_add(std::uint32_t n) const {
    return simt::atomic_ref(*mem_offset_).fetch_add(n, simt::relaxed);
  }
  std::uint32_t atomic_cas(std::uint32_t expected, std::uint32_t desired) const {
    simt::atomic_ref(*mem_offset_).compare_exchange(expected, desired, simt::relaxed);
    return expected;
  }

  std::byte* mem_;
  std::uint32_t memory_size_;
  std::uint32_t* mem_offset_;
};

using repaired_awmalloc =
    published_awmalloc<awmalloc_repairs{.adds_again_inside = true, .rejects_oversize = true}>;

static_assert(allocator<published_awmalloc<>> && allocator<repaired_awmalloc>);

}  // namespace quarry::mutants

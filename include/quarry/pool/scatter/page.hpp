// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The state of one page of scatter: a word that describes the use of the page, and a bitmap of its
/// chunks.
///
///   bits     31 | 30 .. 21 | 20 .. 11     | 10 .. 0
///   chunks    0 | cursor   | capacity - 1 | count       a page of `capacity` equal chunks
///   run       1 | length in pages                       the first page of a large block
///   run       1 | 0                                     the other pages of a large block
///
///   count    The chunks that are allocated, being allocated or being freed. At 0 the page is
///            empty: it has no owner, whatever its capacity field holds, and the next lane that
///            reserves chunks sets a new capacity. The word of a page that was never used is 0.
///   cursor   The chunk after the chunks that were reserved last, where free chunks are likely. The
///            cursor is a hint; it changes in the same atomic operation as the count.
///   bitmap   A set bit is a chunk in use. malloc raises the count and then sets bits; free clears
///            its bit and then lowers the count:
///              count == bits set + (reserved, bit not yet set) + (bit cleared, not yet subtracted)
///            Therefore an empty page has no bit set, and every reservation has a clear bit.

#include <quarry/concurrent/bitmap.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/bits.hpp>

#include <cstdint>

namespace quarry {

class scatter_state {
 public:
  static constexpr std::uint32_t max_capacity = 1024;

  QUARRY_DEVICE constexpr explicit scatter_state(std::uint32_t word) : word_(word) {}
  /// The first page of a run of `length` pages. Length 0: another page of a run.
  QUARRY_DEVICE static constexpr scatter_state run(std::uint32_t length) {
    return scatter_state(run_flag | length);
  }
  /// An empty page that was used before.
  QUARRY_DEVICE static constexpr scatter_state used_before() {
    return scatter_state(std::uint32_t{1} << cursor_shift);
  }

  QUARRY_DEVICE constexpr std::uint32_t word() const { return word_; }
  QUARRY_DEVICE constexpr bool empty() const { return (word_ & (run_flag | count_mask)) == 0; }
  QUARRY_DEVICE constexpr bool is_run() const { return (word_ & run_flag) != 0; }
  QUARRY_DEVICE constexpr std::uint32_t run_length() const { return word_ & ~run_flag; }
  QUARRY_DEVICE constexpr std::uint32_t count() const { return word_ & count_mask; }
  QUARRY_DEVICE constexpr std::uint32_t capacity() const {
    return (word_ >> capacity_shift & (max_capacity - 1)) + 1;
  }
  /// Returns whether no request can be served from the page.
  QUARRY_DEVICE constexpr bool full() const { return is_run() || count() == capacity(); }

  /// Returns the number of chunks that a request with this capacity can reserve in the page.
  QUARRY_DEVICE constexpr std::uint32_t room(std::uint32_t capacity) const {
    if (empty()) return capacity;
    const std::uint32_t divided = word_ & (run_flag | (max_capacity - 1) << capacity_shift);
    return divided == (capacity - 1) << capacity_shift ? capacity - count() : 0;
  }
  /// Returns the chunk from which free chunks are likely.
  QUARRY_DEVICE constexpr std::uint32_t cursor() const {
    return empty() ? 0 : word_ >> cursor_shift & (max_capacity - 1);
  }
  /// Returns the state with k more chunks reserved. Requires k <= room(capacity).
  QUARRY_DEVICE constexpr scatter_state reserve(std::uint32_t capacity, std::uint32_t k) const {
    const std::uint32_t next = cursor() + k;
    return scatter_state((next < capacity ? next : next - capacity) << cursor_shift |
                         (capacity - 1) << capacity_shift | (count() + k));
  }

 private:
  static constexpr unsigned capacity_shift = 11;
  static constexpr unsigned cursor_shift = 21;
  static constexpr std::uint32_t count_mask = (std::uint32_t{1} << capacity_shift) - 1;
  static constexpr std::uint32_t run_flag = std::uint32_t{1} << 31;

  std::uint32_t word_;
};

/// Claims a chunk of a page in which the calling lane has a reservation, preferably near chunk
/// `at`.
/// Progress: lock-free. Every reservation has a clear bit at all times, so a pass over the words
/// that finds no clear bit was overtaken by successful claims of other lanes.
QUARRY_DEVICE_NOINLINE inline std::uint32_t claim_chunk(std::uint32_t* words,
                                                        std::uint32_t capacity, std::uint32_t at) {
  for (std::uint32_t w = at / 32;; w = (w + 1) * 32 < capacity ? w + 1 : 0) {
    const simt::atomic_ref<std::uint32_t> word(words[w]);
    const std::uint32_t left = capacity - w * 32;
    std::uint32_t free = left < 32 ? (std::uint32_t{1} << left) - 1 : ~std::uint32_t{0};
    free &= ~word.load(simt::relaxed);
    while (free != 0) {
      // Lanes that claim from the same word choose different bits, since their `at` differs.
      const std::uint32_t bit = nth_set_bit(free, at % simt::popc(free));
      const std::uint32_t was = word.fetch_or(std::uint32_t{1} << bit, simt::acquire);
      if ((was >> bit & 1) == 0) return w * 32 + bit;
      free &= ~was;
    }
  }
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What scatter keeps for one page: a word that says what the page is used for, and a bitmap of its
/// chunks.
///
///   bits     31 | 30 .. 21 | 20 .. 11     | 10 .. 0
///   chunks    0 | cursor   | capacity - 1 | count       a page cut into `capacity` equal chunks
///   run       1 | length in pages                       the first page of a large block
///   run       1 | 0                                     its other pages
///
/// count    chunks that are taken, being taken or being given back. At 0 the page is empty: it
///          belongs to nobody, whatever capacity it shows, and whoever comes next cuts it anew. A
///          page never used is 0.
/// cursor   the chunk after those handed out last: where free ones are likely. A hint that costs
///          nothing, since it changes together with the count.
/// bitmap   a set bit is a chunk in use. malloc adds to the count and then sets bits, free clears
///          its bit and then subtracts from the count:
///            count == bits set + reserved, not yet claimed + cleared, not yet subtracted
///          So an empty page has no bit set, and every reservation finds a clear bit.

#include <quarry/concurrent/bitmap.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/bits.hpp>

#include <cstdint>

namespace quarry {

class scatter_state {
 public:
  static constexpr std::uint32_t max_capacity = 1024;

  QUARRY_DEVICE constexpr explicit scatter_state(std::uint32_t word) : word_(word) {}
  /// The first page of a run; length 0: one of the others.
  QUARRY_DEVICE static constexpr scatter_state run(std::uint32_t length) {
    return scatter_state(run_flag | length);
  }
  /// Empty, but no longer new.
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
  /// Nobody can have anything of it.
  QUARRY_DEVICE constexpr bool full() const { return is_run() || count() == capacity(); }

  /// Chunks of the page for those who cut pages into `capacity`.
  QUARRY_DEVICE constexpr std::uint32_t room(std::uint32_t capacity) const {
    if (empty()) return capacity;
    const std::uint32_t cut = word_ & (run_flag | (max_capacity - 1) << capacity_shift);
    return cut == (capacity - 1) << capacity_shift ? capacity - count() : 0;
  }
  /// Where free chunks are likely.
  QUARRY_DEVICE constexpr std::uint32_t first() const {
    return empty() ? 0 : word_ >> cursor_shift & (max_capacity - 1);
  }
  /// With k chunks more. Requires k <= room(capacity).
  QUARRY_DEVICE constexpr scatter_state reserve(std::uint32_t capacity, std::uint32_t k) const {
    const std::uint32_t next = first() + k;
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

/// Claims any chunk of a page in which this lane has a reservation, near chunk `at` if it can.
/// Progress: every reservation has a clear bit at all times, so a round over the words that finds
/// none was overtaken by the claims of others.
QUARRY_NOINLINE QUARRY_DEVICE inline std::uint32_t claim_chunk(std::uint32_t* words,
                                                               std::uint32_t capacity,
                                                               std::uint32_t at) {
  for (std::uint32_t w = at / 32;; w = (w + 1) * 32 < capacity ? w + 1 : 0) {
    const simt::atomic_ref<std::uint32_t> word(words[w]);
    const std::uint32_t left = capacity - w * 32;
    std::uint32_t free = left < 32 ? (std::uint32_t{1} << left) - 1 : ~std::uint32_t{0};
    free &= ~word.load(simt::relaxed);
    while (free != 0) {
      // Lanes that look at the same word tell themselves apart by the chunks they had hoped for.
      const std::uint32_t bit = nth_set_bit(free, at % simt::popc(free));
      const std::uint32_t was = word.fetch_or(std::uint32_t{1} << bit, simt::acquire);
      if ((was >> bit & 1) == 0) return w * 32 + bit;
      free &= ~was;
    }
  }
}

}  // namespace quarry

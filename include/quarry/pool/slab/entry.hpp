// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The entries of a slab heap: where a ticket becomes a slot.
///
/// An entry is a word. Lanes of a warp that want its class draw tickets from it, by one fetch_add for all of them,
/// and what they get back says everything:
///
///   fresh      first segment, how many side by side    ticket i is slot i, counted through the segments
///   recycled   a segment, how many rights              ticket i is the right to a free slot of the segment, any
///   vacant     a number                                tickets are worth nothing
///
/// Tickets below the word's limit are good. The group that drew the ticket equal to the limit, and only that one,
/// renews the entry: it finds segments and stores a new word. Others that came too late wait for that word and draw
/// again. How far the tickets ran beyond the limit says how many wait, hence how much is needed.
///
/// A renewal that finds nothing stores a vacant word: a verdict. The number tells verdicts apart. The lane that draws
/// ticket 0 of a vacant word has to try again, so a vacant word is never waited for in vain: either nobody has drawn
/// from it, or somebody is renewing it. Who renews waits for nobody.
/// When may a lane give up? After a verdict on an attempt that began during its call: its own, or the second one that
/// it sees, for the attempt behind the second began when the first one was there to be drawn from.
/// Undrawn tickets can be taken back (flush): by a compare-exchange to vacant while there are good ones, for then
/// nobody renews and nobody waits.
///
/// Ordering: a word is stored with release by who acquired the segments, and drawn by value: old owners are done.
/// Bound: nobody draws again before he saw a limit above the tickets, or a new verdict; a word has room for 2^27
/// lanes that draw for the first time, and for as many more, each of which then waits until the word is renewed.

#include <quarry/core/carve.hpp>
#include <quarry/core/config.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>

namespace quarry {

class slab_word {
 public:
  std::uint64_t value;

  QUARRY_DEVICE static constexpr slab_word fresh(std::uint32_t first, std::uint32_t segments) {
    return {std::uint64_t{first} << segment_shift | std::uint64_t{segments} << size_shift};
  }
  /// The same with all tickets drawn.
  QUARRY_DEVICE static constexpr slab_word used_up(std::uint32_t first, std::uint32_t segments,
                                                   std::uint32_t capacity) {
    return {fresh(first, segments).value + static_cast<std::uint64_t>(segments * capacity)};
  }
  QUARRY_DEVICE static constexpr slab_word recycled(std::uint32_t segment, std::uint32_t rights) {
    return {std::uint64_t{segment} << segment_shift | std::uint64_t{rights} << size_shift |
            recycled_flag};
  }
  QUARRY_DEVICE static constexpr slab_word vacant(std::uint32_t number) {
    return {std::uint64_t{number} << segment_shift};
  }
  /// No word at all: nothing was drawn.
  QUARRY_DEVICE static constexpr slab_word nothing() { return {~std::uint64_t{0}}; }
  QUARRY_DEVICE constexpr bool is_nothing() const { return value == ~std::uint64_t{0}; }
  /// The next verdict.
  QUARRY_DEVICE constexpr slab_word still_vacant() const {
    return vacant(is_vacant() ? segment() + 1 : 0);
  }

  QUARRY_DEVICE constexpr std::uint32_t ticket() const {
    return static_cast<std::uint32_t>(value) & ((1u << ticket_bits) - 1);
  }
  QUARRY_DEVICE constexpr bool is_vacant() const { return size() == 0; }
  QUARRY_DEVICE constexpr bool is_recycled() const { return (value & recycled_flag) != 0; }
  /// The first of them; of a vacant word its number.
  QUARRY_DEVICE constexpr std::uint32_t segment() const {
    return static_cast<std::uint32_t>(value >> segment_shift);
  }
  /// Segments, or rights.
  QUARRY_DEVICE constexpr std::uint32_t size() const {
    return static_cast<std::uint32_t>(value >> size_shift) &
           ((1u << (segment_shift - size_shift)) - 1);
  }
  QUARRY_DEVICE constexpr std::uint32_t limit(std::uint32_t capacity) const {
    return is_recycled() ? size() : size() * capacity;
  }
  /// Good tickets that are still to be drawn.
  QUARRY_DEVICE constexpr std::uint32_t left(std::uint32_t capacity) const {
    return limit(capacity) > ticket() ? limit(capacity) - ticket() : 0;
  }
  /// Drawing from it, again or for the first time, could bring something.
  QUARRY_DEVICE constexpr bool has_tickets(std::uint32_t capacity) const {
    return ticket() < limit(capacity);
  }
  QUARRY_DEVICE constexpr bool crowded() const { return ticket() >= 1u << (ticket_bits - 1); }
  QUARRY_DEVICE constexpr bool same_verdict(slab_word other) const {
    return is_vacant() && other.is_vacant() && segment() == other.segment();
  }

  static constexpr unsigned ticket_bits = 28;
  static constexpr std::uint64_t recycled_flag = std::uint64_t{1} << 28;
  static constexpr unsigned size_shift = 29;  // 13 bits: a segment has up to 4096 slots
  static constexpr unsigned segment_shift = 42;
};

class slab_entries {
 public:
  slab_entries() = default;
  slab_entries(carve& metadata, std::uint32_t count)
      : words_(metadata.take<std::uint64_t>("entries", std::uint64_t{count} * stride)) {}

  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> at(std::uint32_t entry) const {
    return simt::atomic_ref<std::uint64_t>(words_[static_cast<std::size_t>(entry * stride)]);
  }

 private:
  static constexpr std::uint32_t stride = 4;  // each in a sector of its own

  std::uint64_t* words_;
};

}  // namespace quarry

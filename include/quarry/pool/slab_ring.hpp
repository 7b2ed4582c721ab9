// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The ring of a shard and class in a slab heap: where tickets become slots.
///
///   cursor    next ticket                       one fetch_add for all lanes of a warp that want this class
///   ticket    t  =  number of an entry * capacity + i
///   entries   … | k-1 | k | k+1 | …             entry k stands at k modulo the size of the ring
///   entry     tag | segment, recycled?          and `left`: tickets of it that were not looked up yet
///
/// Entry k is supplied by the lane that drew its first ticket; the others wait for that, a few round trips.
/// Nothing is replaced one after the other: all entries that a burst of requests needs are supplied at the same
/// time by different lanes, however many there are.
///
/// An entry is one of
///   fresh     a segment whose slots all belong to it: ticket i is slot i
///   recycled  some slots of a used segment: ticket i is slot i if the entry's mask says so, else worth nothing
///   failed    no memory was found: its tickets are worth nothing
/// Tickets that are worth nothing need not be drawn one by one: `skip` moves the cursor on.
///
/// When is a place used again? k + R waits until entry k is published and all its tickets are looked up (or
/// skipped): `left` is then 0. A lane waits only for entries before its own, and the lanes of a warp draw from
/// fewer than R / 2 entries at once, so nobody waits for himself.
/// How to wait. Lanes of a warp that went different ways share one program counter in turn, and little is promised
/// about the turns: those that left a loop wait for the lanes still in it, and a lane that spins may keep its warp to
/// itself. So a lane must not wait, by spinning or behind a loop, while a lane of its warp owes something:
///   - who came to malloc together waits in one loop, for tickets of whatever ring;
///   - what others may wait for, supplying and looking up, is done inside that loop, and nothing inside it waits;
///   - each turn of it is a vote of all of them, and when that says that all are done, they leave.
/// (With the looking up behind the loop, lanes that had found their entry waited there for lanes of their warp that
/// waited for an entry R further on, which waited for them. With a loop for each class, the lanes of one class spun
/// while those of another, in the same warp, had an entry to supply that another warp waited for; and that warp had
/// what the first one waited for.)
/// Ordering: an entry is published by a release and looked up by value, which hands on what the supplier knows: that
/// earlier owners of the slots are done. `left` goes down after the look-ups, and is 0 before the next store.
/// Bound: tickets are numbers below 2^52, a division away from their entry; a shard and class that serves a
/// billion requests a second gets there in 52 days.

#include <quarry/core/carve.hpp>
#include <quarry/pool/slab_shape.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>

#include <cstdint>

namespace quarry {

/// What a ticket leads to.
struct slab_entry_word {
  static constexpr std::uint32_t used = std::uint32_t{1} << 31;
  static constexpr std::uint32_t no_segment = used - 1;

  std::uint32_t value;

  QUARRY_DEVICE static constexpr slab_entry_word fresh(std::uint32_t segment) { return {segment}; }
  QUARRY_DEVICE static constexpr slab_entry_word recycled(std::uint32_t segment) { return {segment | used}; }
  QUARRY_DEVICE static constexpr slab_entry_word failed() { return {no_segment}; }

  QUARRY_DEVICE constexpr std::uint32_t segment() const { return value & no_segment; }
  QUARRY_DEVICE constexpr bool is_fresh() const { return value < no_segment; }
  QUARRY_DEVICE constexpr bool is_recycled() const { return value >= used; }
  QUARRY_DEVICE constexpr bool is_failed() const { return value == no_segment; }
};

struct slab_entry {
  std::uint64_t word;  // tag, slab_entry_word; 0: never used
  std::uint32_t left;
  std::uint32_t unused;
};

/// A ticket, taken apart.
struct slab_ticket {
  std::uint64_t entry;
  std::uint32_t i;
};

/// All rings of a heap. Addresses are computed where they are needed: that is cheaper than registers.
class slab_rings {
 public:
  slab_rings() = default;
  template <class Shape>
  slab_rings(carve& metadata, const Shape& shape)
      : classes_(shape.classes),
        entries_per_shard_(shape.entries_before(shape.classes)),
        mask_words_per_shard_(shape.mask_words_before(shape.classes)),
        cursors_(metadata.take<std::uint64_t>("cursors", std::uint64_t{shape.shards} * shape.classes * stride)),
        entries_(metadata.take<slab_entry>("entries", std::uint64_t{shape.shards} * entries_per_shard_)),
        masks_(metadata.take<std::uint32_t>("masks", std::uint64_t{shape.shards} * mask_words_per_shard_)) {}

  /// The next ticket.
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> cursor(std::uint32_t c, std::uint32_t shard) const {
    return simt::atomic_ref<std::uint64_t>(cursors_[(shard * classes_ + c) * stride]);
  }
  QUARRY_DEVICE static slab_ticket take_apart(const slab_class& d, std::uint64_t ticket) {
    const std::uint64_t entry = multiply_high(ticket, d.reciprocal);
    return {entry, static_cast<std::uint32_t>(ticket) - static_cast<std::uint32_t>(entry) * d.capacity};
  }

  /// The entry of a ticket, if it is there by now.
  QUARRY_DEVICE bool look_up(const slab_class& d, std::uint32_t shard, std::uint64_t k, slab_entry_word& word) const {
    const std::uint64_t seen = simt::atomic_ref<std::uint64_t>(at(d, shard, k).word).load(simt::by_value);
    word = {static_cast<std::uint32_t>(seen)};
    return seen >> 32 == tag(k);
  }
  /// So many tickets of entry k are done with.
  QUARRY_DEVICE void looked_up(const slab_class& d, std::uint32_t shard, std::uint64_t k, std::uint32_t tickets) const {
    left(d, shard, k).sub(tickets, simt::after_loads);
  }

  /// For the lane that drew the first ticket of entry k: whether the place is free; then it publishes.
  QUARRY_DEVICE bool has_place(const slab_class& d, std::uint32_t shard, std::uint64_t k) const {
    const std::uint32_t done = k > d.ring_mask ? generation(k - d.ring_mask - 1) : 0;
    return left(d, shard, k).load(simt::by_value) == done;
  }
  QUARRY_DEVICE void publish(const slab_class& d, std::uint32_t shard, std::uint64_t k, slab_entry_word word) const {
    left(d, shard, k).store(generation(k) + d.capacity, simt::relaxed);
    simt::atomic_ref<std::uint64_t>(at(d, shard, k).word).store(tag(k) << 32 | word.value, simt::release);
  }

  /// Takes the tickets of entry k before the i-th that nobody drew; returns how many. They are the last of those.
  QUARRY_DEVICE std::uint32_t skip(std::uint32_t c, const slab_class& d, std::uint32_t shard, std::uint64_t k,
                                   std::uint32_t i) const {
    const std::uint64_t end = k * d.capacity + i;
    const std::uint64_t next = cursor(c, shard).fetch_max(end, simt::relaxed);
    return next < end ? static_cast<std::uint32_t>(end - next) : 0;
  }

  /// The slots of a recycled entry.
  QUARRY_DEVICE std::uint32_t* mask(const slab_class& d, std::uint32_t shard, std::uint64_t k) const {
    return masks_ + (std::uint64_t{shard} * mask_words_per_shard_ + d.mask_first +
                     (static_cast<std::uint32_t>(k) & d.ring_mask) * d.words);
  }

 private:
  static constexpr std::uint32_t stride = 4;  // cursors lie in sectors of their own

  /// Never 0 at a place's first use.
  QUARRY_DEVICE static std::uint64_t tag(std::uint64_t k) { return static_cast<std::uint32_t>(k + 1); }
  /// The upper half of `left`, so that a 0 in the lower half is the right one.
  QUARRY_DEVICE static std::uint32_t generation(std::uint64_t k) { return static_cast<std::uint32_t>(k + 1) << 16; }
  QUARRY_DEVICE slab_entry& at(const slab_class& d, std::uint32_t shard, std::uint64_t k) const {
    return entries_[shard * entries_per_shard_ + d.ring_first + (static_cast<std::uint32_t>(k) & d.ring_mask)];
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> left(const slab_class& d, std::uint32_t shard, std::uint64_t k) const {
    return simt::atomic_ref<std::uint32_t>(at(d, shard, k).left);
  }

  std::uint32_t classes_;
  std::uint32_t entries_per_shard_;
  std::uint32_t mask_words_per_shard_;
  std::uint64_t* cursors_;
  slab_entry* entries_;
  std::uint32_t* masks_;
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The segments of a slab heap: which are free, and which slots of the others are.
///
///   free        an index_set: segments that no class has
///   state       a word per segment     class | held | words with free slots | well supplied | wholly free
///   bits        a bit per slot: SET means free and nobody's. Zero for every slot of a free segment.
///   worthwhile  an index_set per class: segments worth recycling, perhaps
///   loose       an index_set per class: segments with any free slot, for when nothing else is left
///
/// A slot belongs to exactly one of: a block that is live; its bit (set); the entry of a ring (slab_ring.hpp)
/// that has not handed it out yet. So a segment given to a ring needs no store to its bits: all are clear.
///
/// States of a segment and who changes them:
///   free -> class c    format: by the lane that took it out of `free`, one store
///   class c -> free    by the lane whose free made every slot's bit set: one compare-exchange of the state to 0,
///                      then clears the bits, then puts it into `free`
///   held               set by compare-exchange by one lane that takes bits out (recycle), and taken back by it
///                      together with what that changed in the counts
/// The counts. A free changes a word of bits by one fetch_or, and from the word before sees the moments when it
/// stops being empty, becomes well supplied (three eighths) and wholly free; it then adds to the state. Bits are only taken out while
/// the segment is held, and the counts are corrected before it is let go. Hence, when a segment is not held, each
/// count = words that are so - additions under way. A state that is not held and has all words in all three counts
/// is therefore true, no lane owns a slot, and no lane is about to add. That is why nothing is released under a
/// live block, and why the release needs to look at one word only. (Two counts are not enough: of two frees of
/// one word the first may still have to say that it is no longer empty when the second has said that it is full.)
/// While additions are under way a count can be less than zero; fields are biased so that none borrows (as long
/// as no 65,536 lanes stand between the two steps of a free in one segment).
/// Lists. Whoever brings the count of words with free slots from 0 to 1, and whoever lets a segment go with some,
/// puts it into `loose`; the same for `worthwhile` and its threshold. So at rest no such segment is missing.
///
/// Large blocks are runs of segments; the first one's state says how many.
///
/// Ordering: a free has one release, its fetch_or. Who takes slots out of a word acquires it; who releases the
/// segment acquires every word of it, so it has seen the end of all blocks, and `free` hands that on. The state only
/// counts, and is relaxed.
/// Progress: no waiting. Listing is idempotent: a segment listed twice, or that is no longer worth it, is found
/// out by its state.

#include <quarry/core/index_set.hpp>
#include <quarry/pool/slab_shape.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>

namespace quarry {

/// The word per segment.
struct slab_state {
  static constexpr unsigned width = 18;
  static constexpr std::uint64_t wholly_free = 1;
  static constexpr std::uint64_t well_supplied = std::uint64_t{1} << width;
  static constexpr std::uint64_t not_empty = std::uint64_t{1} << 2 * width;
  static constexpr std::uint64_t held = std::uint64_t{1} << 3 * width;
  static constexpr std::uint32_t bias = 1u << (width - 2);
  static constexpr std::uint32_t large = 255;

  QUARRY_DEVICE static constexpr std::uint64_t fresh(std::uint32_t c) {
    return std::uint64_t{c + 1} << 56 | bias * (wholly_free + well_supplied + not_empty);
  }
  /// Not held, and all words count as free in every sense.
  QUARRY_DEVICE static constexpr std::uint64_t empty(std::uint32_t c, std::uint32_t words) {
    return fresh(c) + words * (wholly_free + well_supplied + not_empty);
  }
  QUARRY_DEVICE static constexpr std::uint64_t run(std::uint32_t segments) {
    return std::uint64_t{large} << 56 | segments;
  }
  /// The segments behind the pool's present end: a run that is nobody's block (slab_resize.hpp).
  static constexpr std::uint64_t withheld = std::uint64_t{1} << 40;
  /// 0: no class; large; else the class + 1.
  QUARRY_DEVICE static constexpr std::uint32_t kind(std::uint64_t s) { return static_cast<std::uint32_t>(s >> 56); }
  QUARRY_DEVICE static constexpr std::uint32_t run_length(std::uint64_t s) { return static_cast<std::uint32_t>(s); }
  QUARRY_DEVICE static constexpr bool is_held(std::uint64_t s) { return (s & held) != 0; }
  /// How many words are `what`.
  QUARRY_DEVICE static constexpr std::int32_t count(std::uint64_t s, std::uint64_t what) {
    return static_cast<std::int32_t>(s / what & ((1u << width) - 1)) - static_cast<std::int32_t>(bias);
  }
};

class slab_segments {
 public:
  slab_segments() = default;
  slab_segments(carve& metadata, std::uint32_t segments, std::uint32_t classes, std::uint32_t words)
      : words_per_segment_(words),
        free_(metadata, "free segments", segments),
        states_(metadata.take<std::uint64_t>("states", segments)),
        bits_(metadata.take<std::uint32_t>("bits", std::uint64_t{segments} * words)),
        lists_(metadata.take<std::uint64_t>("lists", index_set::length(segments) * classes * 2)) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const { free_.fill(lane, lanes); }

  QUARRY_DEVICE const index_set& free() const { return free_; }
  QUARRY_DEVICE index_set worthwhile(std::uint32_t c) const { return list(2 * c); }
  QUARRY_DEVICE index_set loose(std::uint32_t c) const { return list(2 * c + 1); }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> state(std::uint32_t segment) const {
    return simt::atomic_ref<std::uint64_t>(states_[segment]);
  }

  /// A segment just taken out of free(): all its slots belong to the caller.
  QUARRY_DEVICE void format(std::uint32_t segment, std::uint32_t c) const {
    state(segment).store(slab_state::fresh(c), simt::relaxed);
  }

  /// Slots of one word become free. The caller owned them.
  QUARRY_DEVICE void give_back(std::uint32_t segment, std::uint32_t c, const slab_class& d, std::uint32_t w,
                               std::uint32_t slots) const {
    const std::uint32_t was = word(segment, w).fetch_or(slots, simt::release);
    const std::uint64_t change = crossed(was, was | slots, present(d.capacity, w));
    if (change == 0) return;
    const std::uint64_t state = count(segment, change);
    if (is_event(state, change, c, d.words)) settle(segment, c, d, state, change);
  }

  /// What a change of a word means for the state.
  QUARRY_DEVICE static std::uint64_t crossed(std::uint32_t was, std::uint32_t is, std::uint32_t all) {
    return (was == 0 ? slab_state::not_empty : 0) +
           (!supplied(was, all) && supplied(is, all) ? slab_state::well_supplied : 0) +
           (is == all ? slab_state::wholly_free : 0);
  }
  /// Adds a change to the state; returns it as it is then.
  QUARRY_DEVICE std::uint64_t count(std::uint32_t segment, std::uint64_t change) const {
    return state(segment).fetch_add(change, simt::relaxed) + change;
  }
  /// Whether it is now to be released or listed.
  QUARRY_DEVICE static bool is_event(std::uint64_t s, std::uint64_t change, std::uint32_t c, std::uint32_t words) {
    return s == slab_state::empty(c, words) || becomes_loose(s, change) ||
           becomes_worthwhile(s, change, slab_class::worthwhile(words));
  }
  /// Does so.
  QUARRY_DEVICE void settle(std::uint32_t segment, std::uint32_t c, const slab_class& d, std::uint64_t state,
                            std::uint64_t change) const;

  /// Takes all free slots out of a used segment of class c and writes them into `mask`, a word for each word.
  /// `least`: words that must be well supplied; 0: any free slot will do. Returns what changed, for let_go, until
  /// which the segment is held; 0: it was not worth it, and is not held.
  QUARRY_DEVICE std::uint64_t recycle(std::uint32_t segment, std::uint32_t c, const slab_class& d,
                                      std::uint32_t* mask, std::uint32_t least) const;
  QUARRY_DEVICE void let_go(std::uint32_t segment, std::uint32_t c, const slab_class& d, std::uint64_t change) const;

  /// The slots that word w of a segment has.
  QUARRY_DEVICE static std::uint32_t present(std::uint32_t capacity, std::uint32_t w) {
    const std::uint32_t left = capacity - w * 32;
    return left >= 32 ? ~std::uint32_t{0} : (1u << left) - 1;
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> word(std::uint32_t segment, std::uint32_t w) const {
    return simt::atomic_ref<std::uint32_t>(bits_[std::uint64_t{segment} * words_per_segment_ + w]);
  }

 private:
  /// Three eighths of its slots are free.
  QUARRY_DEVICE static bool supplied(std::uint32_t word, std::uint32_t all) {
    return word != 0 && simt::popc(word) * 8 >= simt::popc(all) * 3;
  }

  QUARRY_DEVICE static bool becomes_loose(std::uint64_t s, std::uint64_t change) {
    return (change & slab_state::not_empty) != 0 && slab_state::count(s, slab_state::not_empty) == 1;
  }
  QUARRY_DEVICE static bool becomes_worthwhile(std::uint64_t s, std::uint64_t change, std::uint32_t least) {
    return (change & slab_state::well_supplied) != 0 &&
           slab_state::count(s, slab_state::well_supplied) == static_cast<std::int32_t>(least);
  }
  QUARRY_DEVICE index_set list(std::uint32_t number) const {
    return index_set(lists_ + index_set::length(free_.size()) * number, free_.size());
  }

  std::uint32_t words_per_segment_;
  index_set free_;
  std::uint64_t* states_;
  std::uint32_t* bits_;
  std::uint64_t* lists_;
};

// ---- bodies ------------------------------------------------------------------------------------------

QUARRY_DEVICE inline void slab_segments::settle(std::uint32_t segment, std::uint32_t c, const slab_class& d,
                                                std::uint64_t s, std::uint64_t change) const {
  if (s == slab_state::empty(c, d.words)) {
    // If that fails, somebody holds it, and finds free slots.
    if (!state(segment).compare_exchange(s, 0, simt::relaxed)) return;
    std::uint32_t* const words = &bits_[std::uint64_t{segment} * words_per_segment_];
    simt::acquire_words(words, d.words);
    for (std::uint32_t w = 0; w < d.words; ++w) word(segment, w).store(0, simt::relaxed);
    worthwhile(c).take_this(segment);
    loose(c).take_this(segment);
    free_.put(segment);
    return;
  }
  if (becomes_loose(s, change)) loose(c).put(segment);
  if (becomes_worthwhile(s, change, d.listed_words)) worthwhile(c).put(segment);
}

QUARRY_DEVICE inline std::uint64_t slab_segments::recycle(std::uint32_t segment, std::uint32_t c,
                                                          const slab_class& d, std::uint32_t* mask,
                                                          std::uint32_t least) const {
  std::uint64_t s = state(segment).load(simt::relaxed);
  do {
    if (slab_state::kind(s) != c + 1 || slab_state::is_held(s) ||
        slab_state::count(s, least == 0 ? slab_state::not_empty : slab_state::well_supplied) <
            static_cast<std::int32_t>(least == 0 ? 1 : least))
      return 0;
  } while (!state(segment).compare_exchange(s, s | slab_state::held, simt::relaxed));
  std::uint64_t change = slab_state::held;
  constexpr std::uint32_t together = 2;  // words whose loads are under way at the same time
  QUARRY_ROLLED
  for (std::uint32_t first = 0; first < d.words; first += together) {
    std::uint32_t slots[together];
    for (std::uint32_t i = 0; i < together; ++i)
      slots[i] = first + i < d.words ? word(segment, first + i).load(simt::relaxed) : 0;
    for (std::uint32_t i = 0; i < together && first + i < d.words; ++i) {
      // More may have been freed since; that is taken too.
      if (slots[i] != 0) {
        slots[i] = word(segment, first + i).exchange(0, simt::before_fence);
        change += crossed(0, slots[i], present(d.capacity, first + i));
      }
      simt::atomic_ref<std::uint32_t>(mask[first + i]).store(slots[i], simt::relaxed);
    }
  }
  simt::fence_loads();
  return change;
}

QUARRY_DEVICE inline void slab_segments::let_go(std::uint32_t segment, std::uint32_t c, const slab_class& d,
                                                std::uint64_t change) const {
  const std::uint64_t s = state(segment).fetch_sub(change, simt::acq_rel) - change;
  if (slab_state::count(s, slab_state::well_supplied) >= static_cast<std::int32_t>(d.listed_words))
    worthwhile(c).put(segment);
  if (slab_state::count(s, slab_state::not_empty) >= 1) loose(c).put(segment);
}

}  // namespace quarry

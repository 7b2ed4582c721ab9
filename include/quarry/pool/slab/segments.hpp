// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The segments of a slab heap: which are free, and which slots of the others are.
///
///   free        an index_set: segments that no class has any more
///   runs        the same, of those that large blocks gave back: large blocks look here first, and others last, or the
///               long runs would soon be in pieces
///   state       a word per segment: class | coming | count; of a class with few slots in a segment, class | a bit per
///               slot. Four neighbours lie side by side, since a warp often has them at once; the next four lie elsewhere: in a
///               new heap those that are busy are neighbours, and would share few lines
///   bits        a bit per slot: SET means free. None is set in a free segment. Where the state has bits of its own, only
///               slots that entries have rights to are set here
///   dense       an index_set per class: segments with a free slot, perhaps
///   sparse      the same, with a quarter of their slots free, perhaps: these are worth being recycled. Of a class with 32
///               slots or fewer in a segment all are there
///
/// count = slots that are taken: live blocks, what an entry (slab_entry.hpp) may still hand out, and what is being
/// given back. A slot is given back in two steps: its bit is set, then the count is lowered. A lane that is alone would
/// wait twice for memory, so it sends both at once, and memory may do the second first. In the same step it notes in the
/// state that a bit is coming, and takes the note back when it knows that the bit is set; nobody waits for that. So
///   capacity - count <= bits set + coming,   and the difference is what entries have rights to, or is on its way.
/// With few slots it is one step: the bit in the state is set. There the count is what the state's bits leave, and
///   bits set = what entries have rights to.
///
/// States of a segment and who changes them:
///   free -> class c       adopt: by the lane that took it out of `free`, or was the first to use it. All slots are taken, by the entry. Bits are
///                         not touched: slots of a fresh segment are handed out by number
///   some slots free       lower: each lane that gives something back
///   more slots taken      recycle: by one compare-exchange of the state, free slots become rights, of an entry (all of
///                         them) or of lanes that would wait for one. Whoever has a right then takes any bit that is
///                         set: there are enough at all times, or they are coming. Bits of the state are moved to where
///                         they are taken from, before there are rights
///   class c -> free       by the lane that lowers the count to 0. Nobody owns a slot, nobody has a right, and bits come
///                         before counts or are noted: so one word decides. If a bit is still coming, it waits for
///                         that; then it clears the bits. Or by whoever owns all slots, as if they had never been
///                         taken. The state of a free segment means nothing, but is one in which nobody finds slots to
///                         recycle: all taken, all free, or cleared (so that a block that is freed once too often is
///                         not counted)
///
/// Lists. Who makes the first slot free lists a segment as dense, who makes a quarter free as sparse, and who ends it
/// takes it out of both; if it gives a quarter back at once, others probably did too, and the segment was never dense: it
/// does not look. Who looks for free slots takes it out of one: so it may be in a list in error, which its
/// state tells. It is never missing at rest: a lane lists it after it lowered the count, so of a lane that found too
/// little in a state and dropped the segment, and one that frees a slot, the second lists it later. (For the same
/// reason nobody but who ends it may take it out of the dense ones when it becomes sparse: others might have listed
/// it there again.)
/// Large blocks are runs of segments; the first one's state says how many.
///
/// Ordering: what an owner did is before the bit and before the count (a fence). Who takes a bit
/// takes it by value. Who recycles acquires the count, who ends a segment has it too, and hands it on through `free`. Who moves
/// bits hands on what he acquired with them: others that have rights may take them.
/// Progress: who ends a segment, and who has a right, may wait for a bit that is coming. On a GPU it was sent before the
/// count, so that is a wait for memory and not for a lane. Nothing else waits.
/// A block that is freed twice counts once. If that happens while the last others of its segment are freed, the segment
/// may be lost.

#include <quarry/concurrent/bitmap.hpp>
#include <quarry/concurrent/index_set.hpp>
#include <quarry/pool/slab/fault.hpp>
#include <quarry/pool/slab/shape.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>

#include <bit>
#include <cstdint>

namespace quarry {

/// The word per segment.
class slab_state {
 public:
  static constexpr std::uint32_t large = 63;
  static constexpr std::uint32_t longest_run = (1u << 24) - 1;
  static constexpr std::uint32_t one_coming = 1u << 13;  // count and coming: up to 4096 each

  std::uint32_t word;

  QUARRY_DEVICE static constexpr slab_state of(std::uint32_t c, std::uint32_t count) {
    return {(c + 1) << kind_shift | count};
  }
  QUARRY_DEVICE static constexpr slab_state run(std::uint32_t segments) {
    return {large << kind_shift | segments};
  }
  /// The segments behind the pool's present end: a run that is nobody's block (slab_resize.hpp).
  QUARRY_DEVICE static constexpr slab_state withheld(std::uint32_t segments) {
    return {large << kind_shift | flag | segments};
  }

  /// 0: no class; large; else the class + 1.
  QUARRY_DEVICE constexpr std::uint32_t kind() const { return word >> kind_shift; }
  QUARRY_DEVICE constexpr bool is(std::uint32_t c) const { return kind() == c + 1; }
  QUARRY_DEVICE constexpr std::uint32_t count() const { return word & (one_coming - 1); }
  QUARRY_DEVICE constexpr std::uint32_t coming() const { return bits() / one_coming; }
  QUARRY_DEVICE constexpr std::uint32_t bits() const { return word & ((1u << kind_shift) - 1); }
  QUARRY_DEVICE constexpr std::uint32_t run_length() const { return word & (flag - 1); }
  QUARRY_DEVICE constexpr bool is_withheld() const { return kind() == large && (word & flag) != 0; }

 private:
  static constexpr unsigned kind_shift = 26;
  static constexpr std::uint32_t flag = 1u << 24;
};

template <slab_fault Fault = slab_fault::none>
class slab_segments {
 public:
  slab_segments() = default;
  /// `few`: slots of a segment whose bits are in its state.
  slab_segments(carve& metadata, std::uint32_t segments, std::uint32_t classes, std::uint32_t words,
                std::uint32_t few)
      : few_(few),
        words_per_segment_(words),
        free_(metadata, "free segments", segments),
        runs_(metadata, "free runs", segments),
        state_mask_(std::bit_ceil(ceil_div(segments, 4u)) - 1),
        states_(metadata.take<std::uint32_t>("states", (std::uint64_t{state_mask_} + 1) * 4)),
        bits_(metadata.take<std::uint32_t>("bits", std::uint64_t{segments} * words)),
        list_length_(static_cast<std::uint32_t>(index_set::length(segments))),
        lists_(metadata.take<std::uint64_t>("used segments",
                                            std::uint64_t{list_length_} * classes * 2)) {}

  QUARRY_DEVICE const index_set& free() const { return free_; }
  QUARRY_DEVICE const index_set& runs() const { return runs_; }
  bool is_free(std::uint32_t segment) const {
    return free_.contains(segment) || runs_.contains(segment);
  }
  QUARRY_DEVICE index_set dense(std::uint32_t c) const { return list(c * 2); }
  QUARRY_DEVICE index_set sparse(std::uint32_t c) const { return list(c * 2 + 1); }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> state_word(std::uint32_t segment) const {
    return simt::atomic_ref<std::uint32_t>(
        states_[spread(segment / 4, state_mask_) * 4 + segment % 4]);
  }
  QUARRY_DEVICE slab_state state(std::uint32_t segment) const {
    return slab_state{state_word(segment).load(simt::relaxed)};
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> bits(std::uint32_t segment, std::uint32_t w) const {
    return simt::atomic_ref<std::uint32_t>(bits_[segment * words_per_segment_ + w]);  // < 2^29
  }

  /// Whether segments with so many slots have their bits in the state.
  QUARRY_DEVICE bool is_few(std::uint32_t capacity) const { return capacity <= few_; }
  /// Of which all slots are taken.
  QUARRY_DEVICE slab_state full(std::uint32_t c, std::uint32_t capacity) const {
    return slab_state::of(c, is_few(capacity) ? 0 : capacity);
  }
  QUARRY_DEVICE std::uint32_t taken(slab_state s, std::uint32_t capacity) const {
    return is_few(capacity) ? capacity - simt::popc(s.bits()) : s.count();
  }
  /// Whether that is so, of at most 32, as far as a state that was seen tells.
  QUARRY_DEVICE bool all_taken(std::uint32_t segment, slab_state seen,
                               std::uint32_t capacity) const {
    return seen.word == full(seen.kind() - 1, capacity).word &&
           (is_few(capacity) || bits(segment, 0).load(simt::relaxed) == 0);
  }
  /// Sets the bits of slots in one word, the one with this slot, and returns what was there: with few slots the state.
  QUARRY_DEVICE std::uint32_t set_bits(std::uint32_t segment, std::uint32_t slot,
                                       std::uint32_t slots, std::uint32_t capacity) const {
    const auto where = is_few(capacity) ? state_word(segment) : bits(segment, slot / 32);
    return where.fetch_or(slots, simt::between_fences);
  }
  /// Counts k slots as free whose bits were set so. Returns the state before.
  QUARRY_DEVICE slab_state lower(std::uint32_t segment, std::uint32_t k, std::uint32_t was,
                                 std::uint32_t capacity) const {
    return is_few(capacity) ? slab_state{was} : lower(segment, k);
  }
  /// Both for one slot at once, for a lane that has no company. Returns whether it counts: it was not free already.
  QUARRY_DEVICE bool give_back_one(std::uint32_t segment, std::uint32_t slot,
                                   std::uint32_t capacity, slab_state& before) const {
    constexpr std::uint32_t pending =
        has(slab_fault::counts_before_bit) ? 0 : slab_state::one_coming;
    const std::uint32_t bit = 1u << slot % 32;
    if (is_few(capacity)) {
      before = {set_bits(segment, slot, bit, capacity)};
      return (before.word & bit) == 0;
    }
#if QUARRY_DEVICE_CODE
    const std::uint32_t was = set_bits(segment, slot, bit, capacity);
    before = lower(segment, 1 - pending);
#else  // The memory of a GPU may well do the second first, so that is what the explorer sees.
    before = lower(segment, 1 - pending);
    const std::uint32_t was = set_bits(segment, slot, bit, capacity);
#endif
    const bool counts = (was & bit) == 0;
    const bool ends = before.count() == 1 && before.coming() == 0;  // and clears the state
    if constexpr (has(slab_fault::counts_before_bit)) {
      if (!counts && !ends) state_word(segment).add(1, simt::after_loads);
    } else if (!counts || !ends) {
      state_word(segment).add((counts ? 0 : 1) - slab_state::one_coming, simt::after_loads);
    }
    return counts;
  }

  /// Segments just taken out of free(): all their slots belong to the caller.
  QUARRY_DEVICE void adopt(std::uint32_t first, std::uint32_t n, std::uint32_t c,
                           std::uint32_t capacity) const {
    QUARRY_ROLLED
    for (std::uint32_t i = 0; i < n; ++i)
      state_word(first + i).store(full(c, capacity).word, simt::relaxed);
  }
  /// The other way round: a segment all of whose slots are the caller's, with no bit set. Its state may stay, if it says that
  /// all slots are taken, or that all are free: then nothing in it can be recycled. Requires a fence_stores() before it.
  QUARRY_DEVICE void give_up(std::uint32_t segment) const { free_.put(segment, simt::after_fence); }
  /// Whether it is a moment when the segment is to be listed or given up: k slots are free that were not before.
  QUARRY_DEVICE bool is_event(slab_state before, std::uint32_t k, std::uint32_t capacity) const {
    const std::uint32_t was = taken(before, capacity);
    const std::uint32_t most = most_of_sparse(capacity);
    return was == k || (was > most && (was == capacity || was - k <= most));
  }
  /// Does so, but for one thing: it returns whether the segment was the last one in a word of its lists. Then the caller
  /// goes on with give_up_last.
  QUARRY_DEVICE bool settle(std::uint32_t segment, std::uint32_t c, slab_state before,
                            std::uint32_t k, std::uint32_t capacity) const {
    const std::uint32_t was = taken(before, capacity);
    if (was != k) {
      enlist(segment, c, was - k, capacity);
      return false;
    }
    if (!is_few(capacity)) {
      if constexpr (!has(slab_fault::ignores_pending_bits)) {
        if (before.coming() != 0 && !bits_have_come(segment)) return false;
      }
      QUARRY_ROLLED
      for (std::uint32_t w = 0; w * 32 < capacity; w += 4)
        if constexpr (!has(slab_fault::skips_bitmap_clear))
          simt::clear_four(bits_ + (segment * words_per_segment_ + w));
      state_word(segment).store(0, simt::relaxed);
    }
    if constexpr (has(slab_fault::releases_before_unlisting)) give_up(segment);
    bool last = false;
    if (k != capacity) {
      last = sparse(c).remove(segment);
      if (has_dense(capacity) && !is_sparse(capacity - k, capacity))
        last |= dense(c).remove(segment);
    }
    if (!is_few(capacity)) simt::fence_stores();
    if (last) return true;
    // After a branch on what the lists had: somebody may list it again now.
    if constexpr (!has(slab_fault::releases_before_unlisting)) give_up(segment);
    return false;
  }
  QUARRY_DEVICE void give_up_last(std::uint32_t segment, std::uint32_t c,
                                  std::uint32_t capacity) const {
    if constexpr (!has(slab_fault::releases_before_unlisting)) give_up(segment);
    const std::uint64_t to_sparse = sparse(c).drop_hint(segment);
    if (has_dense(capacity)) dense(c).look_again(segment, dense(c).drop_hint(segment));
    sparse(c).look_again(segment, to_sparse);
  }

  /// Takes free slots of a used segment of class c, just taken out of a list, but at most so many; returns how many. If
  /// there are more, it is listed again.
  QUARRY_DEVICE std::uint32_t recycle(std::uint32_t segment, std::uint32_t c,
                                      std::uint32_t capacity, std::uint32_t most) const {
    slab_state s = state(segment);
    std::uint32_t rights = 0;
    std::uint32_t left = 0;
    std::uint32_t moved = 0;  // bits
    std::uint32_t next = 0;
    do {
      const std::uint32_t free = capacity - taken(s, capacity);
      if (!s.is(c) || free == 0 || free == capacity) return 0;
      rights = free < most ? free : most;
      left = free - rights;
      moved = is_few(capacity) ? lowest_set_bits(s.bits(), rights) : 0;
      next = is_few(capacity) ? s.word & ~moved : s.word + rights;
      if constexpr (has(slab_fault::skips_reservation_count)) next = s.word;
    } while (!state_word(segment).compare_exchange(s.word, next, simt::acquire));
    if constexpr (!has(slab_fault::reserves_without_bits)) {
      if (is_few(capacity)) bits(segment, 0).bit_or(moved, simt::release);
    }
    if (left != 0 && (!has(slab_fault::drops_partial_segment) || left == capacity))
      enlist(segment, c, capacity - left, capacity);
    return rights;
  }
  /// Gives up so many rights that recycling has brought. Returns the state before.
  QUARRY_DEVICE slab_state renounce(std::uint32_t segment, std::uint32_t rights,
                                    std::uint32_t capacity) const {
    std::uint32_t mine = 0;
    QUARRY_ROLLED
    while (is_few(capacity) && simt::popc(mine) < rights) {
      const std::uint32_t seen = bits(segment, 0).load(simt::relaxed);
      const std::uint32_t some = lowest_set_bits(seen, rights - simt::popc(mine));
      if constexpr (has(slab_fault::keeps_bits_of_cancelled_reservations)) {
        mine |= bits(segment, 0).load(simt::by_value) & some;
      } else {
        mine |= bits(segment, 0).fetch_and(~some, simt::by_value) & some;
      }
    }
    simt::fence_stores();
    const std::uint32_t was = is_few(capacity) ? set_bits(segment, 0, mine, capacity) : 0;
    return lower(segment, rights, was, capacity);
  }

  /// The slots that word w of a segment has.
  QUARRY_DEVICE static std::uint32_t present(std::uint32_t capacity, std::uint32_t w) {
    const std::uint32_t left = capacity - w * 32;
    return left >= 32 ? ~std::uint32_t{0} : (1u << left) - 1;
  }
  QUARRY_DEVICE static bool is_sparse(std::uint32_t taken, std::uint32_t capacity) {
    return taken <= most_of_sparse(capacity);
  }

 private:
  QUARRY_DEVICE static constexpr bool has(slab_fault fault) { return Fault == fault; }

  /// Large slots are worth being recycled one by one.
  QUARRY_DEVICE static bool has_dense(std::uint32_t capacity) { return capacity > 32; }
  QUARRY_DEVICE static std::uint32_t most_of_sparse(std::uint32_t capacity) {
    return has_dense(capacity) ? capacity * 3 / 4 : capacity - 1;
  }
  /// Lists a segment of which so many slots are taken, and not all.
  QUARRY_DEVICE void enlist(std::uint32_t segment, std::uint32_t c, std::uint32_t taken,
                            std::uint32_t capacity) const {
    list(c * 2 + (is_sparse(taken, capacity) ? 1 : 0)).put(segment, simt::relaxed);
  }
  /// Lowers the count of a segment by k. Returns the state before.
  QUARRY_DEVICE slab_state lower(std::uint32_t segment, std::uint32_t k) const {
    return slab_state{state_word(segment).fetch_sub(k, simt::between_fences)};
  }
  /// For who ends a segment: waits until no bit is coming. False: it does not end, somebody had counted a block that was free.
  QUARRY_DEVICE bool bits_have_come(std::uint32_t segment) const {
    slab_state now = state(segment);
    QUARRY_ROLLED
    while (now.count() == 0 && now.coming() != 0) {
      simt::spin(50);
      now = state(segment);
    }
    return now.count() == 0;
  }
  QUARRY_DEVICE index_set list(std::uint32_t n) const {
    return index_set(lists_ + static_cast<std::size_t>(list_length_ * n), free_.size());  // < 2^24
  }

  std::uint32_t few_;
  std::uint32_t words_per_segment_;
  index_set free_;
  index_set runs_;
  std::uint32_t state_mask_;
  std::uint32_t* states_;
  std::uint32_t* bits_;
  std::uint32_t list_length_;
  std::uint64_t* lists_;
};

}  // namespace quarry

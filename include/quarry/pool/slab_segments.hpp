// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The segments of a slab heap: which are free, and which slots of the others are.
///
///   free        an index_set: segments that no class has any more
///   state       a word per segment: class | count
///   bits        a bit per slot: SET means free. None is set in a free segment
///   loose       an index_set per class: segments with a free slot, perhaps
///   worthwhile  numbers per class: of loose segments with a quarter of their slots free, about; each number stands for
///               one of 16 parts of the segments, or all lanes that free would queue for one word
///
/// count = slots that are taken: live blocks, what an entry (slab_entry.hpp) may still hand out, and what is being
/// given back. A slot is given back in two steps: its bit is set, then the count is lowered. So
///   capacity - count <= bits set,   and the difference is what entries have rights to, or is on its way.
///
/// States of a segment and who changes them:
///   free -> class c       adopt: by the lane that took it out of `free`, or was the first to use it. All slots are taken, by the entry. Bits are
///                         not touched: slots of a fresh segment are handed out by number
///   some slots free       lower: each lane that gives something back
///   all slots taken       recycle: by one compare-exchange of the count, all free slots become rights of an entry.
///                         Whoever draws a right then takes any bit that is set: there are enough at all times
///   class c -> free       by the lane that lowers the count to 0. Nobody owns a slot, nobody has a right, and no bit
///                         is on its way, since bits come before counts: so one word decides. It clears the bits
///
/// Lists. Who makes the first slot free lists a segment as loose, and who ends it takes it out; one that is listed in
/// error is found out by its state. At rest none is missing.
/// Large blocks are runs of segments; the first one's state says how many.
///
/// Ordering: what an owner did is before the bit (a fence), and the bit before the count: who lowers it has seen the bit. Who takes a bit
/// takes it by value. Who recycles acquires the count, who ends a segment has it too, and hands it on through `free`.
/// Progress: no waiting.

#include <quarry/core/index_set.hpp>
#include <quarry/pool/slab_shape.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>

namespace quarry {

/// The word per segment.
class slab_state {
 public:
  static constexpr std::uint32_t large = 127;
  static constexpr std::uint32_t longest_run = (1u << 24) - 1;

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
  QUARRY_DEVICE constexpr std::uint32_t count() const { return word & (flag - 1); }
  QUARRY_DEVICE constexpr std::uint32_t run_length() const { return word & (flag - 1); }
  QUARRY_DEVICE constexpr bool is_withheld() const { return kind() == large && (word & flag) != 0; }

 private:
  static constexpr unsigned kind_shift = 25;
  static constexpr std::uint32_t flag = 1u << 24;
};

class slab_segments {
 public:
  slab_segments() = default;
  slab_segments(carve& metadata, std::uint32_t segments, std::uint32_t classes, std::uint32_t words)
      : words_per_segment_(words),
        free_(metadata, "free segments", segments),
        states_(metadata.take<std::uint32_t>("states", segments)),
        bits_(metadata.take<std::uint32_t>("bits", std::uint64_t{segments} * words)),
        list_length_(static_cast<std::uint32_t>(index_set::length(segments))),
        lists_(
            metadata.take<std::uint64_t>("loose segments", std::uint64_t{list_length_} * classes)),
        worthwhile_(metadata.take<std::uint32_t>("worthwhile segments", classes * parts * stride)) {
  }

  QUARRY_DEVICE const index_set& free() const { return free_; }
  QUARRY_DEVICE index_set loose(std::uint32_t c) const {
    return index_set(lists_ + std::uint64_t{list_length_} * c, free_.size());
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> state_word(std::uint32_t segment) const {
    return simt::atomic_ref<std::uint32_t>(states_[segment]);
  }
  QUARRY_DEVICE slab_state state(std::uint32_t segment) const {
    return {state_word(segment).load(simt::relaxed)};
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> bits(std::uint32_t segment, std::uint32_t w) const {
    return simt::atomic_ref<std::uint32_t>(bits_[std::uint64_t{segment} * words_per_segment_ + w]);
  }

  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> worthwhile(std::uint32_t c,
                                                           std::uint32_t segment) const {
    return simt::atomic_ref<std::uint32_t>(worthwhile_[(c * parts + segment % parts) * stride]);
  }

  QUARRY_DEVICE bool has_worthwhile(std::uint32_t c) const {
    std::uint32_t some = 0;
    for (std::uint32_t part = 0; part < parts; ++part)
      some |= worthwhile(c, part).load(simt::relaxed);
    return some != 0;
  }

  /// Segments just taken out of free(): all their slots belong to the caller.
  QUARRY_DEVICE void adopt(std::uint32_t first, std::uint32_t n, std::uint32_t c,
                           std::uint32_t capacity) const {
    QUARRY_ROLLED
    for (std::uint32_t i = 0; i < n; ++i)
      state_word(first + i).store(slab_state::of(c, capacity).word, simt::relaxed);
  }
  /// Undone, with no slot handed out since.
  QUARRY_DEVICE void disown(std::uint32_t segment) const {
    state_word(segment).store(0, simt::relaxed);
    free_.put(segment);
  }

  /// Lowers the count of a segment by k slots whose bits are known to be set. Returns the state before.
  QUARRY_DEVICE slab_state lower(std::uint32_t segment, std::uint32_t k) const {
    return {state_word(segment).fetch_sub(k, simt::between_fences)};
  }
  /// Whether that was a moment when the segment is to be listed or given up.
  QUARRY_DEVICE static bool is_event(slab_state was, std::uint32_t k, std::uint32_t capacity) {
    return was.count() == capacity || was.count() == k ||
           is_worthwhile(was.count(), capacity) != is_worthwhile(was.count() - k, capacity);
  }
  /// Does so.
  QUARRY_DEVICE void settle(std::uint32_t segment, std::uint32_t c, slab_state was, std::uint32_t k,
                            std::uint32_t capacity) const {
    const bool counted = is_worthwhile(was.count(), capacity);
    if (was.count() == k) {
      QUARRY_ROLLED
      for (std::uint32_t w = 0; w * 32 < capacity; ++w) bits(segment, w).store(0, simt::relaxed);
      state_word(segment).store(0, simt::relaxed);
      if (counted) worthwhile(c, segment).sub(1, simt::relaxed);
      if (k != capacity) loose(c).remove(segment);
      free_.put_at_once(segment);
    } else {
      if (!counted && is_worthwhile(was.count() - k, capacity))
        worthwhile(c, segment).add(1, simt::relaxed);
      if (was.count() == capacity) loose(c).put_at_once(segment, simt::relaxed);
    }
  }

  /// Takes all free slots of a used segment of class c, just taken out of loose(c), if there are `least`; returns how
  /// many, or 0. One with fewer is listed again.
  QUARRY_DEVICE std::uint32_t recycle(std::uint32_t segment, std::uint32_t c,
                                      std::uint32_t capacity, std::uint32_t least) const {
    slab_state s = state(segment);
    do {
      if (!s.is(c) || s.count() == 0 || s.count() == capacity) return 0;
      if (s.count() + least > capacity) {
        loose(c).put(segment, simt::relaxed);
        return 0;
      }
    } while (!state_word(segment).compare_exchange(s.word, slab_state::of(c, capacity).word,
                                                   simt::acquire));
    if (is_worthwhile(s.count(), capacity)) worthwhile(c, segment).sub(1, simt::relaxed);
    return capacity - s.count();
  }

  /// The slots that word w of a segment has.
  QUARRY_DEVICE static std::uint32_t present(std::uint32_t capacity, std::uint32_t w) {
    const std::uint32_t left = capacity - w * 32;
    return left >= 32 ? ~std::uint32_t{0} : (1u << left) - 1;
  }
  QUARRY_DEVICE static bool is_worthwhile(std::uint32_t count, std::uint32_t capacity) {
    return count * 4 <= capacity * 3;
  }

 private:
  static constexpr std::uint32_t parts = 16;
  static constexpr std::uint32_t stride = 8;  // each in a sector of its own

  std::uint32_t words_per_segment_;
  index_set free_;
  std::uint32_t* states_;
  std::uint32_t* bits_;
  std::uint32_t list_length_;
  std::uint64_t* lists_;
  std::uint32_t* worthwhile_;
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The measures of a slab heap: how a pool is cut into segments, and how many entries hand out slots.
///
///   pool      | segment 0 | segment 1 | …                        2^8 to 2^16 bytes each
///   segment   | slot 0 | slot 1 | … | slot capacity-1 | rest |   all of one class
///
/// Everything follows from the size of the pool; the numbers in slab_tuning are where measurements put them.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>
#include <quarry/core/size_classes.hpp>
#include <quarry/pool/slab/fault.hpp>

#include <algorithm>
#include <cstdint>

namespace quarry {

struct slab_tuning {
  std::uint32_t least_segment_log2 = 8;
  std::uint32_t most_segment_log2 = 16;
  std::uint64_t segments_wanted = 256;  // smaller segments in pools that would have fewer
  // Entries of a class, but only one for so many segments: shared by all lanes, where sizes are small (up to 1 KiB; four
  // times as many in large pools) and where they are large; and for whole warps, up to 256 B and above.
  std::uint32_t small_shared_entries = 32;
  std::uint32_t large_shared_entries = 1024;
  std::uint32_t segments_per_shared_entry = 128;
  std::uint32_t small_own_entries = 1024;
  std::uint32_t large_own_entries = 8192;
  std::uint32_t segments_per_own_entry = 64;
  std::uint32_t places = 32768;  // for warps that want whole segments of a class
  // An entry looks so often for free segments, where so many of 64 are free, before it takes used slots.
  std::uint32_t looks_for_free = 3;
  std::uint32_t plenty = 16;
  // A warp's own entry takes so many times what its lanes need; a shared one twice, and where a crowd waits much more.
  std::uint32_t own_ahead = 4;
  std::uint32_t crowd = 1024;
  std::uint32_t crowd_ahead = 4;
  std::uint32_t longest_run = 64;  // segments that an entry takes at once, where many wait,
  std::uint32_t run_one_in = 32;   // but no larger share of the pool
  // Until so many 64ths of the pool were used, entries of slots up to a 32nd of a segment, and of larger ones, take
  // free segments wherever there are any: fast. Beyond it they use used slots first: compact.
  std::uint32_t much_of_small = 2;
  std::uint32_t much = 48;
  std::uint32_t few_slots = 25;         // in a segment, so that their bits are kept in its state
  slab_fault fault = slab_fault::none;  // mutants only
};

using slab_sizes = size_classes<16, 32768, 4>;

/// The entries of one kind, in rows: an entry for each class. Classes below `Border` use so many rows, others another
/// number; both are powers of two.
template <std::uint32_t Border>
struct slab_entry_kind {
  std::uint32_t first;
  std::uint32_t row_log2;
  std::uint32_t small_mask;
  std::uint32_t large_mask;

  constexpr slab_entry_kind(std::uint32_t begin, std::uint32_t classes, std::uint32_t small_log2,
                            std::uint32_t large_log2)
      : first(begin),
        row_log2(log2_ceil(std::max(classes, 1u))),
        small_mask((1u << small_log2) - 1),
        large_mask((1u << large_log2) - 1) {}
  slab_entry_kind() = default;

  QUARRY_DEVICE constexpr std::uint32_t entry(std::uint32_t c, std::uint32_t warp) const {
    return first + ((warp & (c < Border ? small_mask : large_mask)) << row_log2) + c;
  }
  QUARRY_DEVICE constexpr std::uint32_t class_of(std::uint32_t entry) const {
    return (entry - first) & ((1u << row_log2) - 1);
  }
  constexpr std::uint32_t end() const {
    return first + ((std::max(small_mask, large_mask) + 1) << row_log2);
  }
};

template <slab_tuning Tuning>
struct slab_shape {
  static constexpr std::uint32_t most_segments = (1u << 22) - 2;  // a slab_word has 22 bits for one
  static_assert(Tuning.longest_run <= 64 && Tuning.most_segment_log2 <= 16 &&
                Tuning.few_slots <= 25 && slab_sizes::class_of(slab_sizes::largest) < 60);

  std::uint32_t segment_log2;
  std::uint32_t segments;
  std::uint32_t classes;      // up to half a segment
  std::uint32_t first_whole;  // the first class that a warp may want whole segments of
  slab_entry_kind<slab_sizes::class_of(1024) + 1> shared;
  slab_entry_kind<slab_sizes::class_of(256) + 1> own;
  std::uint32_t places_log2;
  std::uint32_t longest_run;  // segments that an entry may take at once
  std::uint32_t
      least_own_slots;  // that an entry takes at once which a warp has for itself, if they are small
  std::uint32_t plenty;  // free segments of 64
  std::uint32_t
      much_of_small;   // segments that were used: a large part of the pool, for small slots
  std::uint32_t much;  // and for others

  slab_shape() = default;
  constexpr explicit slab_shape(std::uint64_t pool)
      : segment_log2(
            std::clamp(log2_floor(std::max<std::uint64_t>(pool / Tuning.segments_wanted, 1)),
                       Tuning.least_segment_log2, Tuning.most_segment_log2)),
        segments(static_cast<std::uint32_t>(
            std::min<std::uint64_t>(pool >> segment_log2, most_segments))),
        classes(slab_sizes::class_of(std::min(1u << segment_log2 >> 1, slab_sizes::largest)) + 1),
        first_whole(slab_sizes::class_of((1u << segment_log2) / 32)),
        shared(0, classes,
               std::max(
                   at_most(Tuning.small_shared_entries, Tuning.segments_per_shared_entry),
                   at_most(Tuning.small_shared_entries * 4, Tuning.segments_per_shared_entry * 16)),
               at_most(Tuning.large_shared_entries, Tuning.segments_per_shared_entry)),
        own(shared.end(), first_whole,
            at_most(Tuning.small_own_entries, Tuning.segments_per_own_entry),
            at_most(Tuning.large_own_entries,
                    Tuning.segments_per_own_entry >> (segments >= 1u << 17 ? 1 : 0))),
        places_log2(at_most(Tuning.places, 1)),
        longest_run(std::clamp(segments / Tuning.run_one_in, 1u, Tuning.longest_run)),
        least_own_slots(std::clamp(segments >> 15, 1u, 8u) * 512),
        plenty(std::clamp(segments / 16, 1u, Tuning.plenty)),
        much_of_small(part(Tuning.much_of_small)),
        much(part(Tuning.much)) {}

  /// Of a segment. Four are cleared at a time.
  QUARRY_DEVICE constexpr std::uint32_t bitmap_words() const {
    return (1u << segment_log2) / 16 / 32 > 4 ? (1u << segment_log2) / 16 / 32 : 4;
  }
  QUARRY_DEVICE constexpr std::uint32_t capacity(std::uint32_t c) const {
    return slab_sizes::divider_of(c).quotient(1u << segment_log2);
  }
  constexpr std::uint32_t entries() const { return own.end(); }
  QUARRY_DEVICE constexpr std::uint32_t class_of_entry(std::uint32_t entry) const {
    return entry < own.first ? shared.class_of(entry) : own.class_of(entry);
  }
  constexpr std::uint32_t places() const { return (classes - first_whole) << places_log2; }

 private:
  constexpr std::uint32_t part(std::uint32_t of_64) const {
    return static_cast<std::uint32_t>(std::uint64_t{segments} * of_64 / 64);
  }
  /// So many, or one for `each` segments; as a power of two.
  constexpr std::uint32_t at_most(std::uint32_t wanted, std::uint32_t each) const {
    return log2_floor(std::min(wanted, std::max(segments / each, 1u)));
  }
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The measures of a slab heap: how a pool is cut into segments, and how many entries hand out slots.
///
///   pool      | segment 0 | segment 1 | …                        2^8 to 2^16 bytes each
///   segment   | slot 0 | slot 1 | … | slot capacity-1 | rest |   all of one class
///
/// Everything follows from the size of the pool; the numbers in slab_tuning are where measurements put them.

#include <quarry/core/bits.hpp>
#include <quarry/core/size_classes.hpp>
#include <quarry/simt/config.hpp>

#include <algorithm>
#include <cstdint>

namespace quarry {

struct slab_tuning {
  std::uint32_t least_segment_log2 = 8;
  std::uint32_t most_segment_log2 = 16;
  std::uint64_t segments_wanted = 256;  // smaller segments in pools that would have fewer
  // Entries of a class, but no more than the pool has segments for: shared by all lanes, where sizes are small (up to
  // 1 KiB; twice as many in large pools) and where they are large; and for whole warps, up to 256 B and above.
  std::uint32_t small_shared_entries = 64;
  std::uint32_t large_shared_entries = 1024;
  std::uint32_t small_own_entries = 1024;
  std::uint32_t large_own_entries = 8192;
  std::uint32_t segments_per_entry = 32;
  // A warp's own entry takes so many times what its lanes need; a shared one twice, and where a crowd waits much more.
  std::uint32_t own_ahead = 4;
  std::uint32_t crowd = 1024;
  std::uint32_t longest_run = 64;  // segments that an entry takes at once, where many wait,
  std::uint32_t run_one_in = 256;  // but no larger share of the pool
  std::uint32_t roomy = 64;        // a pool of which less than this part was ever used
};

using slab_sizes = size_classes<16, 32768, 4>;

/// The entries of one kind: some for each class below `Border`, and another number for each of those above. Numbers are
/// powers of two.
template <std::uint32_t Border>
struct slab_entry_kind {
  std::uint32_t small_log2;
  std::uint32_t large_log2;

  QUARRY_DEVICE constexpr std::uint32_t log2_of(std::uint32_t c) const {
    return c < Border ? small_log2 : large_log2;
  }
  /// The first one of a class.
  QUARRY_DEVICE constexpr std::uint32_t first(std::uint32_t c) const {
    const std::uint32_t small = c < Border ? c : Border;
    return (small << small_log2) + ((c - small) << large_log2);
  }
  QUARRY_DEVICE constexpr std::uint32_t class_of(std::uint32_t entry) const {
    return entry < first(Border) ? entry >> small_log2
                                 : Border + ((entry - first(Border)) >> large_log2);
  }
};

template <slab_tuning Tuning>
struct slab_shape {
  static constexpr std::uint32_t most_segments = (1u << 22) - 2;  // a slab_word has 22 bits for one
  static_assert(Tuning.longest_run <= 64 && Tuning.most_segment_log2 <= 16);

  std::uint32_t segment_log2;
  std::uint32_t segments;
  std::uint32_t classes;  // up to half a segment
  slab_entry_kind<slab_sizes::class_of(1024) + 1> shared;
  slab_entry_kind<slab_sizes::class_of(256) + 1> own;

  static constexpr slab_shape of(std::uint64_t pool) {
    const std::uint64_t per_segment = std::max<std::uint64_t>(pool / Tuning.segments_wanted, 1);
    const auto segment_log2 =
        std::clamp(log2_floor(per_segment), Tuning.least_segment_log2, Tuning.most_segment_log2);
    const auto segments =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(pool >> segment_log2, most_segments));
    const std::uint32_t largest =
        std::min<std::uint32_t>(1u << segment_log2 >> 1, slab_sizes::largest);
    const auto entries = [&](std::uint32_t wanted, std::uint32_t segments_each) {
      return log2_floor(std::min(wanted, std::max(segments / segments_each, 1u)));
    };
    const std::uint32_t each = Tuning.segments_per_entry;
    return {segment_log2,
            segments,
            slab_sizes::class_of(largest) + 1,
            {std::max(entries(Tuning.small_shared_entries, each),
                      entries(Tuning.small_shared_entries * 2, each * 64)),
             entries(Tuning.large_shared_entries, each * 8)},
            {entries(Tuning.small_own_entries, each), entries(Tuning.large_own_entries, each)}};
  }

  QUARRY_DEVICE constexpr std::uint32_t bitmap_words() const {  // of a segment
    return (1u << segment_log2) / 16 / 32 > 1 ? (1u << segment_log2) / 16 / 32 : 1;
  }
  QUARRY_DEVICE constexpr std::uint32_t capacity(std::uint32_t c) const {
    return slab_sizes::reciprocal_of(c).quotient(1u << segment_log2);
  }
  /// All entries: first the shared ones of class 0, of class 1, …, then the own ones of class 0, of class 1, …
  QUARRY_DEVICE constexpr std::uint32_t first_own() const { return shared.first(classes); }
  QUARRY_DEVICE constexpr std::uint32_t entries() const { return first_own() + own.first(classes); }
  QUARRY_DEVICE constexpr std::uint32_t class_of_entry(std::uint32_t entry) const {
    return entry < first_own() ? shared.class_of(entry) : own.class_of(entry - first_own());
  }
  /// Segments that an entry may take at once.
  QUARRY_DEVICE constexpr std::uint32_t longest_run() const {
    const std::uint32_t fair = segments / Tuning.run_one_in;
    return fair < 1 ? 1 : fair < Tuning.longest_run ? fair : Tuning.longest_run;
  }
  /// And for a warp's own entry of a class with many slots in a segment, where the pool is large.
  QUARRY_DEVICE constexpr std::uint32_t least_own_run() const {
    const std::uint32_t fair = segments >> 15;
    return fair < 1 ? 1 : fair < 8 ? fair : 8;
  }
};

}  // namespace quarry

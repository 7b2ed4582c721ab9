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
  std::uint32_t entries = 64;           // of a class, that all lanes share,
  std::uint32_t small_own_entries =
      1024;  // and for whole warps: of classes with many slots in a segment,
  std::uint32_t large_own_entries = 8192;  // and with few;
  std::uint32_t segments_per_entry = 32;   // but no more than this allows
  std::uint32_t crowd = 1024;  // where so many wait for an entry, it takes much more than they need
  std::uint32_t longest_run = 64;  // segments that an entry takes at once, where many wait,
  std::uint32_t run_one_in = 256;  // but no larger share of the pool
};

using slab_sizes = size_classes<16, 32768, 4>;

template <slab_tuning Tuning>
struct slab_shape {
  static constexpr std::uint32_t most_segments = (1u << 22) - 2;  // a slab_word has 22 bits for one
  static_assert(Tuning.longest_run <= 64 && Tuning.most_segment_log2 <= 16);

  std::uint32_t segment_log2;
  std::uint32_t segments;
  std::uint32_t classes;       // up to half a segment
  std::uint32_t entries_log2;  // of a class
  std::uint32_t small_own_log2;
  std::uint32_t large_own_log2;

  static constexpr slab_shape of(std::uint64_t pool) {
    const std::uint64_t per_segment = std::max<std::uint64_t>(pool / Tuning.segments_wanted, 1);
    const auto segment_log2 =
        std::clamp(log2_floor(per_segment), Tuning.least_segment_log2, Tuning.most_segment_log2);
    const auto segments =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(pool >> segment_log2, most_segments));
    const std::uint32_t largest =
        std::min<std::uint32_t>(1u << segment_log2 >> 1, slab_sizes::largest);
    const std::uint32_t most_entries = std::max(segments / Tuning.segments_per_entry, 1u);
    const auto entries = [&](std::uint32_t wanted) {
      return log2_floor(std::min(wanted, most_entries));
    };
    return {segment_log2,
            segments,
            slab_sizes::class_of(largest) + 1,
            entries(Tuning.entries),
            entries(Tuning.small_own_entries),
            entries(Tuning.large_own_entries)};
  }

  QUARRY_DEVICE constexpr std::uint32_t bitmap_words() const {  // of a segment
    return (1u << segment_log2) / 16 / 32 > 1 ? (1u << segment_log2) / 16 / 32 : 1;
  }
  QUARRY_DEVICE constexpr std::uint32_t capacity(std::uint32_t c) const {
    return slab_sizes::reciprocal_of(c).quotient(1u << segment_log2);
  }
  /// All entries: first the shared ones of class 0, of class 1, …, then the own ones of class 0, of class 1, …
  static constexpr std::uint32_t small_classes = slab_sizes::class_of(256) + 1;
  QUARRY_DEVICE constexpr std::uint32_t entries() const { return first_own(classes); }
  QUARRY_DEVICE constexpr std::uint32_t own_log2(std::uint32_t c) const {
    return c < small_classes ? small_own_log2 : large_own_log2;
  }
  QUARRY_DEVICE constexpr std::uint32_t first_own(std::uint32_t c) const {
    const std::uint32_t small = c < small_classes ? c : small_classes;
    return (classes << entries_log2) + (small << small_own_log2) + ((c - small) << large_own_log2);
  }
  QUARRY_DEVICE constexpr std::uint32_t class_of_entry(std::uint32_t entry) const {
    if (entry < first_own(0)) return entry >> entries_log2;
    return entry < first_own(small_classes)
               ? (entry - first_own(0)) >> small_own_log2
               : small_classes + ((entry - first_own(small_classes)) >> large_own_log2);
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

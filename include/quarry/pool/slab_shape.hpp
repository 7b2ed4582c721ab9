// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The measures of a slab heap: how a pool is cut into segments, and what each size class looks like.
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
  std::uint64_t segments_wanted = 256;       // smaller segments in pools that would have fewer
  std::uint64_t pool_per_shard = 64 << 20;
  std::uint32_t most_shards = 32;
  std::uint32_t tickets_per_ring = 8192;     // that may be drawn and not yet used, about
  std::uint32_t reserve = 16;                // segments that a shard takes at once from the free ones,
  std::uint32_t reserve_one_in = 64;         // but all shards together at most this share
};

using slab_sizes = size_classes<16, 32768, 4>;

/// What malloc and free need to know of a class; in the metadata.
struct alignas(16) slab_class {
  std::uint64_t reciprocal;    // ceil(2^64 / capacity): tickets to segments, below 2^52
  std::uint32_t capacity;      // slots in a segment
  std::uint32_t words;         // of 32 slots
  std::uint32_t ring_first;    // entries of this class in a shard's share
  std::uint32_t ring_mask;
  std::uint32_t mask_first;    // words for the masks of this class's entries in a shard's share
  std::uint32_t listed_words;  // so many words well supplied with free slots make a segment worth recycling

  QUARRY_DEVICE static constexpr std::uint32_t worthwhile(std::uint32_t words) { return (words + 1) / 2; }
};

template <slab_tuning Tuning>
struct slab_shape {
  std::uint32_t segment_log2;
  std::uint32_t segments;
  std::uint32_t shards;   // a power of two
  std::uint32_t classes;  // up to half a segment

  static constexpr slab_shape of(std::uint64_t pool) {
    const std::uint64_t per_segment = std::max<std::uint64_t>(pool / Tuning.segments_wanted, 1);
    const auto segment_log2 =
        std::clamp(log2_floor(per_segment), Tuning.least_segment_log2, Tuning.most_segment_log2);
    const std::uint64_t shards =
        std::clamp<std::uint64_t>(pool / Tuning.pool_per_shard, 1, Tuning.most_shards);
    const std::uint32_t largest = std::min<std::uint32_t>(1u << segment_log2 >> 1, slab_sizes::largest);
    return {segment_log2, static_cast<std::uint32_t>(std::min<std::uint64_t>(pool >> segment_log2, (1u << 23) - 2)),
            std::uint32_t{1} << log2_floor(shards), slab_sizes::class_of(largest) + 1};
  }

  QUARRY_DEVICE constexpr std::uint32_t bitmap_words() const {  // of a segment
    return (1u << segment_log2) / 16 / 32 > 1 ? (1u << segment_log2) / 16 / 32 : 1;
  }
  QUARRY_DEVICE constexpr std::uint32_t capacity(std::uint32_t c) const {
    return (1u << segment_log2) / slab_sizes::size_of(c);
  }
  /// Entries of a ring: a power of two, more than twice the segments that one warp can draw from.
  QUARRY_DEVICE constexpr std::uint32_t ring_size(std::uint32_t c) const {
    const std::uint32_t least = 4 + 64 / capacity(c);
    const std::uint32_t most = segments / 2 > 1 ? segments / 2 : 1;
    std::uint32_t wanted = Tuning.tickets_per_ring / capacity(c);
    wanted = wanted < most ? wanted : most;
    return 1u << log2_ceil(wanted > least ? wanted : least);
  }
  QUARRY_DEVICE constexpr std::uint32_t words(std::uint32_t c) const { return (capacity(c) + 31) / 32; }
  /// Entries of all rings of a shard up to class c, and words in their masks.
  QUARRY_DEVICE constexpr std::uint32_t entries_before(std::uint32_t c) const {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < c; ++i) n += ring_size(i);
    return n;
  }
  QUARRY_DEVICE constexpr std::uint32_t mask_words_before(std::uint32_t c) const {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < c; ++i) n += ring_size(i) * words(i);
    return n;
  }
  /// A shard's reserve: few enough that all shards together do not keep much of the pool.
  QUARRY_DEVICE constexpr std::uint32_t reserve() const {
    const std::uint32_t fair = segments / (shards * Tuning.reserve_one_in);
    return fair < Tuning.reserve ? fair : Tuning.reserve;
  }

  QUARRY_DEVICE constexpr slab_class describe(std::uint32_t c) const {
    slab_class d{};
    d.capacity = capacity(c);
    d.reciprocal = ~std::uint64_t{0} / d.capacity + 1;
    d.words = words(c);
    d.ring_first = entries_before(c);
    d.ring_mask = ring_size(c) - 1;
    d.mask_first = mask_words_before(c);
    d.listed_words = slab_class::worthwhile(d.words);
    return d;
  }
};

}  // namespace quarry

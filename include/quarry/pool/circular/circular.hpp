// SPDX-License-Identifier: Apache-2.0
#pragma once
/// circular: a ring of chunks that is searched from a shared offset. CMalloc and its variants of
/// Vinkler and Havran (2014), repaired.
///
///   pool     | used | free …… | used | free … | used |     granules of 32 bytes or more
///   headers  |*      *         *      *        *      |>|  one per granule; * is a chunk's start
///                    offset                            end marker: always used, links to the front
///
/// malloc traverses the ring from the offset (next fit) and takes the first free chunk. If the
/// chunk is too small, malloc merges the free chunks that follow. If it is still too small, malloc
/// publishes the longer chunk as free and continues. malloc splits the remainder off as a free
/// chunk and moves the offset behind the block. The paper keeps a small remainder in the block
/// (MAX_FRAG), which saves one store. Here every remainder is split off: keeping it cost up to 1 %
/// of a pool of 1000-byte blocks.
/// free merges the next chunk if it is free, and publishes the result.
/// The published algorithm merges only in free and only forwards, which fragments the pool. Merging
/// in malloc makes every run of free chunks equivalent to one chunk.
///
/// The four algorithms of the paper differ in two choices:
///                 one offset    one offset per multiprocessor
///   split header  CMalloc       CMMalloc
///   fused header  CFMalloc      CFMMalloc
/// Initially the chunks form a binary heap, C(i) = R / 2^floor(log2 i): one chunk of R, two of R/2,
/// four of R/4 …, level by level, and the remainder is the last chunk. With several offsets each
/// has a binary heap of its own, and all are linked into one ring.
///
/// Invariants. A free header is the start of a free chunk: only the owner of a chunk publishes it,
/// and only try_take() and try_merge() remove it. Owned and free chunks tile the pool at all times,
/// and the ring from granule 0 visits exactly these chunks. header.hpp explains why stale offsets
/// are harmless.
/// Progress: a traversal ends at its second visit of the end marker, after 2^18 chunks, or in a
/// region in which a search has failed. It skips busy chunks. Then malloc searches the whole pool
/// (regions.hpp) and waits for busy chunks. malloc returns nullptr only if the search found no
/// sufficient run of free chunks. The search records its failure, so that the next failed request
/// reads one record per region, until a chunk there becomes free. If try_take() fails after a
/// successful search, another lane has taken the chunk, and the search is repeated.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/pool/circular/header.hpp>
#include <quarry/pool/circular/regions.hpp>
#include <quarry/simt/ids.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

/// The number of offsets from which traversals start.
enum class offsets : std::uint8_t { one, per_multiprocessor };

template <class Header, offsets Offsets>
class circular {
 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true, .min_pool = 256};

  circular() = default;
  circular(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        shift_(granule_shift(pool.size)),
        granules_(static_cast<std::uint32_t>(pool.size >> shift_)),
        last_offset_(offset_count(pool.size) - 1),
        offsets_(metadata.take<std::uint32_t>("offsets",
                                              std::uint64_t{offset_count(pool.size)} * stride)),
        headers_(metadata, granules_),
        regions_(metadata, granules_) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const;

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n - 1 >= std::uint64_t{granules_} << shift_) return nullptr;
    const auto size = static_cast<std::uint32_t>((n - 1) >> shift_) + 1;
    std::uint32_t at = offset().load(simt::relaxed);
    for (std::int32_t visits = max_visits;;) {
      std::uint32_t next;
      if (headers_.try_take(at, next) && try_serve(at, size, next))
        return pool_ + (std::uint64_t{at} << shift_);
      visits -= next <= at ? max_visits / 2 : 1;  // two visits of the end marker use up all visits
      at = next;
      if (visits > 0 && (visits % 64 != 0 || !regions_.is_known_to_fail(at, size))) continue;
      at = regions_.search(headers_, size);
      if (at == circular_regions::none) return nullptr;
      visits = 1;
    }
  }

  QUARRY_DEVICE void free(void* block) const {
    if (block == nullptr) return;
    const auto at = static_cast<std::uint32_t>(
        static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_) >> shift_);
    const std::uint32_t next = headers_.end_of(at);
    headers_.publish_free(at, merge_following(next, next + 1));
    regions_.count_free(at);
  }

  /// Returns the usable bytes of a live block.
  QUARRY_DEVICE std::uint64_t usable_size(void* block) const {
    const auto at = static_cast<std::uint32_t>(
        static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_) >> shift_);
    return std::uint64_t{headers_.end_of(at) - at} << shift_;
  }

  std::string check_invariants() const;
  heap_statistics statistics() const;
  /// Calls visit(offset in bytes, size in bytes, is free) for every chunk in ascending order.
  /// Requires quiescence.
  template <class Visit>
  void visit_chunks(Visit&& visit) const {
    for (std::uint32_t at = 0, next = 0; at != granules_; at = next) {
      next = headers_.next(at);
      visit(std::uint64_t{at} << shift_, std::uint64_t{next - at} << shift_, headers_.is_free(at));
    }
  }
  template <class Visit>
  void visit_pieces(Visit&& visit) const {
    visit_chunks([&](std::uint64_t at, std::uint64_t size, bool free) {
      visit(free ? pool_piece{at, size, piece_kind::free}
                 : pool_piece{at, size, piece_kind::single, size, 1, 1});
    });
  }

 private:
  static constexpr std::uint64_t min_granule_shift = 5;
  static constexpr std::uint32_t stride = 32;      // one cache line per offset
  static constexpr std::uint32_t max_levels = 20;  // of all binary heaps together: a million chunks
  static constexpr std::int32_t max_visits =
      1 << 18;  // concurrent lanes may have split as many chunks ahead

  static std::uint32_t granule_shift(std::uint64_t bytes) {
    std::uint64_t shift = min_granule_shift;
    while (bytes >> shift > Header::max_granules) ++shift;
    return static_cast<std::uint32_t>(shift);
  }
  /// A power of two up to 128, the expected number of multiprocessors, with at least 1 KiB per
  /// offset.
  static std::uint32_t offset_count(std::uint64_t bytes) {
    if (Offsets == offsets::one) return 1;
    const std::uint64_t count = std::clamp<std::uint64_t>(bytes >> 10, 1, 128);
    return std::uint32_t{1} << log2_floor(count);
  }
  /// The offset of the caller's multiprocessor. Computed at each use, which saves two registers.
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> offset() const {
    const std::uint32_t mine =
        Offsets == offsets::one ? 0 : (simt::sm_id() & last_offset_) * stride;
    return simt::atomic_ref<std::uint32_t>(offsets_[mine]);
  }

  /// Makes the caller's chunk [at, next) a block of `size`, merging free chunks that follow. If
  /// they do not suffice, publishes the chunk as free and returns false.
  QUARRY_DEVICE bool try_serve(std::uint32_t at, std::uint32_t size, std::uint32_t& next) const {
    next = merge_following(next, at + size);
    const bool enough = at + size <= next;
    if (enough) {
      offset().store(split(at, size, next), simt::relaxed);
    } else {
      headers_.publish_free(at, next);
    }
    return enough;
  }
  /// Merges the free chunks from `next` up to `wanted` into the caller's chunk. Returns its new
  /// end.
  QUARRY_DEVICE std::uint32_t merge_following(std::uint32_t next, std::uint32_t wanted) const {
    for (std::uint32_t further; next < wanted && headers_.try_merge(next, further);
         next = further) {
    }
    return next;
  }

  /// Publishes `size` granules of the caller's chunk [at, next) as used and frees the remainder.
  /// Returns the end of the block.
  QUARRY_DEVICE std::uint32_t split(std::uint32_t at, std::uint32_t size,
                                    std::uint32_t next) const {
    if (next != at + size) {
      headers_.publish_free(at + size, next);
      regions_.count_remainder(at, at + size);
      next = at + size;
    }
    headers_.publish_used(at, next);
    return next;
  }

  /// The initial binary heap: its number of levels, and the size of its smallest chunks, a power of
  /// two. Concurrent lanes that take chunks leave a remainder in each of them, unless chunk and
  /// request sizes are powers of two.
  struct initial_shape {
    std::uint32_t levels;
    std::uint32_t smallest;
    QUARRY_DEVICE std::uint64_t granules() const {
      return std::uint64_t{levels} * smallest << levels >> 1;
    }
  };
  /// Returns the shape that covers the most of `granules`.
  QUARRY_DEVICE initial_shape shape(std::uint32_t granules) const {
    const std::uint32_t most = max_levels - log2_ceil(last_offset_ + 1);
    initial_shape best{0, 1};
    for (std::uint32_t smallest = granules < 2048 ? 4 : 32, i = 0; i < 3; smallest *= 2, ++i) {
      initial_shape tried{1, smallest};
      while (tried.levels < most &&
             initial_shape{tried.levels + 1, smallest}.granules() <= granules)
        ++tried.levels;
      if (tried.granules() <= granules && tried.granules() > best.granules()) best = tried;
    }
    return best;
  }

  std::byte* pool_;
  std::uint32_t shift_;
  std::uint32_t granules_;
  std::uint32_t last_offset_;
  std::uint32_t* offsets_;
  Header headers_;
  circular_regions regions_;
};

using cmalloc = circular<split_header, offsets::one>;
using cfmalloc = circular<fused_header, offsets::one>;
using cmmalloc = circular<split_header, offsets::per_multiprocessor>;
using cfmmalloc = circular<fused_header, offsets::per_multiprocessor>;

static_assert(freeing_allocator<cmalloc> && freeing_allocator<cfmalloc>);
static_assert(freeing_allocator<cmmalloc> && freeing_allocator<cfmmalloc>);

// ---- definitions -------------------------------------------------------------------------------

template <class Header, offsets Offsets>
QUARRY_DEVICE void circular<Header, Offsets>::initialise(std::uint64_t lane,
                                                         std::uint64_t lanes) const {
  const std::uint32_t heaps = last_offset_ + 1;
  const std::uint32_t part = granules_ / heaps;
  const initial_shape heap = shape(part);
  const std::uint64_t chunks = std::uint64_t{1}
                               << heap.levels;  // the chunks of the binary heap, and the last one
  for (std::uint64_t i = lane; i < chunks * heaps; i += lanes) {
    const auto which = static_cast<std::uint32_t>(i / chunks);
    const auto number = static_cast<std::uint32_t>(i % chunks) + 1;  // the paper counts from 1
    const std::uint32_t front = which * part;
    const std::uint32_t end = which + 1 == heaps ? granules_ : front + part;
    const std::uint32_t level = log2_floor(number);
    if (number == 1)
      simt::atomic_ref<std::uint32_t>(offsets_[static_cast<std::size_t>(which * stride)])
          .store(front, simt::relaxed);
    if (level < heap.levels) {
      const std::uint32_t root = heap.smallest << (heap.levels - 1);
      const std::uint32_t size = root >> level;
      const std::uint32_t at = front + level * root + (number - (std::uint32_t{1} << level)) * size;
      headers_.publish_free(at, at + size);
      regions_.count_free(at);
    } else if (const auto at = front + static_cast<std::uint32_t>(heap.granules()); at < end) {
      headers_.publish_free(at, end);
      regions_.count_free(at);
    }
  }
  if (lane == 0) headers_.write_end_marker(granules_);
}

template <class Header, offsets Offsets>
std::string circular<Header, Offsets>::check_invariants() const {
  if (headers_.is_free(granules_) || headers_.next(granules_) != 0)
    return "the end marker was overwritten";
  for (std::uint32_t at = 0; at != granules_; at = headers_.next(at)) {
    const std::uint32_t next = headers_.next(at);
    if (next <= at || next > granules_)
      return "the chunk at granule " + std::to_string(at) + " links to " + std::to_string(next);
  }
  for (std::uint32_t i = 0; i <= last_offset_; ++i)
    if (offsets_[std::size_t{i} * stride] > granules_) return "an offset lies outside the pool";
  return {};
}

template <class Header, offsets Offsets>
heap_statistics circular<Header, Offsets>::statistics() const {
  heap_statistics s;
  std::uint64_t blocks = 0;
  std::uint64_t live = 0;
  std::uint64_t run = 0;  // bytes of adjacent free chunks, which one malloc can merge
  std::uint64_t largest = 0;
  visit_chunks([&](std::uint64_t, std::uint64_t size, bool free) {
    run = free ? run + size : 0;
    largest = std::max(largest, run);
    if (free) return;
    ++blocks;
    live += size;
  });
  s.pool_bytes = std::uint64_t{granules_} << shift_;
  s.live_blocks = blocks;
  s.live_bytes = live;
  s.free_bytes = s.pool_bytes - live;
  s.largest_free = largest;
  return s;
}

}  // namespace quarry

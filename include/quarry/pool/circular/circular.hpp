// SPDX-License-Identifier: Apache-2.0
#pragma once
/// circular: a list of chunks that closes into a ring, searched from a shared offset. CMalloc and its
/// siblings of Vinkler and Havran (2014), sound.
///
///   pool     | used | free …… | used | free … | used |            granules of 32 bytes (more in huge pools)
///   headers  |*      *         *      *        *      |>|         one place per granule, outside; * a chunk's start
///                    offset                            end marker: used for ever, next is the front
///
/// malloc: walk from the offset. A free chunk is taken; if it is too small it absorbs the free chunks that
/// follow; if it still is, it is put back, longer than before. What is left over at its end becomes a free
/// chunk of its own. The offset moves on behind the block, so that the next request finds fresh chunks (next
/// fit). The paper keeps a small rest with the block (MAX_FRAG); that costs up to 1 % of a pool of 1000-byte
/// blocks and saves one store, so here it is off unless asked for.
/// free: absorb the chunk that follows if it is free, then put the block back.
/// Merging only forwards shatters a pool under churn as published; absorbing on malloc repairs it: every run
/// of free chunks is as good as one.
///
/// The four of the paper differ in two choices:
///                 one offset    an offset per multiprocessor
///   two words     CMalloc       CMMalloc
///   one word      CFMalloc      CFMMalloc
/// At first the pool is split as a binary heap, C(i) = R / 2^floor(log2 i): one chunk of R, two of R/2, four
/// of R/4 …, level after level, and what remains is the last chunk. With several offsets each has a heap of
/// its own, all linked into the one ring.
///
/// Invariants. A free place starts a true free chunk: only a chunk's owner puts, only take() takes. Chunks
/// that owners hold and free chunks tile the pool at all times; the ring from granule 0 visits exactly them.
/// Why stale offsets and headers do no harm: see circular_header.hpp.
/// Bound: a walk ends when it comes to the end marker for the second time, after 2^18 chunks, or where a search has found
/// no room. It passes by chunks that others are about to cut. Then the whole pool is searched (circular_regions.hpp), and
/// that waits for them: a request is refused only if no run of free chunks was long enough when the search came
/// by. The search leaves notes, so that the next refusal costs a glance at each of 1024 regions, until something is
/// freed there.
/// Progress: a take that fails was overtaken by another's success; then a search is repeated.

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

/// How many places a search may start from.
enum class offsets : std::uint8_t { one, per_multiprocessor };

/// KeptSixteenths: a rest of up to that many sixteenths of the request stays with the block.
template <class Header, offsets Offsets, std::uint32_t KeptSixteenths = 0>
class circular {
 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true, .min_pool = 256};

  circular() = default;
  circular(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        shift_(granule_shift(pool.size)),
        granules_(static_cast<std::uint32_t>(pool.size >> shift_)),
        last_offset_(offset_count(pool.size) - 1),
        offsets_(metadata.take<std::uint32_t>("offsets", offset_count(pool.size) * stride)),
        headers_(metadata, granules_),
        regions_(metadata, granules_) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const;

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n - 1 >= std::uint64_t{granules_} << shift_) return nullptr;
    const auto size = static_cast<std::uint32_t>((n - 1) >> shift_) + 1;
    std::uint32_t at = offset().load(simt::relaxed);
    for (std::int32_t visits = most_visits;;) {
      std::uint32_t next;
      if (headers_.take(at, next) && serve(at, size, next))
        return pool_ + (std::uint64_t{at} << shift_);
      visits -= next <= at ? most_visits / 2 : 1;  // the end marker comes dear
      at = next;
      if (visits > 0 && (visits % 64 != 0 || !regions_.hopeless(at, size))) continue;
      at = regions_.search(headers_, size);
      if (at == regions_.nowhere) return nullptr;
      visits = 1;
    }
  }

  QUARRY_DEVICE void free(void* block) const {
    if (block == nullptr) return;
    const auto at = static_cast<std::uint32_t>(
        static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_) >> shift_);
    const std::uint32_t next = headers_.end_of(at);
    headers_.put(at, absorb(next, next + 1));
    regions_.count_free(at);
  }

  /// What a live block holds.
  QUARRY_DEVICE std::uint64_t usable_size(void* block) const {
    const auto at = static_cast<std::uint32_t>(
        static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_) >> shift_);
    return std::uint64_t{headers_.end_of(at) - at} << shift_;
  }

  std::string check_invariants() const;
  heap_statistics statistics() const;
  /// Between kernels: visit(offset in bytes, size in bytes, is free) for every chunk, front to end.
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
  static constexpr std::uint64_t smallest_granule_shift = 5;
  static constexpr std::uint32_t stride = 32;       // offsets lie a cache line apart
  static constexpr std::uint32_t most_levels = 20;  // of all heaps together: a million chunks
  static constexpr std::int32_t most_visits =
      1 << 18;  // as many lanes may have cut chunks ahead of this one

  static std::uint32_t granule_shift(std::uint64_t bytes) {
    std::uint64_t shift = smallest_granule_shift;
    while (bytes >> shift > Header::max_granules) ++shift;
    return static_cast<std::uint32_t>(shift);
  }
  /// A power of two, as many as there may be multiprocessors, but a kibibyte for each at least.
  static std::uint32_t offset_count(std::uint64_t bytes) {
    if (Offsets == offsets::one) return 1;
    const std::uint64_t count = std::clamp<std::uint64_t>(bytes >> 10, 1, 128);
    return std::uint32_t{1} << log2_floor(count);
  }
  /// Where this lane's searches start. Found anew each time: that is cheaper than two registers.
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> offset() const {
    const std::uint32_t mine =
        Offsets == offsets::one ? 0 : (simt::sm_id() & last_offset_) * stride;
    return simt::atomic_ref<std::uint32_t>(offsets_[mine]);
  }

  /// Ours from `at` to `next`: a block, if that and the free chunks behind it are enough. Else it is put back.
  QUARRY_DEVICE bool serve(std::uint32_t at, std::uint32_t size, std::uint32_t& next) const {
    next = absorb(next, at + size);
    const bool enough = at + size <= next;
    if (enough) {
      offset().store(cut(at, size, next), simt::relaxed);
    } else {
      headers_.put(at, next);
    }
    return enough;
  }
  /// Free chunks from `next` on become part of ours, while it ends before `wanted`. Returns its end.
  QUARRY_DEVICE std::uint32_t absorb(std::uint32_t next, std::uint32_t wanted) const {
    for (std::uint32_t further; next < wanted && headers_.swallow(next, further); next = further) {
    }
    return next;
  }

  /// Ours from `at` to `next`: keeps `size` and puts the rest back if it is worth it. Returns the new end.
  QUARRY_DEVICE std::uint32_t cut(std::uint32_t at, std::uint32_t size, std::uint32_t next) const {
    if (next - at - size > size / 16 * KeptSixteenths) {
      headers_.put(at + size, next);
      regions_.count_rest(at, at + size);
      next = at + size;
    }
    headers_.keep(at, next);
    return next;
  }

  /// The binary heap over `granules`: how many levels, and the size of the smallest chunks, a power of two.
  /// Many lanes that take chunks at once leave a rest in each, as cars parked at random leave a quarter of a
  /// street empty; where chunks and requests are powers of two there is no rest.
  struct heap_shape {
    std::uint32_t levels;
    std::uint32_t smallest;
    QUARRY_DEVICE std::uint64_t granules() const {
      return std::uint64_t{levels} * smallest << levels >> 1;
    }
  };
  /// The one that covers the most.
  QUARRY_DEVICE heap_shape shape(std::uint32_t granules) const {
    const std::uint32_t most = most_levels - log2_ceil(last_offset_ + 1);
    heap_shape best{0, 1};
    for (std::uint32_t smallest = granules < 2048 ? 4 : 32, i = 0; i < 3; smallest *= 2, ++i) {
      heap_shape tried{1, smallest};
      while (tried.levels < most && heap_shape{tried.levels + 1, smallest}.granules() <= granules)
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

// ---- longer bodies ---------------------------------------------------------------------------------

template <class Header, offsets Offsets, std::uint32_t KeptSixteenths>
QUARRY_DEVICE void circular<Header, Offsets, KeptSixteenths>::initialise(
    std::uint64_t lane, std::uint64_t lanes) const {
  const std::uint32_t heaps = last_offset_ + 1;
  const std::uint32_t part = granules_ / heaps;
  const heap_shape heap = shape(part);
  const std::uint64_t chunks = std::uint64_t{1}
                               << heap.levels;  // those of the heap, and the last one
  for (std::uint64_t i = lane; i < chunks * heaps; i += lanes) {
    const auto which = static_cast<std::uint32_t>(i / chunks);
    const auto number = static_cast<std::uint32_t>(i % chunks) + 1;  // from 1, as in the paper
    const std::uint32_t front = which * part;
    const std::uint32_t end = which + 1 == heaps ? granules_ : front + part;
    const std::uint32_t level = log2_floor(number);
    if (number == 1)
      simt::atomic_ref<std::uint32_t>(offsets_[which * stride]).store(front, simt::relaxed);
    if (level < heap.levels) {
      const std::uint32_t root = heap.smallest << (heap.levels - 1);
      const std::uint32_t size = root >> level;
      const std::uint32_t at = front + level * root + (number - (std::uint32_t{1} << level)) * size;
      headers_.put(at, at + size);
      regions_.count_free(at);
    } else if (const auto at = front + static_cast<std::uint32_t>(heap.granules()); at < end) {
      headers_.put(at, end);
      regions_.count_free(at);
    }
  }
  if (lane == 0) headers_.close(granules_);
}

template <class Header, offsets Offsets, std::uint32_t KeptSixteenths>
std::string circular<Header, Offsets, KeptSixteenths>::check_invariants() const {
  if (headers_.is_free(granules_) || headers_.next(granules_) != 0)
    return "the end marker was changed";
  for (std::uint32_t at = 0; at != granules_; at = headers_.next(at)) {
    const std::uint32_t next = headers_.next(at);
    if (next <= at || next > granules_)
      return "the chunk at granule " + std::to_string(at) + " leads to " + std::to_string(next);
  }
  for (std::uint32_t i = 0; i <= last_offset_; ++i)
    if (offsets_[i * stride] > granules_) return "an offset lies outside the pool";
  return {};
}

template <class Header, offsets Offsets, std::uint32_t KeptSixteenths>
heap_statistics circular<Header, Offsets, KeptSixteenths>::statistics() const {
  heap_statistics s;
  std::uint64_t blocks = 0;
  std::uint64_t live = 0;
  std::uint64_t run = 0;  // of free chunks side by side: one malloc can have them all
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

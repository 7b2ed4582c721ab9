// SPDX-License-Identifier: Apache-2.0
#pragma once
/// coalesce: the requests of a warp become one. XMalloc's first stage (Huang et al. 2013, 5.1), over
/// any allocator.
///
///   lanes      56    56    40    120        ask together
///   upstream   one area of 312 bytes: a count, and a compartment for each lane (area_header.hpp)
///
/// malloc: a scan over the lanes that are there gives each its place, one lane asks the upstream for
/// the sum, each writes the header of its compartment. free: lanes whose blocks lie in one area find
/// each other; one of them subtracts all of them from the count, and gives the area back if that
/// leaves none. A warp costs the upstream one malloc and one free, and a full warp that frees
/// together costs the count one atomic.
///
/// Not coalesced: a lone lane, which has nothing to share, and requests above Largest. A compartment
/// that is live keeps its whole area, so up to 31 freed neighbours are withheld from others: at
/// Largest = 1024 that is at most 32 KiB for one live block, and a request of that size is worth a
/// call of its own. When the upstream refuses an area, each lane asks for itself: nothing is refused
/// that would fit.
///
/// Over an upstream without free there is nothing to count: no headers, blocks side by side, and
/// Largest is what 32 lanes can add up in 32 bits.
///
/// The headers lie in user memory, in front of each block; that is the algorithm. Whoever writes past
/// the end of a block may destroy the header of the next one.
///
/// Invariant: count(area) = compartments handed out and not freed. The lane that makes it 0, and only
/// that one, gives the area back.
/// Ordering: lanes that share an area leave malloc after a sync_warp, so the count is set before
/// anyone subtracts. Lanes that one subtracts for have met it in a sync_warp, and subtracting is
/// acq_rel: who gives the area back has seen the end of every lane's use of it.
/// Bound: that of the upstream, for two requests at most.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/layer/area_header.hpp>
#include <quarry/simt/reduce.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

template <allocator Upstream,
          std::uint32_t Largest = (Upstream::can.frees_one ? 1u << 10 : 1u << 26)>
class warp_aggregated {
  static constexpr bool has_headers = Upstream::can.frees_one;
  static constexpr std::uint32_t front = has_headers ? area_header::size : 0;
  static constexpr std::uint32_t own_header = has_headers ? compartment_header::size : 0;
  static_assert(Largest >= 1 && Largest <= 1u << 26, "32 lanes add up in 32 bits");

 public:
  static constexpr abilities can = [] {
    abilities c = Upstream::can;
    if (c.max_size != ~std::uint64_t{0}) c.max_size -= front + own_header;
    c.max_alignment = block_alignment;
    return c;
  }();

  warp_aggregated() = default;
  warp_aggregated(memory_range pool, carve& metadata) : upstream_(pool, metadata) {}

  template <class Backend>
  static void reserve(std::uint64_t size) requires requires {
    Upstream::template reserve<Backend>(size);
  }
  { Upstream::template reserve<Backend>(size); }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    upstream_.initialise(lane, lanes);
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    const simt::lane_mask here = simt::active_mask();
    const bool joins = n - 1 < Largest;
    const simt::lane_mask company = simt::ballot(here, joins);
    if (joins && (company & (company - 1)) != 0)
      if (void* const block = malloc_together(company, static_cast<std::uint32_t>(n))) return block;
    return malloc_alone(n);
  }

  QUARRY_DEVICE void free(void* block) const requires(can.frees_one) {
    if (block == nullptr) return;
    const auto header = compartment_header::of(block);
    std::byte* const area = static_cast<std::byte*>(block) - header.offset;
    if (header.tag == block_tag::compartment && !free_together(area)) return;
    upstream_.free(area);
  }

  /// Gives back what the upstream keeps for later, where it does.
  QUARRY_DEVICE void drain() const requires requires(const Upstream u) { u.drain(); }
  { upstream_.drain(); }

  QUARRY_DEVICE std::uint64_t resize(std::uint64_t from, std::uint64_t to) const requires
      resizable_allocator<Upstream> {
    return upstream_.resize(from, to);
  }

  std::string check_invariants() const { return upstream_.check_invariants(); }

  /// Bytes are the upstream's: an area is live while one of its compartments is. How many blocks that
  /// makes for the user is written in the areas only.
  heap_statistics statistics() const {
    heap_statistics s = upstream_.statistics();
    if (!has_headers) return s;
    s.live_blocks.reset();
    if (s.largest_free)
      *s.largest_free -= std::min<std::uint64_t>(*s.largest_free, front + own_header);
    return s;
  }

 private:
  /// `company`: the lanes that ask, at least two. nullptr: the upstream refused.
  QUARRY_DEVICE void* malloc_together(simt::lane_mask company, std::uint32_t n) const {
    const auto size =
        simt::scan_add(company, has_headers ? compartment_size(n) : align_up(n, block_alignment));
    const unsigned leader = simt::lowest_bit(company);
    std::byte* area = nullptr;
    if (simt::lane_id() == leader) {
      area = static_cast<std::byte*>(upstream_.malloc(front + size.total));
      if (has_headers && area != nullptr)
        area_header::count(area).store(simt::popc(company), simt::relaxed);
    }
    if (has_headers) simt::sync_warp(company);
    area = simt::shuffle(company, area, leader);
    if (area == nullptr) return nullptr;
    std::byte* const block = area + front + size.before + own_header;
    if (has_headers)
      compartment_header{front + size.before + own_header, block_tag::compartment}.put_before(
          block);
    return block;
  }

  QUARRY_DEVICE void* malloc_alone(std::size_t n) const {
    if (n == 0) return nullptr;
    if (!has_headers) return upstream_.malloc(n);
    auto* const area = static_cast<std::byte*>(
        upstream_.malloc(saturating_add(std::uint64_t{n}, front + own_header)));
    if (area == nullptr) return nullptr;
    std::byte* const block = area + front + own_header;
    compartment_header{front + own_header, block_tag::alone}.put_before(block);
    return block;
  }

  /// True for one lane, when no compartment of the area is left.
  QUARRY_DEVICE static bool free_together(std::byte* area) {
    const simt::lane_mask company = simt::match_any(simt::active_mask(), area);
    simt::sync_warp(company);
    if (simt::lane_id() != simt::lowest_bit(company)) return false;
    const std::uint32_t freed = simt::popc(company);
    return area_header::count(area).fetch_sub(freed, simt::acq_rel) == freed;
  }

  Upstream upstream_;
};

}  // namespace quarry

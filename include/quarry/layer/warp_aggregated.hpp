// SPDX-License-Identifier: Apache-2.0
#pragma once
/// warp_aggregated: merges the requests of a warp into one. XMalloc's first stage (Huang et al.
/// 2013, 5.1), over any allocator.
///
///   lanes      56    56    40    120        active lanes
///   upstream   one area of 312 bytes: a count, and a compartment for each lane (area_header.hpp)
///
/// malloc: a scan over the active lanes gives each lane its offset, the leader allocates the sum
/// from the upstream, and each lane writes the header of its compartment. free: the active lanes
/// whose blocks lie in one area form a group. Its leader subtracts their number from the count, and
/// frees the area to the upstream when the count becomes 0. A warp costs the upstream one malloc
/// and one free, and a full warp that frees together costs the count one atomic.
///
/// A lone lane and requests above Largest are not aggregated. A live compartment holds its whole
/// area, so up to 31 freed neighbours are not reusable. With Largest = 1024 this is at most 32 KiB
/// per live block, and a larger request amortises a call of its own. If the upstream cannot
/// allocate an area, each lane allocates its own block, so no request fails that would fit.
///
/// Over an upstream without free there are no headers and no counts. Blocks are adjacent, and
/// Largest is limited by the sum of 32 lanes in 32 bits.
///
/// The headers lie in user memory, before each block, as in the published algorithm. A write past
/// the end of a block may destroy the header of the next one.
///
/// Invariant: count(area) = number of its live compartments. Exactly one lane lowers the count to
/// 0, and this lane frees the area.
/// Ordering: the lanes of an area leave malloc after a sync_warp, so the count is set before any
/// lane subtracts. A sync_warp also precedes the subtraction of the leader, which is acq_rel: all
/// accesses to the area happen before the lane that frees it.
/// Progress: that of the upstream, for at most two calls.

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
  static constexpr std::uint32_t area_front = has_headers ? area_header::size : 0;
  static constexpr std::uint32_t block_header = has_headers ? compartment_header::size : 0;
  static_assert(Largest >= 1 && Largest <= 1u << 26, "the sum of 32 lanes fits in 32 bits");

 public:
  static constexpr abilities can = [] {
    abilities c = Upstream::can;
    if (c.max_size != ~std::uint64_t{0}) c.max_size -= area_front + block_header;
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
    const simt::lane_mask active = simt::active_mask();
    const bool joins = n - 1 < Largest;
    const simt::lane_mask peers = simt::ballot(active, joins);
    if (joins && (peers & (peers - 1)) != 0)
      if (void* const block = malloc_aggregated(peers, static_cast<std::uint32_t>(n))) return block;
    return malloc_single(n);
  }

  QUARRY_DEVICE void free(void* block) const requires(can.frees_one) {
    if (block == nullptr) return;
    const auto header = compartment_header::of(block);
    std::byte* const area = static_cast<std::byte*>(block) - header.offset;
    if (header.tag == block_tag::compartment && !release_compartments(area)) return;
    upstream_.free(area);
  }

  /// Frees the blocks that the upstream caches.
  QUARRY_DEVICE void drain() const requires requires(const Upstream u) { u.drain(); }
  { upstream_.drain(); }

  QUARRY_DEVICE std::uint64_t resize(std::uint64_t from, std::uint64_t to) const requires
      resizable_allocator<Upstream> {
    return upstream_.resize(from, to);
  }

  std::string check_invariants() const { return upstream_.check_invariants(); }

  /// Bytes are those of the upstream: an area is live while one of its compartments is. The number
  /// of live user blocks is known only in the areas, so live_blocks is empty.
  heap_statistics statistics() const {
    heap_statistics s = upstream_.statistics();
    if (!has_headers) return s;
    s.live_blocks.reset();
    if (s.largest_free)
      *s.largest_free -= std::min<std::uint64_t>(*s.largest_free, area_front + block_header);
    return s;
  }

 private:
  /// Allocates one area for `peers`, at least two lanes. Returns nullptr if the upstream failed.
  QUARRY_DEVICE void* malloc_aggregated(simt::lane_mask peers, std::uint32_t n) const {
    const auto size =
        simt::scan_add(peers, has_headers ? compartment_size(n) : align_up(n, block_alignment));
    const unsigned leader = simt::lowest_bit(peers);
    std::byte* area = nullptr;
    if (simt::lane_id() == leader) {
      area = static_cast<std::byte*>(upstream_.malloc(area_front + size.total));
      if (has_headers && area != nullptr)
        area_header::count(area).store(simt::popc(peers), simt::relaxed);
    }
    if (has_headers) simt::sync_warp(peers);
    area = simt::shuffle(peers, area, leader);
    if (area == nullptr) return nullptr;
    std::byte* const block = area + area_front + size.before + block_header;
    if (has_headers)
      compartment_header{area_front + size.before + block_header, block_tag::compartment}
          .write_before(block);
    return block;
  }

  QUARRY_DEVICE void* malloc_single(std::size_t n) const {
    if (n == 0) return nullptr;
    if (!has_headers) return upstream_.malloc(n);
    auto* const area = static_cast<std::byte*>(
        upstream_.malloc(saturating_add(std::uint64_t{n}, area_front + block_header)));
    if (area == nullptr) return nullptr;
    std::byte* const block = area + area_front + block_header;
    compartment_header{area_front + block_header, block_tag::single}.write_before(block);
    return block;
  }

  /// Releases the compartments of the active lanes that lie in `area`. Returns true for one lane if
  /// no compartment of the area is live any more.
  QUARRY_DEVICE static bool release_compartments(std::byte* area) {
    const simt::lane_mask peers = simt::match_any(simt::active_mask(), area);
    simt::sync_warp(peers);
    if (simt::lane_id() != simt::lowest_bit(peers)) return false;
    const std::uint32_t freed = simt::popc(peers);
    return area_header::count(area).fetch_sub(freed, simt::acq_rel) == freed;
  }

  Upstream upstream_;
};

}  // namespace quarry

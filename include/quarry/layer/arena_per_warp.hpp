// SPDX-License-Identifier: Apache-2.0
#pragma once
/// arena_per_warp: FDGMalloc with the interface of the other allocators, so that it can be explored
/// and compared: malloc(n) is alloc(n) in the arena of the calling warp.
///
///   open   | arena 0 | arena 1 | … |      one word each, indexed by the warp number modulo the
///          count
///
/// The first small malloc of a warp opens its arena, and no call ends it: there is no free, and the
/// heap is reset as a whole. Kernels that can end their arenas use warp_arena: its alloc takes one
/// round trip instead of three.
///
/// An arena may leave most of a superblock unused, so there is one arena per eight superblocks of
/// the pool, and warps may share one. Sharing is sound, since warp_arena does not require that the
/// lanes of an arena belong to one warp. If an arena cannot serve a request, the upstream does.
///
/// Ordering: a compare-exchange publishes an arena (release), and a load finds it (acquire).
/// Progress: that of warp_arena. A word of `open` is written once.

#include <quarry/core/allocator.hpp>
#include <quarry/layer/warp_arena.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

template <freeing_allocator Upstream, std::uint32_t Superblock = 32768, std::uint32_t Block = 16,
          std::uint32_t Entries = 126>
class arena_per_warp {
  using arenas = warp_arena<Upstream, Superblock, Block, Entries>;
  using warp = typename arenas::warp;
  static_assert(Upstream::can.frees_all, "a reset of the heap must free all arenas");

 public:
  static constexpr abilities can = [] {
    abilities c = Upstream::can;
    c.frees_one = c.reuses = false;
    return c;
  }();

  arena_per_warp() = default;
  arena_per_warp(memory_range pool, carve& metadata)
      : arenas_(pool, metadata),
        count_(arena_count(pool.size)),
        open_(metadata.take<std::uint64_t>("open", count_)) {}

  template <class Backend>
  static void reserve(std::uint64_t size) requires requires {
    arenas::template reserve<Backend>(size);
  }
  { arenas::template reserve<Backend>(size); }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    arenas_.initialise(lane, lanes);
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    const std::uint32_t number =
        simt::block_id() * ((simt::block_size() + 31) / 32) + simt::warp_id();
    std::uint64_t& slot = open_[number % count_];
    std::uint64_t arena = simt::atomic_ref<std::uint64_t>(slot).load(simt::acquire);
    if (arena == 0 && n <= max_opening_request) arena = open(arenas_, slot);
    if (arena != 0) {
      warp mine = arenas_.resume(reinterpret_cast<void*>(arena));
      if (void* const block = mine.alloc(n, arenas_.upstream())) return block;
    }
    return arenas_.malloc(n);
  }

  std::string check_invariants() const { return arenas_.check_invariants(); }

  /// The number of live blocks is unknown: superblocks count bytes only.
  heap_statistics statistics() const {
    heap_statistics s = arenas_.statistics();
    s.live_blocks.reset();
    return s;
  }

 private:
  /// Larger requests open no arena, since an arena could not serve them.
  static constexpr std::size_t max_opening_request = std::max<std::size_t>(Superblock, 1024);

  static std::uint32_t arena_count(std::uint64_t pool) {
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(pool / (8 * std::max<std::uint64_t>(Superblock, 1024)), 1, 4096));
  }

  /// Returns the arena of this slot, opened if it does not exist; 0 if memory is exhausted.
  QUARRY_DEVICE static std::uint64_t open(const arenas& from, std::uint64_t& slot) {
    warp mine = from.start();
    if (!mine) return 0;
    warp kept = mine;
    const auto fresh = reinterpret_cast<std::uint64_t>(kept.keep());
    const simt::lane_mask group = simt::match_any(simt::active_mask(), fresh);
    std::uint64_t found = 0;
    bool first = false;
    if (simt::lane_id() == simt::highest_bit(group))
      first = simt::atomic_ref<std::uint64_t>(slot).compare_exchange(found, fresh, simt::acq_rel);
    simt::sync_warp(group);
    if (simt::any(group, first)) return fresh;
    mine.end();
    return simt::shuffle(group, found, simt::highest_bit(group));
  }

  arenas arenas_;
  std::uint32_t count_;
  std::uint64_t* open_;
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// warp_arena: a heap per warp, freed as a whole. FDGMalloc (Widmer et al. 2013), over any
/// allocator that can free, and without the assumption that the lanes of a warp run in lockstep.
///
///   quarry::heap<quarry::warp_arena<quarry::cfmalloc>> heap(1_GiB);
///
///   __global__ void kernel(quarry::heap_ref<quarry::warp_arena<quarry::cfmalloc>> heap) {
///     auto warp = heap.allocator().start();      // an arena for the active lanes
///     while (…) {
///       void* p = warp.alloc(n);
///       …
///       warp.tidy_up();                          // ends a round: its blocks are freed
///     }
///     warp.end();                                // frees everything
///   }
///
/// start: the highest active lane is the worker. It allocates a superblock of 32 KiB from the
/// upstream, which also holds the header of the arena (warp_header.hpp). alloc: a scan gives each
/// lane its offset, and the worker adds the sum to the counter of the superblock: one atomic and
/// one round trip for all active lanes. The lanes that do not fit get a new superblock together. A
/// sum that exceeds a superblock is a block of the upstream, recorded in the same list. Superblock
/// = 0 is the paper's variant without superblocks: every sum is a block of the upstream.
///
/// Each lane that has called start() calls one of these functions, at any time:
///   tidy_up  Ends a round. The blocks of the round are freed when all lanes of the arena have
///            ended it. A lane that is ahead of others gets memory of the next round, which has
///            blocks of its own. If all lanes call it together, the first superblock is reused.
///   end      Leaves the arena. The last lane that leaves frees everything.
///   keep     Suspends the membership beyond the kernel. A lane of a later kernel resumes it with
///            the returned pointer: `auto warp = heap.allocator().resume(pointer)`.
/// The paper has a TotalCount, to which tidyUp resets ActiveCount. Here the next round is created
/// for the lanes that have not left the arena, so one count suffices.
///
/// Misuse: alloc without start or after end returns nullptr, as it does if start found no memory;
/// tidy_up and end then have no effect. A lane that never calls end keeps its arena open;
/// arenas_open() counts open arenas between kernels. Lanes that call start in divergent control
/// flow get different arenas.
///
/// malloc and free of the heap are those of the upstream: single blocks outside the arenas.
///
/// Ordering: relaxed inside a superblock, which was published before. sync_warp passes a superblock
/// from the worker to its group.
/// Progress: a lane waits only for the worker of its group. alloc calls the upstream at most twice,
/// for the group and for the lane. Loops repeat only after another lane has added a list or a
/// round.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/layer/warp_header.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

template <freeing_allocator Upstream, std::uint32_t Superblock = 32768, std::uint32_t Block = 16,
          std::uint32_t Entries = 126>
class warp_arena {
  /// The state shared by all arenas, in the metadata. Headers link to it.
  struct shared_state {
    Upstream upstream;
    std::uint64_t opened;
    std::uint64_t closed;
  };
  using header = warp_header<shared_state, Upstream, Superblock, Entries>;
  static constexpr std::uint32_t max_aggregated = 1u << 26;  // the sum of 32 lanes fits in 32 bits
  static_assert(is_power_of_two(Block) && Block >= block_alignment && sizeof(header) % Block == 0);
  static_assert(Superblock == 0 || Superblock >= sizeof(header) + Block);
  static_assert(Superblock <= max_aggregated && Superblock % Block == 0);

 public:
  static constexpr abilities can = Upstream::can;

  class warp;

  warp_arena() = default;
  warp_arena(memory_range pool, carve& metadata)
      : upstream_(pool, metadata), shared_(metadata.take<shared_state>("arenas", 1)) {}

  template <class Backend>
  static void reserve(std::uint64_t size) requires requires {
    Upstream::template reserve<Backend>(size);
  }
  { Upstream::template reserve<Backend>(size); }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    upstream_.initialise(lane, lanes);
    if (lane == 0) shared_->upstream = upstream_;
  }

  /// Returns a new arena for the active lanes.
  QUARRY_DEVICE warp start() const {
    header* const h = open(shared_);
    return warp(h, reinterpret_cast<std::byte*>(h));
  }
  /// Resumes a membership that keep() has suspended.
  QUARRY_DEVICE warp resume(void* kept) const { return warp(static_cast<header*>(kept)); }

  QUARRY_DEVICE const Upstream& upstream() const { return upstream_; }
  // Blocks outside the arenas.
  QUARRY_DEVICE void* malloc(std::size_t n) const { return upstream_.malloc(n); }
  QUARRY_DEVICE void free(void* p) const { upstream_.free(p); }

  std::string check_invariants() const {
    if (shared_->closed > shared_->opened)
      return std::to_string(shared_->closed) + " arenas were closed, but only " +
             std::to_string(shared_->opened) + " were opened";
    return upstream_.check_invariants();
  }

  /// The live_blocks of the first size class are the open arenas.
  heap_statistics statistics() const {
    heap_statistics s = upstream_.statistics();
    s.classes.insert(s.classes.begin(), {Superblock, shared_->opened - shared_->closed, 0});
    return s;
  }

 private:
  QUARRY_DEVICE static std::uint32_t rounded(std::uint64_t n) {
    return align_up(static_cast<std::uint32_t>(n), Block);
  }

  // Slow paths. A kernel needs the registers of its deepest call chain, so functions with many live
  // values across a call are inlined. All arguments are plain values, which need no stack.
  QUARRY_DEVICE_NOINLINE static header* open(shared_state* at);
  QUARRY_DEVICE static std::byte* allocate_slow(header* h, std::uint32_t size,
                                                simt::lane_mask group, const Upstream& from);
  QUARRY_DEVICE_NOINLINE static header* next_round(header* h);
  QUARRY_DEVICE static void leave(header* h);
  QUARRY_DEVICE static std::uint64_t advance(header* h, std::uint64_t seen, std::uint32_t lanes);

  Upstream upstream_;
  shared_state* shared_;
};

/// Returns the number of open arenas: `arenas_open(heap.statistics())`.
inline std::uint64_t arenas_open(const heap_statistics& s) { return s.classes.at(0).live_blocks; }

/// The handle of a lane to its arena: two pointers. A copy denotes the same membership.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
class warp_arena<U, Superblock, Block, Entries>::warp {
 public:
  QUARRY_DEVICE warp() : warp(nullptr) {}  // no arena

  /// Returns n bytes aligned to Block; nullptr if n is 0, if memory is exhausted, or without an
  /// arena.
  QUARRY_DEVICE void* alloc(std::size_t n) {
    return header_ == nullptr ? nullptr : alloc(n, header_->shared().upstream);
  }
  /// Does the same with the given handle of the upstream. Requires an arena.
  QUARRY_DEVICE void* alloc(std::size_t n, const U& from) {
    if (superblock_ == nullptr) superblock_ = header_->current();
    const bool exceeds_aggregation = n > max_aggregated;
    const auto key = reinterpret_cast<std::uint64_t>(header_) | std::uint64_t{exceeds_aggregation};
    simt::lane_mask group = simt::match_any(simt::active_mask(), key);
    if (!exceeds_aggregation) {
      const std::uint32_t size = rounded(n);
      const auto sum = simt::scan_add(group, size);
      std::uint32_t used = Superblock;
      if (simt::lane_id() == simt::highest_bit(group)) used = reserve_bytes(sum.total);
      simt::sync_warp(group);
      used = simt::shuffle(group, used, simt::highest_bit(group)) + sum.before;
      superblock_ = simt::shuffle(group, superblock_, simt::highest_bit(group));
      const bool served = used + size <= Superblock;
      group = simt::ballot(group, !served);
      if (served) return n == 0 ? nullptr : superblock_ + used;
    }
    superblock_ = nullptr;
    return exceeds_aggregation ? header_->allocate(n, from)
                               : allocate_slow(header_, rounded(n), group, from);
  }

  /// Ends the round for the calling lane. Its blocks are freed when all lanes of the arena have
  /// done so.
  QUARRY_DEVICE void tidy_up() {
    if (header_ != nullptr) *this = warp(next_round(header_));
  }
  /// Leaves the arena.
  QUARRY_DEVICE void end() {
    leave(header_);
    *this = warp();
  }
  /// Suspends the membership until resume().
  QUARRY_DEVICE void* keep() {
    void* const kept = header_;
    *this = warp();
    return kept;
  }
  QUARRY_DEVICE explicit operator bool() const { return header_ != nullptr; }

 private:
  friend class warp_arena;
  QUARRY_DEVICE explicit warp(header* h, std::byte* superblock = nullptr)
      : header_(h), superblock_(superblock) {}

  /// Reserves `size` bytes of the superblock. Returns their offset, or Superblock if they do not
  /// fit.
  QUARRY_DEVICE std::uint32_t reserve_bytes(std::uint32_t size) const {
    if constexpr (Superblock != 0) {
      if (size <= header::room) {
        const std::uint64_t used = header::counter(superblock_).fetch_add(size, simt::relaxed);
        if (used < Superblock) return static_cast<std::uint32_t>(used);
      }
    }
    return Superblock;
  }

  header* header_;
  std::byte* superblock_;  // the superblock to try first, not freed; nullptr: the current one
};

// ---- slow paths --------------------------------------------------------------------------------

template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE auto warp_arena<U, Superblock, Block, Entries>::open(shared_state* at) -> header* {
  const simt::lane_mask group = simt::active_mask();
  header* h = nullptr;
  if (simt::lane_id() == simt::highest_bit(group)) {
    h = header::create(*at, simt::popc(group));
    if (h != nullptr) simt::atomic_ref<std::uint64_t>(at->opened).add(1, simt::relaxed);
  }
  simt::sync_warp(group);
  return simt::shuffle(group, h, simt::highest_bit(group));
}

/// Serves the lanes of a group that do not fit in the superblock: its highest lanes, since offsets
/// grow with the lanes. Allocates for all of them, or for each lane if that fails. `size` is
/// rounded; a lane with size 0 gets nullptr.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE std::byte* warp_arena<U, Superblock, Block, Entries>::allocate_slow(
    header* h, std::uint32_t size, simt::lane_mask group, const U& from) {
  const std::uint32_t before = simt::scan_add(group, size).before;
  std::byte* block = nullptr;
  if (simt::lane_id() == simt::highest_bit(group))
    block = header::allocate_group(h, before + size, from);
  simt::sync_warp(group);
  block = simt::shuffle(group, block, simt::highest_bit(group));
  if (size == 0) return nullptr;
  return block != nullptr ? block + before : h->allocate(size, from);
}

/// Moves the active lanes of this round to the next round. Returns the header of their round.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE auto warp_arena<U, Superblock, Block, Entries>::next_round(header* h) -> header* {
  const simt::lane_mask group = simt::match_any(simt::active_mask(), h);
  const std::uint32_t lanes = simt::popc(group);
  const unsigned worker = simt::highest_bit(group);
  simt::sync_warp(group);
  std::uint64_t seen = 0;
  if (simt::lane_id() == worker) {
    seen = h->state().load(simt::acquire);
    if (seen != lanes) seen = advance(h, seen, lanes);
  }
  simt::sync_warp(group);
  seen = simt::shuffle(group, seen, worker);
  if (seen == 0) return h;                // no memory for a new round: this one continues
  const bool all_here = seen == lanes;    // and no lane is ahead
  if (round_state::lanes(seen) == lanes)  // no other lane is in this round
    h->free_blocks(group);
  if (simt::lane_id() == worker) {
    if (all_here)
      h->reuse_first();
    else if (round_state::lanes(seen) == lanes)
      h->shared().upstream.free(h);
  }
  simt::sync_warp(group);
  return all_here ? h : reinterpret_cast<header*>(round_state::next(seen));
}

/// Moves `lanes` lanes to the next round, which is created if it does not exist. Returns the
/// previous state of this round, with a link to the next one; 0 if it could not be created.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE std::uint64_t warp_arena<U, Superblock, Block, Entries>::advance(
    header* h, std::uint64_t seen, std::uint32_t lanes) {
  header* fresh = nullptr;
  while (round_state::next(seen) == 0) {
    const std::uint32_t here = round_state::lanes(seen);
    if (fresh == nullptr) fresh = header::create(h->shared(), here);
    if (fresh == nullptr) return 0;
    fresh->state().store(round_state::pack(nullptr, here), simt::relaxed);
    const std::uint64_t without_group = round_state::pack(fresh, here - lanes);
    if (h->state().compare_exchange(seen, without_group, simt::acq_rel))
      return round_state::pack(fresh, here);
  }
  if (fresh != nullptr) h->shared().upstream.free(fresh);  // another lane has created it
  return h->state().fetch_sub(lanes, simt::acq_rel);
}

/// Removes the active lanes from this round and all later ones.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE void warp_arena<U, Superblock, Block, Entries>::leave(header* h) {
  while (h != nullptr) {
    const simt::lane_mask group = simt::match_any(simt::active_mask(), h);
    const unsigned worker = simt::highest_bit(group);
    simt::sync_warp(group);
    std::uint64_t seen = 0;
    if (simt::lane_id() == worker) seen = h->state().fetch_sub(simt::popc(group), simt::acq_rel);
    simt::sync_warp(group);
    seen = simt::shuffle(group, seen, worker);
    if (round_state::lanes(seen) != simt::popc(group)) {
      h = reinterpret_cast<header*>(round_state::next(seen));
      continue;
    }
    h->free_blocks(group);
    const std::uint64_t next = round_state::next(h->state().load(simt::relaxed));
    simt::sync_warp(group);
    if (simt::lane_id() == simt::highest_bit(group)) {
      shared_state& at = h->shared();
      if (next == 0) simt::atomic_ref<std::uint64_t>(at.closed).add(1, simt::relaxed);
      at.upstream.free(h);
    }
    h = reinterpret_cast<header*>(next);
  }
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// warp_arena: a heap for each warp, freed as a whole. FDGMalloc (Widmer et al. 2013), over any
/// allocator that frees, and without the assumption that the lanes of a warp run in step.
///
///   quarry::heap<quarry::warp_arena<quarry::cfmalloc>> heap(1_GiB);
///
///   __global__ void kernel(quarry::heap_ref<quarry::warp_arena<quarry::cfmalloc>> heap) {
///     auto warp = heap.allocator().start();      // the lanes that want memory
///     while (…) {
///       void* p = warp.alloc(n);
///       …
///       warp.tidy_up();                          // what was got so far is freed; go on
///     }
///     warp.end();                                // everything is freed
///   }
///
/// start: the lanes that are there vote for a worker, the highest one; it takes a superblock of 32 KiB
/// from the upstream, with the warp's header in it (warp_header.hpp). alloc: a scan gives each lane
/// its place, the worker adds the sum to the superblock's counter: one atomic for all of them, one
/// round trip. Lanes that no longer fit get a new superblock together; a sum that exceeds a
/// superblock is a block of the upstream and noted in the same list. Superblock = 0 is the paper's
/// variant without superblocks: every sum is a block of the upstream.
///
/// Three ways to part, for every lane that started, each at its own time:
///   tidy_up  ends a round. What the lanes got in it is freed once all of them have said so. A lane
///            that is ahead of others gets memory of the next round, which has blocks of its own.
///            When all come together, the first superblock is simply used again.
///   end      leaves for good. The last one's end frees everything.
///   keep     stays a member beyond the kernel. It returns a pointer, with which a lane of a later
///            kernel goes on and ends: `auto warp = heap.allocator().resume(pointer)`.
/// The paper has TotalCount, and tidyUp sets ActiveCount back to it. Here the next round is made for
/// the lanes that have not left for good; one count is enough.
///
/// Misuse has an answer. alloc without start or after end gives nullptr, as it does when start found
/// no memory; tidy_up and end do nothing then. A lane that never ends keeps its arena open, and
/// `arenas_open` counts those between kernels. Lanes that call start at different places or times
/// have different arenas.
///
/// The heap's own malloc and free are the upstream's: single blocks beside the arenas.
///
/// Progress: a lane waits for nobody but its group's worker. alloc asks the upstream at most twice,
/// for the group and for itself; loops repeat only when another lane brought a list or went ahead.
/// Ordering: relaxed inside a superblock, which was published before; sync_warp hands it on from the
/// worker to the group.

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
  /// What headers lead back to; in the metadata.
  struct home {
    Upstream upstream;
    std::uint64_t opened;
    std::uint64_t closed;
  };
  using header = warp_header<home, Upstream, Superblock, Entries>;
  static constexpr std::uint32_t most_together = 1u << 26;  // 32 of them add up in 32 bits
  static_assert(is_power_of_two(Block) && Block >= block_alignment && sizeof(header) % Block == 0);
  static_assert(Superblock == 0 || Superblock >= sizeof(header) + Block);
  static_assert(Superblock <= most_together && Superblock % Block == 0);

 public:
  static constexpr abilities can = Upstream::can;

  class warp;

  warp_arena() = default;
  warp_arena(memory_range pool, carve& metadata)
      : upstream_(pool, metadata), home_(metadata.take<home>("arenas", 1)) {}

  template <class Backend>
  static void reserve(std::uint64_t size) requires requires {
    Upstream::template reserve<Backend>(size);
  }
  { Upstream::template reserve<Backend>(size); }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    upstream_.initialise(lane, lanes);
    if (lane == 0) home_->upstream = upstream_;
  }

  /// An arena for the lanes that call this together.
  QUARRY_DEVICE warp start() const {
    header* const h = open(home_);
    return warp(h, reinterpret_cast<std::byte*>(h));
  }
  /// Goes on with what keep() returned.
  QUARRY_DEVICE warp resume(void* kept) const { return warp(static_cast<header*>(kept)); }

  QUARRY_DEVICE const Upstream& upstream() const { return upstream_; }
  // Blocks that are no arena's.
  QUARRY_DEVICE void* malloc(std::size_t n) const { return upstream_.malloc(n); }
  QUARRY_DEVICE void free(void* p) const { upstream_.free(p); }

  std::string check_invariants() const {
    if (home_->closed > home_->opened)
      return std::to_string(home_->closed) + " arenas were closed, but only " +
             std::to_string(home_->opened) + " opened";
    return upstream_.check_invariants();
  }

  /// The first class stands for the arenas: as many as its live_blocks are open.
  heap_statistics statistics() const {
    heap_statistics s = upstream_.statistics();
    s.classes.insert(s.classes.begin(), {Superblock, home_->opened - home_->closed, 0});
    return s;
  }

 private:
  QUARRY_DEVICE static std::uint32_t rounded(std::uint64_t n) {
    return align_up(static_cast<std::uint32_t>(n), Block);
  }

  // Off the fast path. A kernel needs the registers of its longest chain of calls: inlined is what has much to keep
  // across a call. Plain values only, so that nothing is put on the stack.
  QUARRY_DEVICE QUARRY_NOINLINE static header* open(home* at);
  QUARRY_DEVICE static std::byte* take_late(header* h, std::uint32_t size, simt::lane_mask group,
                                            const Upstream& from);
  QUARRY_DEVICE QUARRY_NOINLINE static header* next_round(header* h);
  QUARRY_DEVICE static void leave(header* h);
  QUARRY_DEVICE static std::uint64_t go_ahead(header* h, std::uint64_t seen, std::uint32_t lanes);

  Upstream upstream_;
  home* home_;
};

/// Arenas that some lane has not ended: `arenas_open(heap.statistics())`.
inline std::uint64_t arenas_open(const heap_statistics& s) { return s.classes.at(0).live_blocks; }

/// What a lane holds of its arena: two pointers. A copy is the same membership.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
class warp_arena<U, Superblock, Block, Entries>::warp {
 public:
  QUARRY_DEVICE warp() : warp(nullptr) {}  // no arena

  /// n bytes, aligned to Block; nullptr for n = 0, when nothing fits, and without an arena.
  QUARRY_DEVICE void* alloc(std::size_t n) {
    return header_ == nullptr ? nullptr : alloc(n, header_->home().upstream);
  }
  /// The same where there is an arena, and another handle of the upstream at hand.
  QUARRY_DEVICE void* alloc(std::size_t n, const U& from) {
    if (superblock_ == nullptr) superblock_ = header_->current();
    const bool wide = n > most_together;
    const auto key = reinterpret_cast<std::uint64_t>(header_) | std::uint64_t{wide};
    simt::lane_mask group = simt::match_any(simt::active_mask(), key);
    if (!wide) {
      const std::uint32_t size = rounded(n);
      const auto sum = simt::scan_add(group, size);
      std::uint32_t used = Superblock;
      if (simt::lane_id() == simt::highest_bit(group)) used = add(sum.total);
      simt::sync_warp(group);
      used = simt::shuffle(group, used, simt::highest_bit(group)) + sum.before;
      superblock_ = simt::shuffle(group, superblock_, simt::highest_bit(group));
      const bool served = used + size <= Superblock;
      group = simt::ballot(group, !served);
      if (served) return n == 0 ? nullptr : superblock_ + used;
    }
    superblock_ = nullptr;
    return wide ? header_->take(n, from) : take_late(header_, rounded(n), group, from);
  }

  /// What this lane got is freed when all lanes of the arena have said so.
  QUARRY_DEVICE void tidy_up() {
    if (header_ != nullptr) *this = warp(next_round(header_));
  }
  /// The lane is done with the arena.
  QUARRY_DEVICE void end() {
    leave(header_);
    *this = warp();
  }
  /// The lane is done in this kernel; see resume.
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

  /// Takes `size` bytes of the superblock. Returns where; Superblock: there is no room.
  QUARRY_DEVICE std::uint32_t add(std::uint32_t size) const {
    if constexpr (Superblock != 0) {
      if (size <= header::room) {
        const std::uint64_t used = header::counter(superblock_).fetch_add(size, simt::relaxed);
        if (used < Superblock) return static_cast<std::uint32_t>(used);
      }
    }
    return Superblock;
  }

  header* header_;
  std::byte*
      superblock_;  // where this lane would try first: full, perhaps, but not freed; nullptr: the current one
};

// ---- slow paths ----------------------------------------------------------------------------------

template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE auto warp_arena<U, Superblock, Block, Entries>::open(home* at) -> header* {
  const simt::lane_mask group = simt::active_mask();
  header* h = nullptr;
  if (simt::lane_id() == simt::highest_bit(group)) {
    h = header::make(*at, simt::popc(group));
    if (h != nullptr) simt::atomic_ref<std::uint64_t>(at->opened).add(1, simt::relaxed);
  }
  simt::sync_warp(group);
  return simt::shuffle(group, h, simt::highest_bit(group));
}

/// For the lanes of a group that found no room in the superblock: the highest ones, because places grow with
/// the lanes. Together, if that works; else each for itself. `size` is rounded; 0 gets nothing.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE std::byte* warp_arena<U, Superblock, Block, Entries>::take_late(header* h,
                                                                              std::uint32_t size,
                                                                              simt::lane_mask group,
                                                                              const U& from) {
  const std::uint32_t before = simt::scan_add(group, size).before;
  std::byte* block = nullptr;
  if (simt::lane_id() == simt::highest_bit(group)) block = header::provide(h, before + size, from);
  simt::sync_warp(group);
  block = simt::shuffle(group, block, simt::highest_bit(group));
  if (size == 0) return nullptr;
  return block != nullptr ? block + before : h->take(size, from);
}

/// Lanes go from this round to the next.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE auto warp_arena<U, Superblock, Block, Entries>::next_round(header* h) -> header* {
  const simt::lane_mask group = simt::match_any(simt::active_mask(), h);
  const std::uint32_t lanes = simt::popc(group);
  const unsigned worker = simt::highest_bit(group);
  simt::sync_warp(group);
  std::uint64_t seen = 0;
  if (simt::lane_id() == worker) {
    seen = h->state().load(simt::acquire);
    if (seen != lanes) seen = go_ahead(h, seen, lanes);
  }
  simt::sync_warp(group);
  seen = simt::shuffle(group, seen, worker);
  if (seen == 0) return h;                // no memory for a round: this one goes on
  const bool all_here = seen == lanes;    // and nobody is ahead
  if (round_state::lanes(seen) == lanes)  // nobody else is left
    h->free_blocks(group);
  if (simt::lane_id() == worker) {
    if (all_here)
      h->start_again();
    else if (round_state::lanes(seen) == lanes)
      h->home().upstream.free(h);
  }
  simt::sync_warp(group);
  return all_here ? h : reinterpret_cast<header*>(round_state::next(seen));
}

/// So many lanes leave for the next round, which is made if it is not there. Returns the state of
/// this one before, with the next in it; 0 where that could not be made.
template <freeing_allocator U, std::uint32_t Superblock, std::uint32_t Block, std::uint32_t Entries>
QUARRY_DEVICE std::uint64_t warp_arena<U, Superblock, Block, Entries>::go_ahead(
    header* h, std::uint64_t seen, std::uint32_t lanes) {
  header* fresh = nullptr;
  while (round_state::next(seen) == 0) {
    const std::uint32_t here = round_state::lanes(seen);
    if (fresh == nullptr) fresh = header::make(h->home(), here);
    if (fresh == nullptr) return 0;
    fresh->state().store(round_state::pack(nullptr, here), simt::relaxed);
    const std::uint64_t without_us = round_state::pack(fresh, here - lanes);
    if (h->state().compare_exchange(seen, without_us, simt::acq_rel))
      return round_state::pack(fresh, here);
  }
  if (fresh != nullptr) h->home().upstream.free(fresh);  // somebody was faster
  return h->state().fetch_sub(lanes, simt::acq_rel);
}

/// Lanes leave this round, and those after it, for good.
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
      home& at = h->home();
      if (next == 0) simt::atomic_ref<std::uint64_t>(at.closed).add(1, simt::relaxed);
      at.upstream.free(h);
    }
    h = reinterpret_cast<header*>(next);
  }
}

}  // namespace quarry

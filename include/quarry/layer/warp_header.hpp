// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The memory of one round of a warp arena (warp_arena.hpp), and the number of lanes that use it.
///
///   first block   | used | current | newest | state | shared | list of 126 entries | room …… |
///   superblock    | used | - | room ……………………………………………………………………………………………………… |
///   further list  | older | count | 126 entries |                at the front of a block
///
///   used      The allocated bytes of this block, including the header. A superblock is full if
///             `used` exceeds its size.
///   current   The superblock from which requests are served. Bit 0 is set while a lane allocates
///             the next superblock.
///   newest    The list that takes the next entry. Entries are blocks of the upstream: superblocks,
///             and sums of requests that exceed one. If a list is full, the next block is enlarged
///             by a new list, which links to the older one. A list therefore costs no call of the
///             upstream, and failed calls consume no memory. The entry of a failed allocation stays
///             0.
///   state     next << 8 | lanes: the number of lanes that have not left this round, and a link to
///             the next round once a lane has gone ahead. `next` is a multiple of 16 below 2^56, so
///             12 bits remain for `lanes`. Both fields share a word: the next round is created for
///             exactly the lanes that have not left the arena by then.
///
/// The first block is header and superblock: an arena without a second superblock costs the
/// upstream one malloc and one free. If the upstream cannot allocate a superblock, a block for the
/// header suffices. Entries are in an array instead of a chain through the blocks, so the lanes of
/// a warp free them in parallel.
///
/// Refill: warps that share an arena find its superblock full at the same time. The lane that sets
/// bit 0 of `current` allocates the next superblock. The others poll `current`, so that they do not
/// allocate a superblock each, and allocate after `max_polls` polls.
///
/// Ordering: a superblock, a list or a round is complete before it is published (release), and
/// lanes that find it acquire. Leaving is acq_rel: the accesses of all other lanes happen before
/// those of the last lane, so it may read entries with relaxed loads.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry {

template <std::uint32_t Entries>
struct superblock_list {
  std::uint64_t older;
  std::uint64_t count;  // 64 bits, since failed calls increment it without bound
  std::uint64_t entry[Entries];
};

/// The state of a round: the number of its lanes, and a link to the next round.
struct round_state {
  static constexpr std::uint32_t max_lanes = (1u << 12) - 1;

  QUARRY_DEVICE static std::uint64_t pack(const void* next, std::uint64_t lanes) {
    return reinterpret_cast<std::uint64_t>(next) << 8 | lanes;
  }
  QUARRY_DEVICE static std::uint32_t lanes(std::uint64_t word) {
    return static_cast<std::uint32_t>(word) & max_lanes;
  }
  QUARRY_DEVICE static std::uint64_t next(std::uint64_t word) { return word >> 12 << 4; }
};

/// Shared: the state of all arenas; its member `upstream` is a copy of the upstream's handle.
/// Functions that allocate take a handle from the kernel's arguments instead, which needs no
/// registers.
template <class Shared, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
class alignas(16) warp_header {
 public:
  using list = superblock_list<Entries>;
  static constexpr std::uint32_t superblock_header = 16;
  static constexpr std::uint32_t room =
      Superblock > superblock_header ? Superblock - superblock_header : 0;

  /// Creates a round for `lanes` lanes. Returns nullptr if the upstream failed.
  QUARRY_DEVICE static warp_header* create(Shared& shared, std::uint32_t lanes);

  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> state() { return word(state_); }
  /// Returns the superblock that serves requests.
  QUARRY_DEVICE std::byte* current() {
    return reinterpret_cast<std::byte*>(word(current_).load(simt::acquire) & ~refilling);
  }
  /// The counter of any superblock, including the first one.
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> counter(std::byte* superblock) {
    return word(*reinterpret_cast<std::uint64_t*>(superblock));
  }
  QUARRY_DEVICE Shared& shared() const { return *shared_; }

  /// Allocates `size` bytes for a group of lanes. Returns nullptr if the upstream failed.
  QUARRY_DEVICE static std::byte* allocate_group(warp_header* h, std::uint32_t size,
                                                 const Upstream& from);
  /// Allocates a block from the upstream and records it in a list. Returns nullptr if it failed.
  QUARRY_DEVICE std::byte* allocate(std::uint64_t size, const Upstream& from);

  /// Frees all recorded blocks. Collective over `group`. Requires that no other lane is in the
  /// round.
  QUARRY_DEVICE void free_blocks(simt::lane_mask group);
  /// Resets the round to its first superblock. Called by one lane, after free_blocks().
  QUARRY_DEVICE void reuse_first();

 private:
  static constexpr std::uint64_t refilling = 1;
  static constexpr unsigned max_polls = 1000;

  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  /// Claims an entry of a list. Returns nullptr if the list is full.
  QUARRY_DEVICE static std::uint64_t* claim(list* l) {
    const std::uint64_t index = word(l->count).fetch_add(1, simt::relaxed);
    return index < Entries ? &l->entry[index] : nullptr;
  }
  /// Allocates from the current superblock. Returns nullptr if it has no room.
  QUARRY_DEVICE std::byte* serve(std::uint32_t size) {
    std::byte* const superblock = current();
    const std::uint64_t first = counter(superblock).fetch_add(size, simt::relaxed);
    return first + size <= Superblock ? superblock + first : nullptr;
  }
  /// Returns whether the calling lane shall allocate the next superblock. Returns false after
  /// another lane has done so, and after `max_polls` polls.
  QUARRY_DEVICE bool claim_refill() {
    if ((word(current_).fetch_or(refilling, simt::relaxed) & refilling) == 0) return true;
    for (unsigned i = 0; i < max_polls; ++i) {
      if ((word(current_).load(simt::relaxed) & refilling) == 0) break;
      simt::spin();
    }
    return false;
  }
  QUARRY_DEVICE list* newest() {
    return reinterpret_cast<list*>(word(newest_).load(simt::acquire));
  }

  std::uint64_t used_;  // must be first: the header of a superblock is this word
  std::uint64_t current_;
  std::uint64_t newest_;
  std::uint64_t state_;
  Shared* shared_;
  std::uint64_t used_at_first_;
  list first_;
};

// ---- definitions -------------------------------------------------------------------------------

template <class Shared, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE warp_header<Shared, Upstream, Superblock, Entries>*
warp_header<Shared, Upstream, Superblock, Entries>::create(Shared& shared, std::uint32_t lanes) {
  void* block = nullptr;
  if constexpr (Superblock != 0) block = shared.upstream.malloc(Superblock);
  const bool is_superblock = block != nullptr;
  if (!is_superblock) block = shared.upstream.malloc(sizeof(warp_header));
  if (block == nullptr) return nullptr;
  auto* const h = static_cast<warp_header*>(block);
  h->shared_ = &shared;
  h->used_at_first_ = is_superblock ? sizeof(warp_header) : Superblock;
  word(h->first_.older).store(0, simt::relaxed);
  h->reuse_first();
  h->state().store(round_state::pack(nullptr, lanes), simt::relaxed);
  return h;
}

template <class Shared, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE void warp_header<Shared, Upstream, Superblock, Entries>::reuse_first() {
  word(used_).store(used_at_first_, simt::relaxed);
  word(current_).store(reinterpret_cast<std::uint64_t>(this), simt::relaxed);
  word(newest_).store(reinterpret_cast<std::uint64_t>(&first_), simt::relaxed);
  word(first_.count).store(0, simt::relaxed);
}

template <class Shared, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE std::byte* warp_header<Shared, Upstream, Superblock, Entries>::allocate_group(
    warp_header* h, std::uint32_t size, const Upstream& from) {
  if (size > room) return h->allocate(size, from);
  if (std::byte* const block = h->serve(size)) return block;  // another lane has added a superblock
  if (!h->claim_refill())
    if (std::byte* const block = h->serve(size)) return block;
  std::byte* const fresh = h->allocate(Superblock, from);
  if (fresh == nullptr) {
    word(h->current_).bit_and(~refilling, simt::relaxed);
    return nullptr;
  }
  counter(fresh).store(superblock_header + size, simt::relaxed);
  word(h->current_).store(reinterpret_cast<std::uint64_t>(fresh), simt::release);
  return fresh + superblock_header;
}

template <class Shared, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE std::byte* warp_header<Shared, Upstream, Superblock, Entries>::allocate(
    std::uint64_t size, const Upstream& from) {
  std::uint64_t* const entry = claim(newest());
  const bool full = entry == nullptr;
  const auto block = reinterpret_cast<std::uint64_t>(
      from.malloc(full ? saturating_add(size, sizeof(list)) : size));
  if (!full) word(*entry).store(block, simt::relaxed);
  if (!full || block == 0) return reinterpret_cast<std::byte*>(block);
  // The block begins with a list, unless another lane has added a list in the meantime.
  auto* const fresh = reinterpret_cast<list*>(block);
  for (std::uint64_t current_block = word(newest_).load(simt::acquire);;) {
    if (std::uint64_t* const other = claim(reinterpret_cast<list*>(current_block))) {
      word(*other).store(block, simt::relaxed);
      break;
    }
    word(fresh->older).store(current_block, simt::relaxed);
    word(fresh->count).store(0, simt::relaxed);
    if (word(newest_).compare_exchange(current_block, block, simt::acq_rel)) break;
  }
  return reinterpret_cast<std::byte*>(fresh + 1);
}

template <class Shared, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE void warp_header<Shared, Upstream, Superblock, Entries>::free_blocks(
    simt::lane_mask group) {
  for (;;) {
    for (std::uint32_t i = simt::popc(group & simt::lanes_below());
         i < Entries && i < word(newest()->count).load(simt::relaxed); i += simt::popc(group))
      shared().upstream.free(reinterpret_cast<void*>(word(newest()->entry[i]).load(simt::relaxed)));
    const std::uint64_t older = word(newest()->older).load(simt::relaxed);
    simt::sync_warp(group);  // all lanes have read the list
    if (older == 0) return;
    if (simt::lane_id() == simt::highest_bit(group)) {
      void* const empty = newest();
      word(newest_).store(older, simt::relaxed);
      shared().upstream.free(empty);
    }
    simt::sync_warp(group);
  }
}

}  // namespace quarry

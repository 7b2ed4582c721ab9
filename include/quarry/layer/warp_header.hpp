// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The memory of one round of a warp's arena (warp_arena.hpp), and who may still use it.
///
///   first block   | used | current | newest | state | home | list of 126 entries | room …… |
///   superblock    | used | - | room ……………………………………………………………………………………………………… |
///   further list  | older | count | 126 entries |                at the front of some block
///
/// used      bytes of this block that are handed out, the header among them; beyond the block's size
///           it is full
/// current   the superblock that requests are served from
/// newest    the list that takes the next entry. Entries are blocks of the upstream: superblocks, and
///           sums of requests that are too large for one. When a list is full, the next block is
///           made larger by a list, which knows the older one; so it costs no call of its own, and
///           failing calls use up no memory. An entry of a block that was refused stays 0.
/// state     next << 8 | lanes: how many lanes have not left this round, and where the next one is
///           once somebody went ahead. `next` is a multiple of 16 below 2^56, so 12 bits are left.
///           Both are one word, so that who goes ahead makes the next round for exactly those who
///           have not left for good by then.
///
/// The first block is header and superblock at once: an arena that needs no second one costs the
/// upstream one malloc and one free. Where no superblock is to be had, a block for the header does.
/// Entries lie in an array, not in a chain through the blocks, so that the lanes of a warp free them
/// side by side.
///
/// Ordering: a superblock, a list or a round is complete before it is published (release), and who
/// finds it acquires. Leaving is acq_rel: the last one has seen the end of all the others' use, so it
/// may read entries as they are.

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
  std::uint64_t count;  // 64 bits: failing calls may count on for ever
  std::uint64_t entry[Entries];
};

/// The word of a round that says who is there.
struct round_state {
  static constexpr std::uint32_t most_lanes = (1u << 12) - 1;

  QUARRY_DEVICE static std::uint64_t pack(const void* next, std::uint64_t lanes) {
    return reinterpret_cast<std::uint64_t>(next) << 8 | lanes;
  }
  QUARRY_DEVICE static std::uint32_t lanes(std::uint64_t word) {
    return static_cast<std::uint32_t>(word) & most_lanes;
  }
  QUARRY_DEVICE static std::uint64_t next(std::uint64_t word) { return word >> 12 << 4; }
};

/// Home: where blocks come from and go to; it has an `upstream`. Who asks for memory names the upstream: a handle
/// among the kernel's arguments takes no registers, that copy of it does.
template <class Home, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
class alignas(16) warp_header {
 public:
  using list = superblock_list<Entries>;
  static constexpr std::uint32_t superblock_header = 16;
  static constexpr std::uint32_t room =
      Superblock > superblock_header ? Superblock - superblock_header : 0;

  /// A round for so many lanes; nullptr: the upstream refused.
  QUARRY_DEVICE static warp_header* make(Home& home, std::uint32_t lanes);

  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> state() { return word(state_); }
  /// The superblock to try.
  QUARRY_DEVICE std::byte* current() {
    return reinterpret_cast<std::byte*>(word(current_).load(simt::acquire));
  }
  /// Of any superblock, the first among them.
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> counter(std::byte* superblock) {
    return word(*reinterpret_cast<std::uint64_t*>(superblock));
  }
  QUARRY_DEVICE Home& home() const { return *home_; }

  // nullptr: the upstream refused.
  /// So many bytes for a group of lanes.
  QUARRY_DEVICE static std::byte* provide(warp_header* h, std::uint32_t size, const Upstream& from);
  /// A block of the upstream, noted in a list.
  QUARRY_DEVICE std::byte* take(std::uint64_t size, const Upstream& from);

  // By all lanes of a group, when they alone are left.
  QUARRY_DEVICE void free_blocks(simt::lane_mask group);
  QUARRY_DEVICE void start_again();  // one lane, after free_blocks

 private:
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  /// A place in a list for one more entry; nullptr: it is full.
  QUARRY_DEVICE static std::uint64_t* claim(list* l) {
    const std::uint64_t place = word(l->count).fetch_add(1, simt::relaxed);
    return place < Entries ? &l->entry[place] : nullptr;
  }
  QUARRY_DEVICE list* newest() {
    return reinterpret_cast<list*>(word(newest_).load(simt::acquire));
  }

  std::uint64_t used_;  // first: a superblock's header is this word
  std::uint64_t current_;
  std::uint64_t newest_;
  std::uint64_t state_;
  Home* home_;
  std::uint64_t used_at_first_;
  list first_;
};

// ---- bodies ------------------------------------------------------------------------------------------

template <class Home, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE warp_header<Home, Upstream, Superblock, Entries>*
warp_header<Home, Upstream, Superblock, Entries>::make(Home& home, std::uint32_t lanes) {
  void* block = nullptr;
  if constexpr (Superblock != 0) block = home.upstream.malloc(Superblock);
  const bool roomy = block != nullptr;
  if (!roomy) block = home.upstream.malloc(sizeof(warp_header));
  if (block == nullptr) return nullptr;
  auto* const h = static_cast<warp_header*>(block);
  h->home_ = &home;
  h->used_at_first_ = roomy ? sizeof(warp_header) : Superblock;
  word(h->first_.older).store(0, simt::relaxed);
  h->start_again();
  h->state().store(round_state::pack(nullptr, lanes), simt::relaxed);
  return h;
}

template <class Home, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE void warp_header<Home, Upstream, Superblock, Entries>::start_again() {
  word(used_).store(used_at_first_, simt::relaxed);
  word(current_).store(reinterpret_cast<std::uint64_t>(this), simt::relaxed);
  word(newest_).store(reinterpret_cast<std::uint64_t>(&first_), simt::relaxed);
  word(first_.count).store(0, simt::relaxed);
}

template <class Home, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE std::byte* warp_header<Home, Upstream, Superblock, Entries>::provide(
    warp_header* h, std::uint32_t size, const Upstream& from) {
  if (size <= room) {
    std::byte* const there = h->current();  // somebody may have brought it since
    const std::uint64_t first = counter(there).fetch_add(size, simt::relaxed);
    if (first + size <= Superblock) return there + first;
  }
  std::byte* const fresh = h->take(size <= room ? Superblock : size, from);
  if (fresh == nullptr || size > room) return fresh;
  counter(fresh).store(superblock_header + size, simt::relaxed);
  word(h->current_).store(reinterpret_cast<std::uint64_t>(fresh), simt::release);
  return fresh + superblock_header;
}

template <class Home, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE std::byte* warp_header<Home, Upstream, Superblock, Entries>::take(
    std::uint64_t size, const Upstream& from) {
  std::uint64_t* const entry = claim(newest());
  const bool full = entry == nullptr;
  const auto block = reinterpret_cast<std::uint64_t>(
      from.malloc(full ? saturating_add(size, sizeof(list)) : size));
  if (!full) word(*entry).store(block, simt::relaxed);
  if (!full || block == 0) return reinterpret_cast<std::byte*>(block);
  // The block begins with a list, if nobody else brought one by now.
  auto* const fresh = reinterpret_cast<list*>(block);
  for (std::uint64_t there = word(newest_).load(simt::acquire);;) {
    if (std::uint64_t* const other = claim(reinterpret_cast<list*>(there))) {
      word(*other).store(block, simt::relaxed);
      break;
    }
    word(fresh->older).store(there, simt::relaxed);
    word(fresh->count).store(0, simt::relaxed);
    if (word(newest_).compare_exchange(there, block, simt::acq_rel)) break;
  }
  return reinterpret_cast<std::byte*>(fresh + 1);
}

template <class Home, class Upstream, std::uint32_t Superblock, std::uint32_t Entries>
QUARRY_DEVICE void warp_header<Home, Upstream, Superblock, Entries>::free_blocks(
    simt::lane_mask group) {
  for (;;) {
    for (std::uint32_t i = simt::popc(group & simt::lanes_below());
         i < Entries && i < word(newest()->count).load(simt::relaxed); i += simt::popc(group))
      home().upstream.free(reinterpret_cast<void*>(word(newest()->entry[i]).load(simt::relaxed)));
    const std::uint64_t older = word(newest()->older).load(simt::relaxed);
    simt::sync_warp(group);  // all have read the list
    if (older == 0) return;
    if (simt::lane_id() == simt::highest_bit(group)) {
      void* const empty = newest();
      word(newest_).store(older, simt::relaxed);
      home().upstream.free(empty);
    }
    simt::sync_warp(group);
  }
}

}  // namespace quarry

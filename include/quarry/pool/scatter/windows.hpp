// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter_windows: chooses the pages that scatter tries. Each capacity has a window of pages, and
/// a hash chooses a page in the window.
///
///   pool   | .... [ window of 85 ] .... [ window of 4 .... ] .. [ of 16 ] .. | never used ...... |
///          | used part                                                       | high-water group
///
/// A window is one page at first and moves when it is full, so lone lanes fill pages instead of
/// starting one each. A window grows by one page for each request that lost its page to another
/// lane, up to 1/512 of the pool: its width adapts to the contention. Large pools have eight sets
/// of windows, and each multiprocessor uses one set.
///
/// The peers of a warp, lanes with equal capacity, try pages in this order:
///   initial_page   A hashed page of the window and the pages that follow, one per lane.
///   nearby_page    If another lane was faster: another hashed page, in a window that is wider now.
///                  Otherwise, peers that are fewer than a warp search whole groups of 32 pages in
///                  the window.
///   distant_page   Pages anywhere in the used part, if at least every second one of them has room;
///                  otherwise pages that were never used. The window moves there, and the used part
///                  grows.
///   any_page       All groups, a different one per lane; 32 full pages cost one load. A failure is
///                  recorded, and further searches fail at once until memory is released
///                  (pages.hpp).
/// All results are hints: the caller loads the pages again. Windows and the high-water group are
/// hints too, updated with relaxed ordering. Only any_page ends a search, and it inspects every
/// page.

#include <quarry/core/bits.hpp>
#include <quarry/pool/scatter/pages.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/random.hpp>

#include <cstdint>

namespace quarry {

/// The lanes of a warp that request the same capacity.
struct scatter_peers {
  simt::lane_mask active;  // all lanes of the call; collectives use this mask
  simt::lane_mask mask;    // the peers: the active lanes with this lane's capacity
  std::uint32_t rank;      // of this lane among its peers

  QUARRY_DEVICE scatter_peers(simt::lane_mask lanes, std::uint32_t capacity)
      : active(lanes),
        mask(simt::match_any(active, capacity)),
        rank(simt::popc(mask & simt::lanes_below())) {}

  QUARRY_DEVICE std::uint32_t size() const { return simt::popc(mask); }
  /// Returns the peers for which `holds` is true. Collective over `active`.
  QUARRY_DEVICE simt::lane_mask ballot(bool holds) const {
    return simt::ballot(active, holds) & mask;
  }
  /// Returns the value of the lowest peer. Collective over `active`.
  template <class T>
  QUARRY_DEVICE T broadcast(T value) const {
    return simt::shuffle(active, value, simt::lowest_bit(mask));
  }
};

/// MaxCapacity: the largest number of chunks that a page is divided into.
template <std::uint32_t MaxCapacity>
class scatter_windows {
 public:
  static constexpr std::uint32_t none = scatter_pages::none;

  /// The number of 64-bit words; they follow the pages in the metadata. The last set records
  /// failures.
  QUARRY_DEVICE static std::uint32_t count(const scatter_pages& pages) {
    return (sets(pages) + 1) * set_size;
  }

  /// A random word that differs between warps and over time.
  QUARRY_DEVICE static std::uint32_t random_word() {
    return simt::scramble(simt::clock() ^ simt::block_id() * 0x9e3779b9u ^ simt::thread_id() << 22);
  }
  /// Maps a random word to [0, n).
  QUARRY_DEVICE static std::uint32_t below(std::uint32_t n, std::uint32_t random) {
    return static_cast<std::uint32_t>(std::uint64_t{random} * n >> 32);
  }
  QUARRY_DEVICE static constexpr std::uint32_t min(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
  }
  /// The last group of the used part. It is stored in the word of capacity 0, which does not exist.
  QUARRY_DEVICE static simt::atomic_ref<std::uint32_t> high_water_group(
      const scatter_pages& pages) {
    return simt::atomic_ref<std::uint32_t>(pages.trailing_word(0));
  }

  /// The record of the last failed search for this capacity; 0: no search has failed. Capacity 0 is
  /// the record for runs.
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> last_failure(const scatter_pages& pages,
                                                                    std::uint32_t capacity) {
    return word(pages, sets(pages) * set_size + capacity);
  }

  QUARRY_DEVICE static std::uint32_t initial_page(const scatter_pages& pages,
                                                  const scatter_peers& peers,
                                                  std::uint32_t capacity, std::uint32_t random) {
    return page_in(pages, window(pages, capacity).load(simt::relaxed), random) + peers.rank;
  }
  // The following functions return none if they find no candidate; for any_page, none means that
  // the pool has no room. They are collective over `active`, and part of the slow path, out of
  // line.
  QUARRY_DEVICE static std::uint32_t nearby_page(scatter_pages pages, simt::lane_mask active,
                                                 std::uint32_t capacity, bool overtaken);
  QUARRY_DEVICE static std::uint32_t distant_page(scatter_pages pages, simt::lane_mask active,
                                                  std::uint32_t capacity);
  QUARRY_DEVICE static std::uint32_t any_page(scatter_pages pages, simt::lane_mask active,
                                              std::uint32_t capacity);

 private:
  static constexpr std::uint32_t set_size = align_up(MaxCapacity + 1, 16u);  // whole cache lines

  QUARRY_DEVICE static std::uint32_t sets(const scatter_pages& pages) {
    return pages.is_large() ? 8 : 1;
  }
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(const scatter_pages& pages,
                                                            std::uint32_t i) {
    return simt::atomic_ref<std::uint64_t>(
        reinterpret_cast<std::uint64_t&>(pages.trailing_word(2 * i)));
  }

  /// The word of a window: the first page in the low half, the number of further pages in the high
  /// half.
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> window(const scatter_pages& pages,
                                                              std::uint32_t capacity) {
    return word(pages, simt::sm_id() % sets(pages) * set_size + capacity);
  }
  static constexpr std::uint64_t one_page = std::uint64_t{1} << 32;
  QUARRY_DEVICE static constexpr std::uint32_t extra_pages(std::uint64_t window) {
    return static_cast<std::uint32_t>(window >> 32);
  }
  QUARRY_DEVICE static constexpr std::uint64_t move_to(std::uint64_t window, std::uint32_t page) {
    return window / one_page * one_page + page;
  }
  /// Returns a random page of the window. A window beyond the last page continues at the front.
  QUARRY_DEVICE static std::uint32_t page_in(const scatter_pages& pages, std::uint64_t window,
                                             std::uint32_t random) {
    const std::uint32_t page =
        static_cast<std::uint32_t>(window) + below(extra_pages(window) + 1, random);
    return page < pages.count() ? page : page - pages.count();
  }
  /// Moves the window to `page`, where a lane found room, if it is narrower than `widest`.
  QUARRY_DEVICE static void move_window(const scatter_pages& pages, std::uint32_t capacity,
                                        std::uint32_t page, std::uint32_t widest) {
    const std::uint64_t current = window(pages, capacity).load(simt::relaxed);
    if (extra_pages(current) < widest)
      window(pages, capacity).store(move_to(current, page), simt::relaxed);
  }
  QUARRY_DEVICE static bool is_lowest_of(simt::lane_mask lanes) {
    return (lanes & (simt::lanes_below() << 1 | 1)) == simt::lane_mask{1} << simt::lane_id();
  }
};

template <std::uint32_t MaxCapacity>
QUARRY_DEVICE std::uint32_t scatter_windows<MaxCapacity>::nearby_page(scatter_pages pages,
                                                                      simt::lane_mask active,
                                                                      std::uint32_t capacity,
                                                                      bool overtaken) {
  const scatter_peers peers(active, capacity);
  const std::uint32_t random = peers.broadcast(random_word());
  const std::uint64_t current = window(pages, capacity).load(simt::relaxed);
  std::uint32_t page = page_in(pages, current, random);
  overtaken = peers.ballot(overtaken) != 0;
  if (overtaken) {
    if (peers.rank == 0 && extra_pages(current) < pages.count() / 512)
      window(pages, capacity).add(one_page, simt::relaxed);
    page += peers.rank;
  } else {
    page = peers.size() < simt::warp_size ? pages.find(page / 32, capacity, random + 4 * peers.rank)
                                          : pages.count();
  }
  const simt::lane_mask finders = peers.ballot(page != pages.count());
  if (!overtaken && is_lowest_of(finders)) move_window(pages, capacity, page, 32);
  return finders != 0 ? page : none;
}

template <std::uint32_t MaxCapacity>
QUARRY_DEVICE std::uint32_t scatter_windows<MaxCapacity>::distant_page(scatter_pages pages,
                                                                       simt::lane_mask active,
                                                                       std::uint32_t capacity) {
  const scatter_peers peers(active, capacity);
  const std::uint32_t random = peers.broadcast(random_word());
  std::uint64_t current = peers.broadcast(window(pages, capacity).load(simt::relaxed));
  const std::uint32_t used_groups =
      peers.broadcast(high_water_group(pages).load(simt::relaxed)) + 1;
  std::uint32_t first = below(min(used_groups * 32, pages.count()), random);
  const scatter_state state(pages.word(first + peers.rank).load(simt::relaxed));
  if (2 * simt::popc(peers.ballot(state.room(capacity) != 0)) < peers.size()) {
    if (used_groups >= pages.groups()) return none;
    first = static_cast<std::uint32_t>(current) + extra_pages(current) + 1;
    if (first / 32 < used_groups || first >= pages.count()) first = used_groups * 32;
    if (peers.rank == 0)
      high_water_group(pages).fetch_max(min(first + extra_pages(current), pages.count() - 1) / 32,
                                        simt::relaxed);
  }
  // Several warps may leave the same window; one of them decides where it moves.
  if (peers.rank == 0)
    window(pages, capacity).compare_exchange(current, move_to(current, first), simt::relaxed);
  return first + peers.rank;
}

template <std::uint32_t MaxCapacity>
QUARRY_DEVICE std::uint32_t scatter_windows<MaxCapacity>::any_page(scatter_pages pages,
                                                                   simt::lane_mask active,
                                                                   std::uint32_t capacity) {
  const scatter_peers peers(active, capacity);
  const std::uint64_t last = peers.broadcast(last_failure(pages, capacity).load(simt::acquire));
  const std::uint64_t record = pages.releases(peers.active) + 1;
  std::uint32_t group =
      peers.broadcast(static_cast<std::uint32_t>(window(pages, capacity).load(simt::relaxed))) /
          32 +
      peers.rank;
  std::uint32_t page = last == record ? none : pages.count();
  std::uint32_t left = page == none ? 0 : pages.groups();  // for all peers together
  while (simt::any(peers.active, left != 0)) {
    if (group >= pages.groups()) group -= pages.groups();
    if (peers.rank < left) page = pages.find(group, capacity, 0);
    const simt::lane_mask finders = peers.ballot(page != pages.count());
    if (left != 0 && is_lowest_of(finders)) move_window(pages, capacity, page, none);
    if (left != 0 && finders == 0 && left <= peers.size()) page = none;
    left = finders != 0 || left <= peers.size() ? 0 : left - peers.size();
    group += peers.size();
  }
  if (page == none && peers.rank == 0) last_failure(pages, capacity).store(record, simt::release);
  return page;
}

}  // namespace quarry

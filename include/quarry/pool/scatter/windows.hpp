// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter_windows: where scatter looks for a page. Each capacity has a window of pages, and a hash
/// chooses in it.
///
///   pool   | .... [ window of 85 ] .... [ window of 4 .... ] .. [ of 16 ] .. | never used ...... |
///          | open                                                            |
///
/// A window is one page at first and moves on when it is full, so that lone requests fill pages
/// instead of opening one each. It grows by one page for each request that lost its page to others:
/// as wide as there are lanes in each other's way, up to 1/512 of the pool. Large pools have eight
/// sets of windows, and a multiprocessor uses one of them.
///
/// Where to look, one after the other, for the lanes of a warp that want the same capacity:
///   first_place  a hashed page of the window, and those that follow it: one for each lane
///   near_place   if others were faster: another one, in a window that is wider now. Else a group
///                so small that it had seen only some pages looks at whole blocks of the window
///   far_place    somewhere in the open part, if at least every second page there has room; else
///                pages never used. The window moves there, and the open part grows
///   any_place    all blocks, each lane at another: 32 full pages with one load. If that fails, it
///                is noted, and fails at once until somebody makes room (scatter_pages.hpp)
/// What they return is a proposal: the pages are looked at again. Windows and the open part are
/// hints, changed without any order; only any_place ends a search, and it sees every page.

#include <quarry/core/bits.hpp>
#include <quarry/pool/scatter/pages.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/random.hpp>

#include <cstdint>

namespace quarry {

/// Lanes of a warp that want the same capacity.
struct scatter_group {
  simt::lane_mask all;   // who called: all meet, so that groups wait for memory at the same time
  simt::lane_mask mine;  // those with my capacity
  std::uint32_t rank;    // mine among them

  QUARRY_DEVICE scatter_group(simt::lane_mask all_of_us, std::uint32_t capacity)
      : all(all_of_us),
        mine(simt::match_any(all, capacity)),
        rank(simt::popc(mine & simt::lanes_below())) {}

  QUARRY_DEVICE std::uint32_t size() const { return simt::popc(mine); }
  /// Those of my group for whom it holds.
  QUARRY_DEVICE simt::lane_mask which(bool holds) const { return simt::ballot(all, holds) & mine; }
  /// What the first of my group says.
  template <class T>
  QUARRY_DEVICE T agree(T value) const {
    return simt::shuffle(all, value, simt::lowest_bit(mine));
  }
};

/// MaxCapacity: the most chunks a page is cut into.
template <std::uint32_t MaxCapacity>
class scatter_windows {
 public:
  static constexpr std::uint32_t none = scatter_pages::none;

  /// How many words there are; they lie behind the pages. The last set notes failures.
  QUARRY_DEVICE static std::uint32_t count(const scatter_pages& pages) {
    return (sets(pages) + 1) * set_size;
  }

  /// For hashes; other in each warp and at each time.
  QUARRY_DEVICE static std::uint32_t draw() {
    return simt::scramble(simt::clock() ^ simt::block_id() * 0x9e3779b9u ^ simt::thread_id() << 22);
  }
  /// Of [0, n).
  QUARRY_DEVICE static std::uint32_t below(std::uint32_t n, std::uint32_t random) {
    return static_cast<std::uint32_t>(std::uint64_t{random} * n >> 32);
  }
  QUARRY_DEVICE static constexpr std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
  }
  /// The last block of the part that is open. (There is no capacity 0, so its place is free.)
  QUARRY_DEVICE static simt::atomic_ref<std::uint32_t> last_open(const scatter_pages& pages) {
    return simt::atomic_ref<std::uint32_t>(pages.behind(0));
  }

  /// A note on the last search for this capacity that found nothing; 0: there was none. At 0: for
  /// runs.
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> last_failure(const scatter_pages& pages,
                                                                    std::uint32_t capacity) {
    return word(pages, sets(pages) * set_size + capacity);
  }

  QUARRY_DEVICE static std::uint32_t first_place(const scatter_pages& pages,
                                                 const scatter_group& us, std::uint32_t capacity,
                                                 std::uint32_t random) {
    return place(pages, window(pages, capacity).load(simt::relaxed), random) + us.rank;
  }
  // The others return none where they have nothing to propose; any_place: there is no room. They
  // are called seldom, from a function out of line, and by `all`.
  QUARRY_DEVICE static std::uint32_t near_place(scatter_pages pages, simt::lane_mask all,
                                                std::uint32_t capacity, bool crowded);
  QUARRY_DEVICE static std::uint32_t far_place(scatter_pages pages, simt::lane_mask all,
                                               std::uint32_t capacity);
  QUARRY_DEVICE static std::uint32_t any_place(scatter_pages pages, simt::lane_mask all,
                                               std::uint32_t capacity);

 private:
  static constexpr std::uint32_t set_size = align_up(MaxCapacity + 1, 16u);  // whole lines

  QUARRY_DEVICE static std::uint32_t sets(const scatter_pages& pages) {
    return pages.many() ? 8 : 1;
  }
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(const scatter_pages& pages,
                                                            std::uint32_t i) {
    return simt::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t&>(pages.behind(2 * i)));
  }

  /// A window is a word: the first page, and above bit 32 how many there are more.
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> window(const scatter_pages& pages,
                                                              std::uint32_t capacity) {
    return word(pages, simt::sm_id() % sets(pages) * set_size + capacity);
  }
  static constexpr std::uint64_t one_more = std::uint64_t{1} << 32;
  QUARRY_DEVICE static constexpr std::uint32_t more(std::uint64_t window) {
    return static_cast<std::uint32_t>(window >> 32);
  }
  QUARRY_DEVICE static constexpr std::uint64_t moved(std::uint64_t window, std::uint32_t page) {
    return window / one_more * one_more + page;
  }
  /// A page of it. A window that reaches beyond the last page goes on at the front.
  QUARRY_DEVICE static std::uint32_t place(const scatter_pages& pages, std::uint64_t window,
                                           std::uint32_t random) {
    const std::uint32_t page = static_cast<std::uint32_t>(window) + below(more(window) + 1, random);
    return page < pages.count() ? page : page - pages.count();
  }
  /// The window, if it is no wider than that, moves to where room was found.
  QUARRY_DEVICE static void follow(const scatter_pages& pages, std::uint32_t capacity,
                                   std::uint32_t page, std::uint32_t widest) {
    const std::uint64_t here = window(pages, capacity).load(simt::relaxed);
    if (more(here) < widest) window(pages, capacity).store(moved(here, page), simt::relaxed);
  }
  QUARRY_DEVICE static bool is_first_of(simt::lane_mask lanes) {
    return (lanes & (simt::lanes_below() << 1 | 1)) == simt::lane_mask{1} << simt::lane_id();
  }
};

template <std::uint32_t MaxCapacity>
QUARRY_DEVICE std::uint32_t scatter_windows<MaxCapacity>::near_place(scatter_pages pages,
                                                                     simt::lane_mask all,
                                                                     std::uint32_t capacity,
                                                                     bool crowded) {
  const scatter_group us(all, capacity);
  const std::uint32_t random = us.agree(draw());
  const std::uint64_t here = window(pages, capacity).load(simt::relaxed);
  std::uint32_t page = place(pages, here, random);
  crowded = us.which(crowded) != 0;
  if (crowded) {
    if (us.rank == 0 && more(here) < pages.count() / 512)
      window(pages, capacity).add(one_more, simt::relaxed);
    page += us.rank;
  } else {
    page = us.size() < simt::warp_size ? pages.find(page / 32, capacity, random + 4 * us.rank)
                                       : pages.count();
  }
  const simt::lane_mask finders = us.which(page != pages.count());
  if (!crowded && is_first_of(finders)) follow(pages, capacity, page, 32);
  return finders != 0 ? page : none;
}

template <std::uint32_t MaxCapacity>
QUARRY_DEVICE std::uint32_t scatter_windows<MaxCapacity>::far_place(scatter_pages pages,
                                                                    simt::lane_mask all,
                                                                    std::uint32_t capacity) {
  const scatter_group us(all, capacity);
  const std::uint32_t random = us.agree(draw());
  std::uint64_t here = us.agree(window(pages, capacity).load(simt::relaxed));
  const std::uint32_t open = us.agree(last_open(pages).load(simt::relaxed)) + 1;
  std::uint32_t first = below(smaller(open * 32, pages.count()), random);
  const scatter_state state(pages.word(first + us.rank).load(simt::relaxed));
  if (2 * simt::popc(us.which(state.room(capacity) != 0)) < us.size()) {
    if (open >= pages.blocks()) return none;
    first = static_cast<std::uint32_t>(here) + more(here) + 1;
    if (first / 32 < open || first >= pages.count()) first = open * 32;
    if (us.rank == 0)
      last_open(pages).fetch_max(smaller(first + more(here), pages.count() - 1) / 32,
                                 simt::relaxed);
  }
  // Of several groups that leave the same window one decides where to.
  if (us.rank == 0)
    window(pages, capacity).compare_exchange(here, moved(here, first), simt::relaxed);
  return first + us.rank;
}

template <std::uint32_t MaxCapacity>
QUARRY_DEVICE std::uint32_t scatter_windows<MaxCapacity>::any_place(scatter_pages pages,
                                                                    simt::lane_mask all,
                                                                    std::uint32_t capacity) {
  const scatter_group us(all, capacity);
  const std::uint64_t last = us.agree(last_failure(pages, capacity).load(simt::acquire));
  const std::uint64_t note = pages.releases(us.all) + 1;
  std::uint32_t block =
      us.agree(static_cast<std::uint32_t>(window(pages, capacity).load(simt::relaxed))) / 32 +
      us.rank;
  std::uint32_t page = last == note ? none : pages.count();
  std::uint32_t left = page == none ? 0 : pages.blocks();  // for all of the group
  while (simt::any(us.all, left != 0)) {
    if (block >= pages.blocks()) block -= pages.blocks();
    if (us.rank < left) page = pages.find(block, capacity, 0);
    const simt::lane_mask finders = us.which(page != pages.count());
    if (left != 0 && is_first_of(finders)) follow(pages, capacity, page, none);
    if (left != 0 && finders == 0 && left <= us.size()) page = none;
    left = finders != 0 || left <= us.size() ? 0 : left - us.size();
    block += us.size();
  }
  if (page == none && us.rank == 0) last_failure(pages, capacity).store(note, simt::release);
  return page;
}

}  // namespace quarry

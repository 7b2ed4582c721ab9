// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter_pages: the words of all pages of a scatter, the bitmap of full pages, and release
/// counters.
///
///   releases   | counter | counter | ...                            one cache line each
///   words      | page 0 | page 1 | ... | page n-1 | in use ... |     one scatter_state each
///   full       | group 0: 32 bits       | group 1 ...               set: the page is full
///
/// Full bits. A group is 32 pages; a search skips 32 full pages with one load. A lane that finds a
/// full page sets its bit, and a lane that frees memory in a full page clears it:
///   mark_full    set the bit (acquire), then load the page word again; if it has room, clear the
///                bit
///   clear_full   make room in the page, then clear the bit (release)
/// Both are read-modify-writes of one word, so they are ordered. If mark_full is first, clear_full
/// clears the bit. If clear_full is first, the second load of mark_full sees the room. Invariant:
/// when all calls that touched a page have returned, a page with room has a clear bit. No search
/// needs a pass that ignores the full bits. A full page with a clear bit costs one load.
///
/// Release counters. A failed search need not be repeated before memory becomes available: a full
/// page gets a free chunk, a page becomes empty, or the pages of a run are freed. Each of these
/// events is counted after it took effect and after clear_full (release), once per warp, in any of
/// the counters. A search loads the counters first (acquire) and records their sum if it fails. A
/// later search that finds the recorded sum unchanged fails at once: the failed search saw all
/// events that were counted, and an event since then is counted before its call returns. Counters
/// only grow. A lane that loads the record first and the counters second reads counters no smaller
/// than the failed search did, so equal sums imply equal counters. Room for a capacity has no other
/// cause: the failed search would have found a page of this capacity that was not full.

#include <quarry/core/bits.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/pool/scatter/page.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/bits.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>

#include <cstdint>

namespace quarry {

class scatter_pages {
 public:
  static constexpr std::uint32_t per_group = 32;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint64_t max_count = std::uint64_t{1} << 27;

  scatter_pages() = default;
  scatter_pages(carve& metadata, std::uint32_t count) : count_(count) {
    (void)metadata.take<std::uint64_t>("releases", std::uint64_t{counters()} * counter_stride);
    words_ = metadata.take<std::uint32_t>("pages", word_count(count));
    (void)metadata.take<std::uint32_t>("full pages", full_word_count(count));
  }
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    for (std::uint64_t page = count_ + lane; page < word_count(count_); page += lanes)
      word(static_cast<std::uint32_t>(page)).store(scatter_state::run(0).word(), simt::relaxed);
  }

  QUARRY_DEVICE std::uint32_t count() const { return count_; }
  QUARRY_DEVICE std::uint32_t groups() const { return (count_ + per_group - 1) / per_group; }
  QUARRY_DEVICE bool is_large() const { return count_ >= 4096; }
  /// The words that follow in the metadata. All preceding arrays are whole cache lines, without
  /// gaps.
  QUARRY_DEVICE std::uint32_t& trailing_word(std::uint32_t index) const {
    return words_[word_count(count_) + full_word_count(count_) + index];
  }

  /// The 32 pages after the last page have words too; these words are never empty.
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> word(std::uint32_t page) const {
    return simt::atomic_ref<std::uint32_t>(words_[page]);
  }

  /// Returns a page of the group that has room for `capacity`, or count(). The search begins at
  /// page `start` modulo 32 of the group.
  QUARRY_DEVICE std::uint32_t find(std::uint32_t group, std::uint32_t capacity,
                                   std::uint32_t start) const;
  /// Clears the full bits of pages of the group in which memory was freed.
  QUARRY_DEVICE void clear_full(std::uint32_t group, std::uint32_t bits) const {
    full_bits(group).bit_and(~bits, simt::release);
  }

  /// Returns the empty pages of the group, one bit each.
  QUARRY_DEVICE std::uint32_t empty_pages(std::uint32_t group) const;

  /// Returns the sum of the release counters. Collective over `active`. Acquires.
  QUARRY_DEVICE std::uint64_t releases(simt::lane_mask active) const;
  /// Counts one release if `mine` is true for a lane. Collective over `active`.
  QUARRY_DEVICE void count_release(simt::lane_mask active, bool mine) const;
  /// Counts one release.
  QUARRY_DEVICE void count_release() const {
    counter(simt::sm_id() % counters()).add(1, simt::release);
  }

  // The following functions require quiescence.
  scatter_state at(std::uint32_t page) const { return scatter_state(words_[page]); }
  bool is_marked_full(std::uint32_t page) const {
    return (words_[word_count(count_) + page / per_group] >> page % per_group & 1) != 0;
  }

  /// The words of four adjacent pages. Their loads overlap, so the lane waits for memory once.
  struct page_quad {
    static constexpr std::uint32_t width = 4;
    static constexpr std::uint32_t full_mask = (std::uint32_t{1} << width) - 1;
    std::uint32_t words[width];

    QUARRY_DEVICE page_quad(const scatter_pages& pages, std::uint32_t first) {
      for (std::uint32_t k = 0; k < width; ++k)
        words[k] = pages.word(first + k).load(simt::relaxed);
    }
    /// Returns a mask: bit k is holds(state of page first + k).
    template <class Condition>
    QUARRY_DEVICE std::uint32_t which(Condition&& holds) const {
      std::uint32_t bits = 0;
      for (std::uint32_t k = 0; k < width; ++k)
        bits |= std::uint32_t{holds(scatter_state(words[k]))} << k;
      return bits;
    }
  };

 private:
  static constexpr std::uint32_t counter_stride = carve::alignment / sizeof(std::uint64_t);

  QUARRY_DEVICE static constexpr std::uint32_t word_count(std::uint32_t pages) {
    return (pages / per_group + 2) * per_group;
  }
  QUARRY_DEVICE static constexpr std::uint32_t full_word_count(std::uint32_t pages) {
    return align_up(pages / per_group + 1, carve::alignment / sizeof(std::uint32_t));
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> full_bits(std::uint32_t group) const {
    return simt::atomic_ref<std::uint32_t>(words_[word_count(count_) + group]);
  }
  QUARRY_DEVICE std::uint32_t counters() const { return is_large() ? 8 : 1; }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> counter(std::uint32_t i) const {
    return simt::atomic_ref<std::uint64_t>(*(reinterpret_cast<std::uint64_t*>(words_) -
                                             static_cast<std::size_t>((i + 1) * counter_stride)));
  }
  QUARRY_DEVICE void mark_full(std::uint32_t group, std::uint32_t full) const;

  std::uint32_t* words_;
  std::uint32_t count_;
};

// ---- search and full bits ----------------------------------------------------------------------

QUARRY_DEVICE inline std::uint32_t scatter_pages::find(std::uint32_t group, std::uint32_t capacity,
                                                       std::uint32_t start) const {
  const std::uint32_t marked = full_bits(group).load(simt::relaxed);
  std::uint32_t full = 0;
  for (std::uint32_t left = ~marked, at = align_down(start % per_group, page_quad::width);
       left != 0; at = (at + page_quad::width) % per_group) {
    if ((left >> at & page_quad::full_mask) == 0) continue;
    left &= ~(page_quad::full_mask << at);
    const page_quad seen(*this, group * per_group + at);
    const std::uint32_t fit = seen.which([&](scatter_state s) { return s.room(capacity) != 0; });
    if (fit != 0) return group * per_group + at + simt::lowest_bit(fit);
    full |= seen.which([](scatter_state s) { return s.full(); }) << at;
  }
  if ((full & ~marked) != 0) mark_full(group, full & ~marked);
  return count_;
}

QUARRY_DEVICE inline std::uint32_t scatter_pages::empty_pages(std::uint32_t group) const {
  const std::uint32_t marked = full_bits(group).load(simt::relaxed);
  std::uint32_t empty = 0;
  std::uint32_t full = 0;
  for (std::uint32_t left = ~marked; left != 0;) {
    const std::uint32_t at = align_down(simt::lowest_bit(left), page_quad::width);
    left &= ~(page_quad::full_mask << at);
    const page_quad seen(*this, group * per_group + at);
    empty |= seen.which([](scatter_state s) { return s.empty(); }) << at;
    full |= seen.which([](scatter_state s) { return s.full(); }) << at;
  }
  if ((full & ~marked) != 0) mark_full(group, full & ~marked);
  return empty;
}

QUARRY_DEVICE inline void scatter_pages::mark_full(std::uint32_t group, std::uint32_t full) const {
  full_bits(group).fetch_or(full, simt::acquire);
  while (full != 0) {
    const std::uint32_t at = align_down(simt::lowest_bit(full), page_quad::width);
    const page_quad again(*this, group * per_group + at);
    const std::uint32_t room = again.which([](scatter_state s) { return !s.full(); }) << at & full;
    if (room != 0) full_bits(group).bit_and(~room, simt::relaxed);
    full &= ~(page_quad::full_mask << at);
  }
}

// ---- releases ----------------------------------------------------------------------------------

QUARRY_DEVICE inline std::uint64_t scatter_pages::releases(simt::lane_mask active) const {
  simt::sync_warp(active);
  std::uint64_t sum = 0;
  for (std::uint32_t i = simt::popc(active & simt::lanes_below()); i < counters();
       i += simt::popc(active))
    sum += counter(i).load(simt::acquire);
  sum = simt::reduce_add(active, sum);
  simt::sync_warp(active);
  return sum;
}

QUARRY_DEVICE inline void scatter_pages::count_release(simt::lane_mask active, bool mine) const {
  const simt::lane_mask some = simt::ballot(active, mine);
  simt::sync_warp(active);
  if (mine && (some & simt::lanes_below()) == 0) count_release();
}

}  // namespace quarry

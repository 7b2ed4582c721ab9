// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter_pages: all pages of a scatter, seen from above: blocks of 32 pages, marks, releases.
///
///   releases   | counter | counter | ...                          a line each
///   words      | page 0 | page 1 | ... | page n-1 | taken ... |   a scatter_state each
///   marks      | block 0: 32 bits        | block 1 ...           a set bit: this page is full
///
/// Marks: a search passes over 32 full pages with one load. Whoever was disappointed by a full page
/// leaves a mark, whoever gives something back to a full page removes it:
///   mark     set the bit (acquire), then look at the page again; if it has room, clear the bit
///   unmark   make room in the page, then clear the bit (release)
/// Both change the word of marks by read-modify-writes, so one comes first. If it is the mark, the
/// unmark clears it; if it is the unmark, the second look sees the room. So no page with room is
/// marked once the calls that touched it have ended, and no search needs a pass that ignores the
/// marks. A full page without a mark costs a look, nothing else.
///
/// Releases: a search that found nothing need not be made again before somebody makes room. That
/// is: a full page gets a free chunk, a page becomes empty, pages of a run are given back. Each is
/// counted after the fact and after the unmark (release), once for the lanes of a warp, in any of
/// the counters. A search reads them first (acquire), notes their sum if it fails, and whoever
/// finds the same sum later fails at once: what was counted then, the search saw; what made room
/// since has not ended yet, or it would be counted. (Counters only grow. Whoever reads the note
/// first and the counters then, sees none smaller than the search did, so equal sums are equal
/// counters.) Room for a capacity comes about in no other way: a page of that capacity that was
/// not full would have been found.

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
  static constexpr std::uint32_t per_block = 32;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint64_t max_count = std::uint64_t{1} << 27;

  scatter_pages() = default;
  scatter_pages(carve& metadata, std::uint32_t count) : count_(count) {
    (void)metadata.take<std::uint64_t>("releases", counters() * counter_stride);
    words_ = metadata.take<std::uint32_t>("pages", word_count(count));
    (void)metadata.take<std::uint32_t>("marks", mark_count(count));
  }
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    for (std::uint64_t page = count_ + lane; page < word_count(count_); page += lanes)
      word(static_cast<std::uint32_t>(page)).store(scatter_state::run(0).word(), simt::relaxed);
  }

  QUARRY_DEVICE std::uint32_t count() const { return count_; }
  QUARRY_DEVICE std::uint32_t blocks() const { return (count_ + per_block - 1) / per_block; }
  QUARRY_DEVICE bool many() const { return count_ >= 4096; }
  /// What follows all this in memory; these are whole lines, so that there are no gaps.
  QUARRY_DEVICE std::uint32_t& behind(std::uint32_t index) const {
    return words_[word_count(count_) + mark_count(count_) + index];
  }

  /// The 32 pages behind the last one have words too, and are never empty.
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> word(std::uint32_t page) const {
    return simt::atomic_ref<std::uint32_t>(words_[page]);
  }

  /// A page of the block that has room for `capacity`, or count(). `turn`: where to look first.
  QUARRY_DEVICE std::uint32_t find(std::uint32_t block, std::uint32_t capacity,
                                   std::uint32_t turn) const;
  /// There is room in pages of the block that may have been full.
  QUARRY_DEVICE void unmark(std::uint32_t block, std::uint32_t bits) const {
    marks(block).bit_and(~bits, simt::release);
  }

  /// The pages of the block that are empty: a bit each.
  QUARRY_DEVICE std::uint32_t empty_pages(std::uint32_t block) const;

  /// How often room was made. Called by `all`; what was made until then, they see.
  QUARRY_DEVICE std::uint64_t releases(simt::lane_mask all) const;
  /// Called by `all` when some of them have made room.
  QUARRY_DEVICE void count_release(simt::lane_mask all, bool mine) const;
  /// Called by one who has.
  QUARRY_DEVICE void count_release() const {
    counter(simt::sm_id() % counters()).add(1, simt::release);
  }

  // Between kernels.
  scatter_state at(std::uint32_t page) const { return scatter_state(words_[page]); }
  bool marked(std::uint32_t page) const {
    return (words_[word_count(count_) + page / per_block] >> page % per_block & 1) != 0;
  }

  /// Pages seen together: the loads are under way at once, and the lane waits once.
  struct glimpse {
    static constexpr std::uint32_t width = 4;
    static constexpr std::uint32_t all = (std::uint32_t{1} << width) - 1;
    std::uint32_t words[width];

    QUARRY_DEVICE glimpse(const scatter_pages& pages, std::uint32_t first) {
      for (std::uint32_t k = 0; k < width; ++k)
        words[k] = pages.word(first + k).load(simt::relaxed);
    }
    /// Bit k: whether it holds of page first + k.
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
    return (pages / per_block + 2) * per_block;
  }
  QUARRY_DEVICE static constexpr std::uint32_t mark_count(std::uint32_t pages) {
    return align_up(pages / per_block + 1, carve::alignment / sizeof(std::uint32_t));
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> marks(std::uint32_t block) const {
    return simt::atomic_ref<std::uint32_t>(words_[word_count(count_) + block]);
  }
  QUARRY_DEVICE std::uint32_t counters() const { return many() ? 8 : 1; }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> counter(std::uint32_t i) const {
    return simt::atomic_ref<std::uint64_t>(
        *(reinterpret_cast<std::uint64_t*>(words_) - (i + 1) * counter_stride));
  }
  QUARRY_DEVICE void mark(std::uint32_t block, std::uint32_t full) const;

  std::uint32_t* words_;
  std::uint32_t count_;
};

// ---- looking and marking -----------------------------------------------------------------------

QUARRY_DEVICE inline std::uint32_t scatter_pages::find(std::uint32_t block, std::uint32_t capacity,
                                                       std::uint32_t turn) const {
  const std::uint32_t marked = marks(block).load(simt::relaxed);
  std::uint32_t full = 0;
  for (std::uint32_t left = ~marked, at = align_down(turn % per_block, glimpse::width); left != 0;
       at = (at + glimpse::width) % per_block) {
    if ((left >> at & glimpse::all) == 0) continue;
    left &= ~(glimpse::all << at);
    const glimpse seen(*this, block * per_block + at);
    const std::uint32_t fit = seen.which([&](scatter_state s) { return s.room(capacity) != 0; });
    if (fit != 0) return block * per_block + at + simt::lowest_bit(fit);
    full |= seen.which([](scatter_state s) { return s.full(); }) << at;
  }
  if ((full & ~marked) != 0) mark(block, full & ~marked);
  return count_;
}

QUARRY_DEVICE inline std::uint32_t scatter_pages::empty_pages(std::uint32_t block) const {
  const std::uint32_t marked = marks(block).load(simt::relaxed);
  std::uint32_t empty = 0;
  std::uint32_t full = 0;
  for (std::uint32_t left = ~marked; left != 0;) {
    const std::uint32_t at = align_down(simt::lowest_bit(left), glimpse::width);
    left &= ~(glimpse::all << at);
    const glimpse seen(*this, block * per_block + at);
    empty |= seen.which([](scatter_state s) { return s.empty(); }) << at;
    full |= seen.which([](scatter_state s) { return s.full(); }) << at;
  }
  if ((full & ~marked) != 0) mark(block, full & ~marked);
  return empty;
}

QUARRY_DEVICE inline void scatter_pages::mark(std::uint32_t block, std::uint32_t full) const {
  marks(block).fetch_or(full, simt::acquire);
  while (full != 0) {
    const std::uint32_t at = align_down(simt::lowest_bit(full), glimpse::width);
    const glimpse again(*this, block * per_block + at);
    const std::uint32_t room = again.which([](scatter_state s) { return !s.full(); }) << at & full;
    if (room != 0) marks(block).bit_and(~room, simt::relaxed);
    full &= ~(glimpse::all << at);
  }
}

// ---- releases ----------------------------------------------------------------------------------

QUARRY_DEVICE inline std::uint64_t scatter_pages::releases(simt::lane_mask all) const {
  simt::sync_warp(all);
  std::uint64_t sum = 0;
  for (std::uint32_t i = simt::popc(all & simt::lanes_below()); i < counters();
       i += simt::popc(all))
    sum += counter(i).load(simt::acquire);
  sum = simt::reduce_add(all, sum);
  simt::sync_warp(all);
  return sum;
}

QUARRY_DEVICE inline void scatter_pages::count_release(simt::lane_mask all, bool mine) const {
  const simt::lane_mask some = simt::ballot(all, mine);
  simt::sync_warp(all);
  if (mine && (some & simt::lanes_below()) == 0) count_release();
}

}  // namespace quarry

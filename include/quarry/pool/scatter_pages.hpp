// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter_pages: all pages of a scatter, seen from above: blocks of 32 pages, marks, runs.
///
///   words   | page 0 | page 1 | ... | page n-1 | taken ... |     a scatter_state each
///   marks   | block 0: 32 bits        | block 1 ...             a set bit: this page is full
///
/// Marks: a search passes over 32 full pages with one load. Whoever was disappointed by a full page leaves
/// a mark, whoever gives something back to a full page removes it:
///   mark     set the bit (acquire), then look at the page again; if it has room, clear the bit
///   unmark   make room in the page, then clear the bit (release)
/// Both change the word of marks by read-modify-writes, so one comes first. If it is the mark, the unmark
/// clears it; if it is the unmark, the second look sees the room. So no page with room is marked once
/// the calls that touched it have ended, and no search needs a pass that ignores the marks. A full
/// page without a mark costs a look, nothing else.
///
/// Runs: a large block is made of whole pages side by side, each claimed by a compare-exchange from empty,
/// in ascending order; there is no lock. A request looks first, and claims only what looked empty; at an
/// obstacle it gives back what it has and goes on behind it, once around the pool. It fails if each place
/// had an obstacle when it came by: a page in use, or in the hands of another request.
/// Requests that meet do not undo each other: both go upwards, so the one ahead holds a page that the other
/// needs, and never the other way round. The one that is furthest ahead gets its run, unless chunks
/// were cut from it after it looked. (Pages never used are claimed four at a time. There, two may both
/// step back; whoever asks again starts elsewhere.) Nobody waits for anybody.
/// Pages are given back in any order: only the one who frees reads the length.
///
/// Ordering: a claim acquires, giving back releases, so that what the old owner wrote is past when the new
/// one starts. A page never used needs no acquire: nobody wrote to it.

#include <quarry/core/bits.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/pool/scatter_page.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/bits.hpp>

#include <cstdint>

namespace quarry {

class scatter_pages {
 public:
  static constexpr std::uint32_t per_block = 32;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint64_t max_count = std::uint64_t{1} << 27;

  scatter_pages() = default;
  scatter_pages(carve& metadata, std::uint32_t count)
      : words_(metadata.take<std::uint32_t>("pages", word_count(count))), count_(count) {
    (void)metadata.take<std::uint32_t>("marks", mark_count(count));
  }
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    for (std::uint64_t page = count_ + lane; page < word_count(count_); page += lanes)
      word(static_cast<std::uint32_t>(page)).store(scatter_state::run(0).word(), simt::relaxed);
  }

  QUARRY_DEVICE std::uint32_t count() const { return count_; }
  QUARRY_DEVICE std::uint32_t blocks() const { return (count_ + per_block - 1) / per_block; }
  /// What follows the words and the marks in memory; all are whole lines, so that there are no gaps.
  QUARRY_DEVICE std::uint32_t& behind(std::uint32_t index) const {
    return words_[word_count(count_) + mark_count(count_) + index];
  }

  /// The 32 pages behind the last one have words too, and are never empty.
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> word(std::uint32_t page) const {
    return simt::atomic_ref<std::uint32_t>(words_[page]);
  }

  /// A page of the block that has room for `capacity`, or count(); `turn` decides where to look first.
  QUARRY_DEVICE std::uint32_t find(std::uint32_t block, std::uint32_t capacity,
                                   std::uint32_t turn) const;
  /// There is room in pages of the block that may have been full.
  QUARRY_DEVICE void unmark(std::uint32_t block, std::uint32_t bits) const {
    marks(block).bit_and(~bits, simt::release);
  }

  /// Whether [first, first + n) is empty now.
  QUARRY_DEVICE bool looks_empty(std::uint32_t first, std::uint32_t n) const;
  /// Where the first n pages side by side begin that look empty, from page `at` on; or none.
  QUARRY_DEVICE std::uint32_t next_run(std::uint32_t n, std::uint32_t at) const;
  /// Makes [first, first + n) a run and returns n; or changes nothing and returns how many pages lie
  /// before the obstacle.
  QUARRY_DEVICE std::uint32_t claim_run(std::uint32_t first, std::uint32_t n) const;
  QUARRY_DEVICE void release_run(std::uint32_t first, std::uint32_t n) const;

  // Between kernels.
  scatter_state at(std::uint32_t page) const { return scatter_state(words_[page]); }
  bool marked(std::uint32_t page) const {
    return (words_[word_count(count_) + page / per_block] >> page % per_block & 1) != 0;
  }

 private:
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

  QUARRY_DEVICE static constexpr std::uint32_t word_count(std::uint32_t pages) {
    return (pages / per_block + 2) * per_block;
  }
  QUARRY_DEVICE static constexpr std::uint32_t mark_count(std::uint32_t pages) {
    return align_up(pages / per_block + 1, carve::alignment / sizeof(std::uint32_t));
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> marks(std::uint32_t block) const {
    return simt::atomic_ref<std::uint32_t>(words_[word_count(count_) + block]);
  }
  QUARRY_DEVICE std::uint32_t empty_pages(std::uint32_t block) const;
  QUARRY_DEVICE void mark(std::uint32_t block, std::uint32_t full) const;
  QUARRY_DEVICE bool claim(std::uint32_t page, scatter_state as, std::uint32_t& guess) const;
  QUARRY_DEVICE std::uint32_t claim_new(std::uint32_t first, std::uint32_t n) const;

  std::uint32_t* words_;
  std::uint32_t count_;
};

// ---- looking and marking -------------------------------------------------------------------------

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

// ---- runs ----------------------------------------------------------------------------------------

QUARRY_DEVICE inline bool scatter_pages::looks_empty(std::uint32_t first, std::uint32_t n) const {
  for (std::uint32_t i = 0; i < n; i += glimpse::width) {
    const glimpse seen(*this, first + i);
    const std::uint32_t taken = seen.which([](scatter_state s) { return !s.empty(); });
    if ((n - i < glimpse::width ? taken << (glimpse::width - (n - i)) : taken) %
            (glimpse::all + 1) !=
        0)
      return false;
  }
  return true;
}

QUARRY_DEVICE inline std::uint32_t scatter_pages::next_run(std::uint32_t n,
                                                           std::uint32_t at) const {
  std::uint32_t empty = empty_pages(at / per_block);
  for (std::uint32_t begin = at; begin + n <= count_;) {
    if ((empty >> at % per_block & 1) == 0) begin = at + 1;
    if (++at - begin == n) return begin;
    if (at % per_block == 0) empty = empty_pages(at / per_block);
  }
  return none;
}

QUARRY_DEVICE inline std::uint32_t scatter_pages::claim_run(std::uint32_t first,
                                                            std::uint32_t n) const {
  std::uint32_t i = claim_new(first, n);
  std::uint32_t guess = 0;
  while (i < n && claim(first + i, scatter_state::run(i == 0 ? n : 0), guess)) ++i;
  if (i < n) release_run(first, i);
  return i;
}

/// The page is ours if it is empty. `guess`: its word, most likely that of the page before.
QUARRY_DEVICE inline bool scatter_pages::claim(std::uint32_t page, scatter_state as,
                                               std::uint32_t& guess) const {
  do {
    std::uint32_t seen = guess;
    if (word(page).compare_exchange(seen, as.word(), simt::acquire)) return true;
    guess = seen;
  } while (scatter_state(guess).empty());
  return false;
}

/// Pages of the run as long as they are new, all in a glimpse at once. Returns how many are ours.
QUARRY_DEVICE inline std::uint32_t scatter_pages::claim_new(std::uint32_t first,
                                                            std::uint32_t n) const {
  std::uint32_t i = 0;
  for (; n - i >= glimpse::width; i += glimpse::width) {
    std::uint32_t ours = 0;
    for (std::uint32_t k = 0; k < glimpse::width; ++k) {
      std::uint32_t seen = 0;
      const scatter_state as = scatter_state::run(i + k == 0 ? n : 0);
      ours |= std::uint32_t{word(first + i + k).compare_exchange(seen, as.word(), simt::relaxed)}
              << k;
    }
    if (ours == glimpse::all) continue;
    const std::uint32_t kept = simt::lowest_bit(~ours);
    for (std::uint32_t k = kept + 1; k < glimpse::width; ++k)
      if ((ours >> k & 1) != 0) release_run(first + i + k, 1);
    return i + kept;
  }
  return i;
}

QUARRY_DEVICE inline void scatter_pages::release_run(std::uint32_t first, std::uint32_t n) const {
  const std::uint32_t end = first + n;
  for (std::uint32_t page = first; page < end; ++page)
    word(page).store(scatter_state::used_before().word(), simt::release);
  while (first < end) {
    const std::uint32_t next = align_down(first, per_block) + per_block;
    const std::uint32_t pages = (next < end ? next : end) - first;
    unmark(first / per_block, ~std::uint32_t{0} >> (per_block - pages) << first % per_block);
    first = next;
  }
}

}  // namespace quarry

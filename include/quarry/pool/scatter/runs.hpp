// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter_runs: large blocks of a scatter, which are runs of adjacent pages. No locks.
///
/// A lane claims a run page by page, in ascending order, with a compare-exchange from empty. It
/// loads the page words first and claims only pages that appear empty. If a page is not empty, the
/// lane releases the pages that it has claimed. There are two searches:
///   try_run    Tries hashed pages in the used part, adjacent to those of the other active lanes;
///              then in a part that doubles until it is the whole pool.
///   find_run   Searches the whole pool. The lanes that request the same length divide the pool
///              among them, and each continues after a page that is not empty. While some of these
///              lanes succeed, the others start again; when none succeeds, all fail. find_run also
///              fails if no memory was released since a search for the same or a smaller length
///              failed (pages.hpp).
/// A request fails if every candidate run had a page that was in use, or claimed by another
/// request, when this lane or a peer inspected it.
///
/// Concurrent requests do not block each other. Both claim upwards, so the request that is ahead
/// holds a page that the other one needs, and never the reverse. The request that is furthest ahead
/// gets its run, unless a chunk request takes one of its pages after the inspection. Exception:
/// pages that were never used are claimed four at a time, and there two requests may both fail; a
/// retry starts at another page. Pages of a run may be released in any order, since only the lane
/// that frees the block reads the length.
///
/// Ordering: a claim acquires and a release releases, so the accesses of the previous owner happen
/// before those of the next one. A page that was never used needs no acquire.
/// Progress: lock-free; no lane waits for another one. find_run repeats only after a peer has
/// succeeded.

#include <quarry/core/bits.hpp>
#include <quarry/pool/scatter/pages.hpp>
#include <quarry/pool/scatter/windows.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/bits.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/random.hpp>

#include <cstdint>

namespace quarry {

/// Windows: the scatter_windows of the same pages.
template <class Windows>
class scatter_runs {
 public:
  static constexpr std::uint32_t none = scatter_pages::none;

  QUARRY_DEVICE explicit scatter_runs(const scatter_pages& pages) : pages_(pages) {}

  /// Returns the first page of a new run of n pages, or none. Collective over `active`.
  QUARRY_DEVICE std::uint32_t try_run(simt::lane_mask active, std::uint32_t n) const;
  QUARRY_DEVICE std::uint32_t find_run(simt::lane_mask active, std::uint32_t n) const;
  QUARRY_DEVICE void free_run(std::uint32_t first, std::uint32_t n) const {
    release(first, n);
    pages_.count_release(simt::active_mask(), true);
  }

 private:
  using page_quad = scatter_pages::page_quad;

  /// The record of a failed search for n pages: n in the upper bits, and below the sum of the
  /// release counters modulo 2^36. 0: no search has failed.
  static constexpr unsigned length_shift = 36;
  QUARRY_DEVICE static constexpr std::uint64_t failure(std::uint32_t n, std::uint64_t releases) {
    return std::uint64_t{n} << length_shift | releases % (std::uint64_t{1} << length_shift);
  }

  /// Returns whether the loads of all pages in [first, first + n) showed empty pages.
  QUARRY_DEVICE bool appears_empty(std::uint32_t first, std::uint32_t n) const;
  /// Claims a run of n pages among the `left` pages from `at` on; continues at page 0 after the
  /// last.
  QUARRY_DEVICE std::uint32_t search(std::uint32_t n, std::uint32_t at, std::uint32_t left) const;
  /// Makes [first, first + n) a run, of which the caller has claimed the first `claimed` pages
  /// already. Returns n. If a page is not empty, releases all claimed pages and returns the number
  /// of pages before it.
  QUARRY_DEVICE std::uint32_t claim(std::uint32_t first, std::uint32_t n,
                                    std::uint32_t claimed) const;
  QUARRY_DEVICE bool claim_page(std::uint32_t page, scatter_state as,
                                std::uint32_t& expected) const;
  QUARRY_DEVICE std::uint32_t claim_new(std::uint32_t first, std::uint32_t n) const;
  QUARRY_DEVICE void release(std::uint32_t first, std::uint32_t n) const;

  scatter_pages pages_;
};

// ---- search ------------------------------------------------------------------------------------

template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::try_run(simt::lane_mask active,
                                                           std::uint32_t n) const {
  const auto high_water_group = Windows::high_water_group(pages_);
  std::uint32_t random = simt::shuffle(active, Windows::random_word(), simt::lowest_bit(active));
  std::uint32_t used_pages =
      Windows::min((high_water_group.load(simt::relaxed) + 1) * 32, pages_.count());
  std::uint32_t page =
      Windows::below(used_pages, random) / n * n + simt::popc(active & simt::lanes_below()) * n;
  int attempt = 1;
  for (;; ++attempt) {
    if (page <= pages_.count() - n && (n == 1 || appears_empty(page, n)) &&
        claim(page, n, claim_new(page, n)) == n)
      break;
    page = none;
    if (attempt >= 8 && used_pages == pages_.count()) break;
    if (attempt >= 4) used_pages = Windows::min(2 * used_pages, pages_.count());
    random = simt::scramble(random + simt::lane_id());
    page = Windows::below(used_pages, random) / n * n;
  }
  // All lanes of the grid share this word, so only lanes that must raise it write to it.
  if (attempt > 4 && high_water_group.load(simt::relaxed) < (used_pages - 1) / 32)
    high_water_group.fetch_max((used_pages - 1) / 32, simt::relaxed);
  return page;
}

template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::find_run(simt::lane_mask active,
                                                            std::uint32_t n) const {
  const auto last_failure = Windows::last_failure(pages_, 0);
  for (;;) {
    const scatter_peers peers(active, n);
    const std::uint32_t random = peers.broadcast(Windows::random_word());
    const std::uint64_t recorded = peers.broadcast(last_failure.load(simt::acquire));
    const std::uint64_t now = failure(n, pages_.releases(peers.active));
    const bool known = recorded != 0 && recorded <= now && (now - recorded) % failure(1, 0) == 0;
    std::uint32_t page = none;
    if (!known) {
      // Each lane searches the runs that begin in its share of the pool; they may end after it.
      const std::uint32_t share = pages_.count() / peers.size() + 1;
      const std::uint32_t start = Windows::below(pages_.count(), random) / n * n;
      page = search(n, (start + peers.rank * share) % pages_.count(), share + n - 1);
    }
    const bool any_found = peers.ballot(page != none) != 0;
    if (!any_found && !known && peers.rank == 0) last_failure.store(now, simt::release);
    active = simt::ballot(active, page == none && any_found);
    if (page != none || !any_found) return page;
  }
}

template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::search(std::uint32_t n, std::uint32_t at,
                                                          std::uint32_t left) const {
  std::uint32_t empty = pages_.empty_pages(at / 32);
  std::uint32_t length = 0;  // of the pages up to `at` that appear empty
  for (;; --left) {
    length = (empty >> at % 32 & 1) != 0 ? length + 1 : 0;
    if (length == n) {
      const std::uint32_t got = claim(at + 1 - n, n, 0);
      if (got == n) return at + 1 - n;
      length = n - 1 - got;  // the empty pages after the page that was not empty
    }
    if (left == 1) return none;
    if (++at == pages_.count()) at = length = 0;
    if (at % 32 == 0) empty = pages_.empty_pages(at / 32);
  }
}

template <class Windows>
QUARRY_DEVICE bool scatter_runs<Windows>::appears_empty(std::uint32_t first,
                                                        std::uint32_t n) const {
  for (std::uint32_t i = 0; i < n; i += page_quad::width) {
    const page_quad seen(pages_, first + i);
    const std::uint32_t taken = seen.which([](scatter_state s) { return !s.empty(); });
    const std::uint32_t beyond = n - i < page_quad::width ? page_quad::width - (n - i) : 0;
    if ((taken << beyond & page_quad::full_mask) != 0) return false;
  }
  return true;
}

// ---- claim and release -------------------------------------------------------------------------

template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::claim(std::uint32_t first, std::uint32_t n,
                                                         std::uint32_t claimed) const {
  std::uint32_t i = claimed;
  std::uint32_t expected = 0;
  while (i < n && claim_page(first + i, scatter_state::run(i == 0 ? n : 0), expected)) ++i;
  if (i != 0 && i < n) {
    release(first, i);
    pages_.count_release();
  }
  return i;
}

template <class Windows>
QUARRY_DEVICE bool scatter_runs<Windows>::claim_page(std::uint32_t page, scatter_state as,
                                                     std::uint32_t& expected) const {
  do {
    std::uint32_t seen = expected;
    if (pages_.word(page).compare_exchange(seen, as.word(), simt::acquire)) return true;
    expected = seen;
  } while (scatter_state(expected).empty());
  return false;
}

/// Claims pages of the run, four at a time, while they were never used. Returns the number of
/// claimed pages.
template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::claim_new(std::uint32_t first,
                                                             std::uint32_t n) const {
  std::uint32_t i = 0;
  for (; n - i >= page_quad::width; i += page_quad::width) {
    std::uint32_t claimed = 0;
    for (std::uint32_t k = 0; k < page_quad::width; ++k) {
      std::uint32_t seen = 0;
      const scatter_state as = scatter_state::run(i + k == 0 ? n : 0);
      const auto word = pages_.word(first + i + k);
      claimed |= std::uint32_t{word.compare_exchange(seen, as.word(), simt::relaxed)} << k;
    }
    if (claimed == page_quad::full_mask) continue;
    const std::uint32_t kept = simt::lowest_bit(~claimed);
    for (std::uint32_t k = kept + 1; k < page_quad::width; ++k) {
      if ((claimed >> k & 1) == 0) continue;
      release(first + i + k, 1);
      pages_.count_release();
    }
    return i + kept;
  }
  return i;
}

template <class Windows>
QUARRY_DEVICE void scatter_runs<Windows>::release(std::uint32_t first, std::uint32_t n) const {
  const std::uint32_t end = first + n;
  for (std::uint32_t page = first; page < end; ++page)
    pages_.word(page).store(scatter_state::used_before().word(), simt::release);
  while (first < end) {
    const std::uint32_t next = align_down(first, 32) + 32;
    const std::uint32_t pages = (next < end ? next : end) - first;
    pages_.clear_full(first / 32, ~std::uint32_t{0} >> (32 - pages) << first % 32);
    first = next;
  }
}

}  // namespace quarry

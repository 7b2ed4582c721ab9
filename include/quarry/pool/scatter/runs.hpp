// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter_runs: large blocks of a scatter, made of whole pages side by side. No lock.
///
/// A run is claimed page by page, by a compare-exchange from empty, in ascending order. A request
/// looks first, and claims only what looked empty; at an obstacle it gives back what it has. Where
/// to look, one after the other:
///   try_run    hashed places of the open part, side by side with the warp's other lanes; then in
///              a part that doubles until it is the whole pool
///   find_run   everywhere: lanes that want the same length share the pool, each goes through its
///              part, and behind an obstacle it goes on. As long as some of them succeed, the
///              others begin again; when nobody did, all fail. It fails too if nobody has made room
///              since such a search failed for as many pages or fewer (scatter_pages.hpp)
/// A request fails if each place had an obstacle when it or a neighbour came by: a page in use, or
/// in the hands of another request.
///
/// Requests that meet do not undo each other: both go upwards, so the one ahead holds a page that
/// the other needs, and never the other way round. The one that is furthest ahead gets its run,
/// unless chunks were cut from it after it looked. (Pages never used are claimed four at a time.
/// There, two may both step back; whoever asks again starts elsewhere.) Nobody waits for anybody.
/// Pages are given back in any order: only the one who frees reads the length.
///
/// Ordering: a claim acquires, giving back releases, so that what the old owner wrote is past when
/// the new one starts. A page never used needs no acquire: nobody wrote to it.

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

  /// n pages, the first of them; or none. Called by `all`.
  QUARRY_DEVICE std::uint32_t try_run(simt::lane_mask all, std::uint32_t n) const;
  QUARRY_DEVICE std::uint32_t find_run(simt::lane_mask all, std::uint32_t n) const;
  QUARRY_DEVICE void free_run(std::uint32_t first, std::uint32_t n) const {
    release(first, n);
    pages_.count_release(simt::active_mask(), true);
  }

 private:
  using glimpse = scatter_pages::glimpse;

  /// A search for runs of n pages that found nothing, as a word: n above, and below it the releases
  /// it had seen, up to a multiple of 2^36. 0: there was none.
  static constexpr unsigned length_shift = 36;
  QUARRY_DEVICE static constexpr std::uint64_t failure(std::uint32_t n, std::uint64_t releases) {
    return std::uint64_t{n} << length_shift | releases % (std::uint64_t{1} << length_shift);
  }

  /// Whether [first, first + n) is empty now.
  QUARRY_DEVICE bool looks_empty(std::uint32_t first, std::uint32_t n) const;
  /// A run among `left` pages from `at` on; behind the last page goes on at 0.
  QUARRY_DEVICE std::uint32_t search(std::uint32_t n, std::uint32_t at, std::uint32_t left) const;
  /// Makes [first, first + n) a run, of which `ours` pages are claimed already, and returns n; or
  /// gives them back and returns how many pages lie before the obstacle.
  QUARRY_DEVICE std::uint32_t claim(std::uint32_t first, std::uint32_t n, std::uint32_t ours) const;
  QUARRY_DEVICE bool claim_page(std::uint32_t page, scatter_state as, std::uint32_t& guess) const;
  QUARRY_DEVICE std::uint32_t claim_new(std::uint32_t first, std::uint32_t n) const;
  QUARRY_DEVICE void release(std::uint32_t first, std::uint32_t n) const;

  scatter_pages pages_;
};

// ---- where -------------------------------------------------------------------------------------

template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::try_run(simt::lane_mask all,
                                                           std::uint32_t n) const {
  const auto last_open = Windows::last_open(pages_);
  std::uint32_t random = simt::shuffle(all, Windows::draw(), simt::lowest_bit(all));
  std::uint32_t open = Windows::smaller((last_open.load(simt::relaxed) + 1) * 32, pages_.count());
  std::uint32_t page =
      Windows::below(open, random) / n * n + simt::popc(all & simt::lanes_below()) * n;
  int attempt = 1;
  for (;; ++attempt) {
    if (page <= pages_.count() - n && (n == 1 || looks_empty(page, n)) &&
        claim(page, n, claim_new(page, n)) == n)
      break;
    page = none;
    if (attempt >= 8 && open == pages_.count()) break;
    if (attempt >= 4) open = Windows::smaller(2 * open, pages_.count());
    random = simt::scramble(random + simt::lane_id());
    page = Windows::below(open, random) / n * n;
  }
  // One counter for all lanes of the grid: it is changed by those who have to.
  if (attempt > 4 && last_open.load(simt::relaxed) < (open - 1) / 32)
    last_open.fetch_max((open - 1) / 32, simt::relaxed);
  return page;
}

template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::find_run(simt::lane_mask all,
                                                            std::uint32_t n) const {
  const auto last_failure = Windows::last_failure(pages_, 0);
  for (;;) {
    const scatter_group us(all, n);
    const std::uint32_t random = us.agree(Windows::draw());
    const std::uint64_t noted = us.agree(last_failure.load(simt::acquire));
    const std::uint64_t now = failure(n, pages_.releases(us.all));
    const bool known = noted != 0 && noted <= now && (now - noted) % failure(1, 0) == 0;
    std::uint32_t page = none;
    if (!known) {
      // Each begins in its share, and looks as far as the runs reach that begin there.
      const std::uint32_t share = pages_.count() / us.size() + 1;
      const std::uint32_t start = Windows::below(pages_.count(), random) / n * n;
      page = search(n, (start + us.rank * share) % pages_.count(), share + n - 1);
    }
    const bool some = us.which(page != none) != 0;
    if (!some && !known && us.rank == 0) last_failure.store(now, simt::release);
    all = simt::ballot(all, page == none && some);
    if (page != none || !some) return page;
  }
}

template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::search(std::uint32_t n, std::uint32_t at,
                                                          std::uint32_t left) const {
  std::uint32_t empty = pages_.empty_pages(at / 32);
  std::uint32_t length = 0;  // of what looked empty, up to here
  for (;; --left) {
    length = (empty >> at % 32 & 1) != 0 ? length + 1 : 0;
    if (length == n) {
      const std::uint32_t got = claim(at + 1 - n, n, 0);
      if (got == n) return at + 1 - n;
      length = n - 1 - got;  // behind the obstacle
    }
    if (left == 1) return none;
    if (++at == pages_.count()) at = length = 0;
    if (at % 32 == 0) empty = pages_.empty_pages(at / 32);
  }
}

template <class Windows>
QUARRY_DEVICE bool scatter_runs<Windows>::looks_empty(std::uint32_t first, std::uint32_t n) const {
  for (std::uint32_t i = 0; i < n; i += glimpse::width) {
    const glimpse seen(pages_, first + i);
    const std::uint32_t taken = seen.which([](scatter_state s) { return !s.empty(); });
    const std::uint32_t beyond = n - i < glimpse::width ? glimpse::width - (n - i) : 0;
    if ((taken << beyond & glimpse::all) != 0) return false;
  }
  return true;
}

// ---- claiming and giving back ------------------------------------------------------------------

template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::claim(std::uint32_t first, std::uint32_t n,
                                                         std::uint32_t ours) const {
  std::uint32_t i = ours;
  std::uint32_t guess = 0;
  while (i < n && claim_page(first + i, scatter_state::run(i == 0 ? n : 0), guess)) ++i;
  if (i != 0 && i < n) {
    release(first, i);
    pages_.count_release();
  }
  return i;
}

/// The page is ours if it is empty. `guess`: its word, most likely that of the page before.
template <class Windows>
QUARRY_DEVICE bool scatter_runs<Windows>::claim_page(std::uint32_t page, scatter_state as,
                                                     std::uint32_t& guess) const {
  do {
    std::uint32_t seen = guess;
    if (pages_.word(page).compare_exchange(seen, as.word(), simt::acquire)) return true;
    guess = seen;
  } while (scatter_state(guess).empty());
  return false;
}

/// Pages of the run as long as they are new, all in a glimpse at once. Returns how many are ours.
template <class Windows>
QUARRY_DEVICE std::uint32_t scatter_runs<Windows>::claim_new(std::uint32_t first,
                                                             std::uint32_t n) const {
  std::uint32_t i = 0;
  for (; n - i >= glimpse::width; i += glimpse::width) {
    std::uint32_t ours = 0;
    for (std::uint32_t k = 0; k < glimpse::width; ++k) {
      std::uint32_t seen = 0;
      const scatter_state as = scatter_state::run(i + k == 0 ? n : 0);
      const auto word = pages_.word(first + i + k);
      ours |= std::uint32_t{word.compare_exchange(seen, as.word(), simt::relaxed)} << k;
    }
    if (ours == glimpse::all) continue;
    const std::uint32_t kept = simt::lowest_bit(~ours);
    for (std::uint32_t k = kept + 1; k < glimpse::width; ++k) {
      if ((ours >> k & 1) == 0) continue;
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
    pages_.unmark(first / 32, ~std::uint32_t{0} >> (32 - pages) << first % 32);
    first = next;
  }
}

}  // namespace quarry

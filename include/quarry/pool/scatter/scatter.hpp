// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter: equal pages, each divided into equal chunks, chosen by a hash. ScatterAlloc of
/// Steinberger et al. (2012), without its unsound reset and without its lock.
///
///   pool     | 48 48 48 ... | empty | 1024 1024 ... | large ... | ... large | 48 48 ... |   pages
///   pages    one word per page: {capacity, count, cursor}, or the length of a run         page.hpp
///   full     one bit per page: the page is full; and counters of releases                pages.hpp
///   windows  one per capacity: where requests try pages                                windows.hpp
///   bits     one bit per chunk: the chunk is in use
/// All metadata lies outside the pool; with pages of 4 KiB it takes 0.9 % of the pool size.
///
/// malloc maps a request to a capacity, the number of chunks of its size that fit in a page; sizes
/// with equal capacity are equivalent. Lanes of a warp with equal capacity are peers. Each peer
/// loads the word of one page; the pages are adjacent, from a hashed page on. A lane that sees room
/// reserves chunks for as many peers as the page can serve, and these claim their chunks, with one
/// access per bitmap word. The fast path has four dependent round trips: window, page, reservation,
/// bits.
///
/// free clears the bit, then lowers the count, once for all lanes that free in the same bitmap
/// word. If this is one word for all active lanes, one lane clears all bits too.
///
/// Requests above half a page are runs of adjacent pages (runs.hpp).
///
/// No reset. The published algorithm resets an empty page in several steps that are visible to
/// other lanes, and hands out memory twice. Here a page with count 0 has no owner, whatever its
/// capacity field holds: one compare-exchange {any capacity, 0} -> {new capacity, k} divides the
/// page anew and reserves k chunks, and no bit of the page is set.
///
/// Progress: a round tries pages and, if it fails, chooses others: by hints in the first eight
/// rounds, then by a search of all pages. If the search fails, the call fails; so do later calls
/// for the same capacity, without a search, until memory is released (pages.hpp). nullptr means:
/// every page had no room at some time during this call or a call that overlaps it. A round after
/// the eighth is repeated only if another lane took the page that was found.
/// Invariants (quiescent): count == bits set; no bit beyond the capacity; a page with its full bit
/// set is full.
///
/// Active mask: malloc determines the active lanes once, at its start. Ballots decide which lanes
/// take part in a round, and all lanes return together. Two groups of a warp are therefore never
/// inside different searches, and no collective depends on which lanes happen to be converged.
/// (When groups were formed anew in each round, pages on a GPU counted chunks for lanes that had
/// not taken them.)
///
/// Ordering: a bit is cleared with release and claimed with acquire, since a chunk changes its
/// owner. The count is lowered with release and raised with acquire, since a page changes its
/// owner. sync_warp orders the lane that acts for its peers and the peers.

#include <quarry/concurrent/bitmap.hpp>
#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/pool/scatter/inspect.hpp>
#include <quarry/pool/scatter/page.hpp>
#include <quarry/pool/scatter/pages.hpp>
#include <quarry/pool/scatter/runs.hpp>
#include <quarry/pool/scatter/windows.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/random.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace quarry {

/// Chunks are multiples of 16 bytes and of 1/1024 of a page. A pool has at most 2^27 pages.
template <std::uint64_t PageBytes = 4096>
class scatter {
  static_assert(is_power_of_two(PageBytes) && PageBytes >= 64 &&
                    PageBytes <= std::uint64_t{64} << 20,
                "the page size is a power of two from 64 bytes to 64 MiB");
  static constexpr std::uint32_t units = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(PageBytes / block_alignment, scatter_state::max_capacity));
  static constexpr std::uint64_t unit = PageBytes / units;  // the smallest chunk
  using windows = scatter_windows<units>;
  using runs = scatter_runs<windows>;

 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true, .min_pool = PageBytes};

  scatter() = default;
  scatter(memory_range pool, carve& metadata)
      : pool_(pool.begin), pages_(metadata, page_count(pool.size)) {
    (void)metadata.take<std::uint64_t>("windows", windows::count(pages_));
    (void)metadata.take<std::uint32_t>("bits", std::uint64_t{pages_.count()} * bit_words);
  }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    pages_.initialise(lane, lanes);
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n - 1 < PageBytes / 2) return allocate_chunk(capacity_for(n));
    if (n - 1 >= pages_.count() * PageBytes) return nullptr;  // also n == 0
    const auto length = static_cast<std::uint32_t>((n - 1) / PageBytes) + 1;
    const std::uint32_t page = allocate_run(pages_, length);
    return page == none ? nullptr : pool_ + page * PageBytes;
  }

  QUARRY_DEVICE void free(void* block) const {
    if (block == nullptr) return;
    const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - pool_);
    const auto page = static_cast<std::uint32_t>(offset / PageBytes);
    const scatter_state state(pages_.word(page).load(simt::relaxed));
    if (state.is_run()) return free_run(pages_, page, state.run_length());
    const std::uint32_t chunk =
        chunk_at(static_cast<std::uint32_t>(offset % PageBytes / unit), state.capacity());
    const std::uint32_t word = page * bit_words + chunk / 32;
    std::uint32_t bit = std::uint32_t{1} << chunk % 32;
    const simt::lane_mask active = simt::active_mask();
    const simt::lane_mask here = simt::match_any(active, word);
    const bool first = (here & simt::lanes_below()) == 0;
    if (here == active) bit = simt::reduce_or(active, bit);
    simt::sync_warp(active);
    if (here != active || first)
      simt::atomic_ref<std::uint32_t>(bits(pages_, 0)[word]).bit_and(~bit, simt::release);
    simt::sync_warp(active);
    bool room = false;
    if (first) {
      const scatter_state before(pages_.word(page).fetch_sub(simt::popc(here), simt::release));
      if (before.full()) pages_.clear_full(page / 32, std::uint32_t{1} << page % 32);
      room = before.full() || before.count() == simt::popc(here);
    }
    pages_.count_release(active, room);
  }

  std::string check_invariants() const { return inspector().check(); }
  heap_statistics statistics() const { return inspector().statistics(); }
  template <class Visit>
  void visit_pieces(Visit&& visit) const {
    inspector().visit_pieces(visit);
  }

  /// Returns the number of chunks of n bytes per page. Requires 0 < n <= PageBytes / 2.
  QUARRY_DEVICE static constexpr std::uint32_t capacity_for(std::uint64_t n) {
    return units / (static_cast<std::uint32_t>((n - 1) / unit) + 1);
  }
  QUARRY_DEVICE static constexpr std::uint64_t chunk_bytes(std::uint32_t capacity) {
    return units / capacity * unit;
  }
  /// Returns the index of the chunk that begins `at` units into its page. Proof: let the page have
  /// u units and c chunks of s units, with s = floor(u / c) and c = floor(u / s). Then r = u - c *
  /// s < s. Chunk i < c begins at i * s, and i * s * c / u = i - i * r / u. This is above i - 1,
  /// because i * r < c * s <= u. Rounding up gives i.
  QUARRY_DEVICE static constexpr std::uint32_t chunk_at(std::uint32_t at, std::uint32_t capacity) {
    return (at * capacity + units - 1) / units;
  }

 private:
  static constexpr std::uint32_t none = scatter_pages::none;
  static constexpr std::uint32_t bit_words = (units + 31) / 32;

  /// Limits the pages such that all metadata words have 32-bit indices.
  static std::uint32_t page_count(std::uint64_t bytes) {
    constexpr std::uint64_t limit = 0xffff'0000u / (bit_words + 2);
    return static_cast<std::uint32_t>(
        std::min({bytes / PageBytes, scatter_pages::max_count, limit}));
  }
  QUARRY_DEVICE static std::uint32_t* bits(const scatter_pages& pages, std::uint32_t page) {
    return &pages.trailing_word(2 * windows::count(pages) + page * bit_words);
  }
  scatter_inspector inspector() const { return {pages_, bits(pages_, 0), units, unit}; }

  struct grant;
  QUARRY_DEVICE void* allocate_chunk(std::uint32_t capacity) const;
  QUARRY_DEVICE static std::uint32_t reserve(const scatter_pages& pages, std::uint32_t page,
                                             scatter_state state, std::uint32_t capacity,
                                             std::uint32_t wanted);

  // Out of line. They do not call each other, since nested calls cost registers. Collective over
  // `active`.
  QUARRY_DEVICE_NOINLINE static grant serve_peers(scatter_pages pages, simt::lane_mask active,
                                                  std::uint32_t capacity, std::uint32_t page);
  QUARRY_DEVICE_NOINLINE static std::uint32_t next_page(scatter_pages pages, simt::lane_mask active,
                                                        std::uint32_t capacity, bool overtaken,
                                                        bool use_hints) {
    std::uint32_t page = windows::nearby_page(pages, active, capacity, overtaken);
    simt::lane_mask unserved = simt::ballot(active, page == none && use_hints);
    if (page == none && use_hints) page = windows::distant_page(pages, unserved, capacity);
    unserved = simt::ballot(active, page == none);
    if (page == none) page = windows::any_page(pages, unserved, capacity);
    return page;
  }
  QUARRY_DEVICE_NOINLINE static std::uint32_t allocate_run(scatter_pages pages, std::uint32_t n) {
    const simt::lane_mask active = simt::active_mask();
    std::uint32_t page = runs(pages).try_run(active, n);
    const simt::lane_mask unserved = simt::ballot(active, page == none);
    if (page == none) page = runs(pages).find_run(unserved, n);
    simt::sync_warp(active);
    return page;
  }
  QUARRY_DEVICE_NOINLINE static void free_run(scatter_pages pages, std::uint32_t first,
                                              std::uint32_t n) {
    runs(pages).free_run(first, n);
  }

  std::byte* pool_;
  scatter_pages pages_;
};

using scatter_alloc = scatter<>;

static_assert(freeing_allocator<scatter_alloc>);

// ---- chunks ------------------------------------------------------------------------------------

/// The result of a round for one lane: a chunk that is claimed, or only reserved; or no page.
template <std::uint64_t PageBytes>
struct scatter<PageBytes>::grant {
  std::uint32_t page;
  std::uint16_t chunk;
  bool claimed;
  bool overtaken;  // a page had room for this lane, but other lanes reserved it first
};

template <std::uint64_t PageBytes>
QUARRY_DEVICE void* scatter<PageBytes>::allocate_chunk(std::uint32_t capacity) const {
  const simt::lane_mask active = simt::active_mask();
  simt::lane_mask pending = active;  // lanes without a chunk
  std::uint32_t page = none;
  std::uint32_t chunk = 0;
  for (int round = 0;; ++round) {
    const grant mine = serve_peers(pages_, pending, capacity, page);
    page = mine.page;
    pending = simt::ballot(pending, page == none);
    if (page != none) {
      chunk = mine.claimed ? mine.chunk : claim_chunk(bits(pages_, page), capacity, mine.chunk);
      break;
    }
    page = next_page(pages_, pending, capacity, mine.overtaken, round < 8);
    pending = simt::ballot(pending, page != none);
    if (page == none) break;
  }
  simt::sync_warp(active);
  return page == none ? nullptr : pool_ + (page * PageBytes + chunk * chunk_bytes(capacity));
}

/// One round. Each lane loads the word of its page (none: its initial page). The lanes that see
/// room are finders. The peers are divided into teams of at most `capacity` lanes, and each team is
/// served by one finder. A random rotation chooses the first finder.
template <std::uint64_t PageBytes>
QUARRY_DEVICE typename scatter<PageBytes>::grant scatter<PageBytes>::serve_peers(
    scatter_pages pages, simt::lane_mask active, std::uint32_t capacity, std::uint32_t page) {
  const scatter_peers peers(active, capacity);
  const std::uint32_t random = peers.broadcast(windows::random_word());
  if (page == none) page = windows::initial_page(pages, peers, capacity, random);
  const unsigned me = simt::lane_id();
  const simt::lane_mask below_me = simt::lanes_below();
  const scatter_state state(pages.word(page).load(simt::relaxed));
  const simt::lane_mask finders = peers.ballot(state.room(capacity) != 0);
  const std::uint32_t count = simt::popc(finders);
  const std::uint32_t rotation = windows::below(count, random * 0x9e3779b9u);

  // Finder t + rotation serves team t: it reserves chunks for as many lanes of the team as it can.
  std::uint32_t got = 0;
  if ((finders >> me & 1) != 0) {
    const std::uint32_t number = simt::popc(finders & below_me);
    const std::uint32_t first =
        (number < rotation ? number + count - rotation : number - rotation) * capacity;
    if (first < peers.size()) got = reserve(pages, page, state, capacity, peers.size() - first);
  }
  const std::uint32_t team = capacity < simt::warp_size ? peers.rank / capacity : 0;
  const std::uint32_t index = peers.rank - team * capacity;
  const bool has_server = team < count;
  const std::uint32_t number = team + rotation < count ? team + rotation : team + rotation - count;
  const unsigned server = has_server ? nth_set_bit(finders, number) : me;
  got = simt::shuffle(peers.active, got, server);
  page = simt::shuffle(peers.active, page, server);
  const bool served = has_server && index < got % 64;

  // The lanes claim the chunks from the cursor on, with one fetch_or per bitmap word.
  std::uint32_t chunk = got / 64 + index;
  if (chunk >= capacity) chunk -= capacity;
  const bool head = served && (index == 0 || chunk % 32 == 0);
  const simt::lane_mask heads = peers.ballot(head) & (below_me << 1 | 1);
  std::uint32_t was = 0;
  if (head) {
    std::uint32_t length = windows::min(got % 64 - index, capacity - chunk);
    length = windows::min(length, 32 - chunk % 32);
    was = simt::atomic_ref<std::uint32_t>(bits(pages, page)[chunk / 32])
              .fetch_or(~std::uint32_t{0} >> (32 - length) << chunk % 32, simt::acquire);
  }
  was = simt::shuffle(peers.active, was, served ? simt::highest_bit(heads) : me);
  simt::sync_warp(peers.active);
  return {served ? page : none, static_cast<std::uint16_t>(chunk), (was >> chunk % 32 & 1) == 0,
          has_server && got % 64 == 0};
}

/// Reserves up to `wanted` chunks of a page. Returns their number + 64 * the first chunk; 0 if the
/// page has no room, or if four attempts failed against other lanes, since other pages have less
/// contention.
template <std::uint64_t PageBytes>
QUARRY_DEVICE std::uint32_t scatter<PageBytes>::reserve(const scatter_pages& pages,
                                                        std::uint32_t page, scatter_state state,
                                                        std::uint32_t capacity,
                                                        std::uint32_t wanted) {
  std::uint32_t word = state.word();
  for (int attempt = 0; attempt < 4; ++attempt) {
    const scatter_state now(word);
    const std::uint32_t k = windows::min(now.room(capacity), wanted);
    if (k == 0) return 0;
    if (pages.word(page).compare_exchange(word, now.reserve(capacity, k).word(), simt::acquire))
      return now.cursor() * 64 + k;
  }
  return 0;
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scatter: equal pages, each cut into equal chunks, chosen by a hash. ScatterAlloc of Steinberger
/// et al. (2012), without its unsound reset and without its lock.
///
///   pool     | 48 48 48 ... | empty | 1024 1024 ... | large ... | ... large | 48 48 ... |   pages
///   pages    a word each: {capacity, count, cursor}, or a large block's length    scatter_page.hpp
///   marks    a bit a page: it is full; and how often room was made               scatter_pages.hpp
///   windows  for each capacity: where to look                                  scatter_windows.hpp
///   bits     a bit a chunk: it is in use
/// Nothing of this lies in the pool; with pages of 4 KiB it takes 0.9 % more.
///
/// malloc: a request becomes a capacity, the number of chunks of its size that fit a page; sizes
///   with the same capacity are the same. Lanes of a warp with one capacity form a group. Each
///   looks at a page, side by side from a hashed place; a lane that sees room reserves for as many
///   of the group as the page can serve, and these claim their chunks, with one access for all in
///   one word. So four accesses follow each other: window, page, reservation, bits.
/// free: clear the bit, then subtract from the count, once for all lanes that free in one word; if
///   the whole warp does, one lane clears the bits too.
/// Large, more than half a page: whole pages side by side, see scatter_runs.hpp.
///
/// Why a page needs no reset. As published, a page that became empty is reset in several steps
/// while others look on, and memory is handed out twice. Here a page with count 0 is nobody's,
/// whatever capacity it shows: {any capacity, 0} -> {mine, k} cuts it anew and reserves at once,
/// and no bit of it is set.
///
/// Bound. A round is a look and, where it brings nothing, the choice of another place: by hints,
/// but by a pass over all blocks from the ninth round on, and when that finds nothing the call
/// ends; and so does the next one for that capacity, without a pass, until somebody makes room
/// (scatter_pages.hpp). nullptr means: each page had no room at some moment of this call or of one
/// that overlaps it. A round after the eighth is repeated only if the page that was found went to
/// others, of this group or of another.
/// Invariants (quiescent): count == bits set; no bit beyond the capacity; a marked page is full.
/// Company. Who calls together is asked once, at the beginning; who goes on is voted on, and all
/// return together. So two groups of a warp are never in the same search, and none depends on who
/// happens to be there. (With groups formed anew in each round, pages were seen on a GPU that
/// counted chunks for lanes that had not taken them, though each step was right by itself.)
/// Ordering. A bit is cleared with release and claimed with acquire: a chunk changes hands. The
/// count is subtracted with release and reserved with acquire: a page changes hands. One lane acts
/// for many, so sync_warp stands between.

#include <quarry/concurrent/bitmap.hpp>
#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/pool/scatter/page.hpp>
#include <quarry/pool/scatter/pages.hpp>
#include <quarry/pool/scatter/runs.hpp>
#include <quarry/pool/scatter/walk.hpp>
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
                "a page has a power of two of bytes, 64 to 64 MiB");
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
    if (n - 1 < PageBytes / 2) return take_chunk(capacity_for(n));
    if (n - 1 >= pages_.count() * PageBytes) return nullptr;  // also n == 0
    const auto length = static_cast<std::uint32_t>((n - 1) / PageBytes) + 1;
    const std::uint32_t page = take_run(pages_, length);
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
    const simt::lane_mask all = simt::active_mask();
    const simt::lane_mask here = simt::match_any(all, word);
    const bool first = (here & simt::lanes_below()) == 0;
    if (here == all) bit = simt::reduce_or(all, bit);
    simt::sync_warp(all);
    if (here != all || first)
      simt::atomic_ref<std::uint32_t>(bits(pages_, 0)[word]).bit_and(~bit, simt::release);
    simt::sync_warp(all);
    bool room = false;
    if (first) {
      const scatter_state before(pages_.word(page).fetch_sub(simt::popc(here), simt::release));
      if (before.full()) pages_.unmark(page / 32, std::uint32_t{1} << page % 32);
      room = before.full() || before.count() == simt::popc(here);
    }
    pages_.count_release(all, room);
  }

  std::string check_invariants() const { return walk().check(); }
  heap_statistics statistics() const { return walk().statistics(); }
  template <class Visit>
  void visit_pieces(Visit&& visit) const {
    walk().visit_pieces(visit);
  }

  /// Chunks of a page when they hold n bytes. Requires 0 < n <= PageBytes / 2.
  QUARRY_DEVICE static constexpr std::uint32_t capacity_for(std::uint64_t n) {
    return units / (static_cast<std::uint32_t>((n - 1) / unit) + 1);
  }
  QUARRY_DEVICE static constexpr std::uint64_t chunk_bytes(std::uint32_t capacity) {
    return units / capacity * unit;
  }
  /// The chunk that begins `at` units into its page. Let the page have u units and c chunks of
  /// s = floor(u / c) units, and r = u - c * s < s. Chunk i begins at i * s, and i * s * c / u =
  /// i - i * r / u is above i - 1, because i * r < c * s <= u. So rounding up gives i.
  QUARRY_DEVICE static constexpr std::uint32_t chunk_at(std::uint32_t at, std::uint32_t capacity) {
    return (at * capacity + units - 1) / units;
  }

 private:
  static constexpr std::uint32_t none = scatter_pages::none;
  static constexpr std::uint32_t bit_words = (units + 31) / 32;

  /// All words have 32-bit numbers.
  static std::uint32_t page_count(std::uint64_t bytes) {
    constexpr std::uint64_t most = 0xffff'0000u / (bit_words + 2);
    return static_cast<std::uint32_t>(
        std::min({bytes / PageBytes, scatter_pages::max_count, most}));
  }
  QUARRY_DEVICE static std::uint32_t* bits(const scatter_pages& pages, std::uint32_t page) {
    return &pages.behind(2 * windows::count(pages) + page * bit_words);
  }
  scatter_walk walk() const { return {pages_, bits(pages_, 0), units, unit}; }

  struct share;
  QUARRY_DEVICE void* take_chunk(std::uint32_t capacity) const;
  QUARRY_DEVICE static std::uint32_t reserve(const scatter_pages& pages, std::uint32_t page,
                                             scatter_state state, std::uint32_t capacity,
                                             std::uint32_t wanted);

  // Out of line; they do not call each other, for each call costs registers. Called by `all`.
  QUARRY_NOINLINE QUARRY_DEVICE static share hand_out(scatter_pages pages, simt::lane_mask all,
                                                      std::uint32_t capacity, std::uint32_t page);
  QUARRY_NOINLINE QUARRY_DEVICE static std::uint32_t next_place(scatter_pages pages,
                                                                simt::lane_mask all,
                                                                std::uint32_t capacity,
                                                                bool overtaken, bool hopeful) {
    std::uint32_t page = windows::near_place(pages, all, capacity, overtaken);
    simt::lane_mask lost = simt::ballot(all, page == none && hopeful);
    if (page == none && hopeful) page = windows::far_place(pages, lost, capacity);
    lost = simt::ballot(all, page == none);
    if (page == none) page = windows::any_place(pages, lost, capacity);
    return page;
  }
  QUARRY_NOINLINE QUARRY_DEVICE static std::uint32_t take_run(scatter_pages pages,
                                                              std::uint32_t n) {
    const simt::lane_mask all = simt::active_mask();
    std::uint32_t page = runs(pages).try_run(all, n);
    const simt::lane_mask lost = simt::ballot(all, page == none);
    if (page == none) page = runs(pages).find_run(lost, n);
    simt::sync_warp(all);
    return page;
  }
  QUARRY_NOINLINE QUARRY_DEVICE static void free_run(scatter_pages pages, std::uint32_t first,
                                                     std::uint32_t n) {
    runs(pages).free_run(first, n);
  }

  std::byte* pool_;
  scatter_pages pages_;
};

using scatter_alloc = scatter<>;

static_assert(freeing_allocator<scatter_alloc>);

// ---- chunks ------------------------------------------------------------------------------------

/// What a lane got: a chunk of a page, claimed or only reserved; or no page.
template <std::uint64_t PageBytes>
struct scatter<PageBytes>::share {
  std::uint32_t page;
  std::uint16_t chunk;
  bool claimed;
  bool overtaken;  // there was a page for this lane, but others were faster
};

template <std::uint64_t PageBytes>
QUARRY_DEVICE void* scatter<PageBytes>::take_chunk(std::uint32_t capacity) const {
  const simt::lane_mask all = simt::active_mask();
  simt::lane_mask us = all;  // those who have no chunk yet
  std::uint32_t page = none;
  std::uint32_t chunk = 0;
  for (int round = 0;; ++round) {
    const share mine = hand_out(pages_, us, capacity, page);
    page = mine.page;
    us = simt::ballot(us, page == none);
    if (page != none) {
      chunk = mine.claimed ? mine.chunk : claim_chunk(bits(pages_, page), capacity, mine.chunk);
      break;
    }
    page = next_place(pages_, us, capacity, mine.overtaken, round < 8);
    us = simt::ballot(us, page != none);
    if (page == none) break;
  }
  simt::sync_warp(all);
  return page == none ? nullptr : pool_ + (page * PageBytes + chunk * chunk_bytes(capacity));
}

/// Each lane looks at its page (none: at the first place), and those that see room hand it out: the
/// group is cut into teams that fit a page, and each is served by another lane, beginning with any.
template <std::uint64_t PageBytes>
QUARRY_DEVICE typename scatter<PageBytes>::share scatter<PageBytes>::hand_out(
    scatter_pages pages, simt::lane_mask all, std::uint32_t capacity, std::uint32_t page) {
  const scatter_group us(all, capacity);
  const std::uint32_t random = us.agree(windows::draw());
  if (page == none) page = windows::first_place(pages, us, capacity, random);
  const unsigned me = simt::lane_id();
  const simt::lane_mask below_me = simt::lanes_below();
  const scatter_state state(pages.word(page).load(simt::relaxed));
  const simt::lane_mask finders = us.which(state.room(capacity) != 0);
  const std::uint32_t count = simt::popc(finders);
  const std::uint32_t turn = windows::below(count, random * 0x9e3779b9u);

  // Team t is served by finder t + turn: up to all its chunks are reserved at once.
  std::uint32_t got = 0;
  if ((finders >> me & 1) != 0) {
    const std::uint32_t number = simt::popc(finders & below_me);
    const std::uint32_t first = (number < turn ? number + count - turn : number - turn) * capacity;
    if (first < us.size()) got = reserve(pages, page, state, capacity, us.size() - first);
  }
  const std::uint32_t team = capacity < simt::warp_size ? us.rank / capacity : 0;
  const std::uint32_t place = us.rank - team * capacity;
  const bool seen = team < count;
  const std::uint32_t number = team + turn < count ? team + turn : team + turn - count;
  const unsigned helper = seen ? nth_set_bit(finders, number) : me;
  got = simt::shuffle(us.all, got, helper);
  page = simt::shuffle(us.all, page, helper);
  const bool served = seen && place < got % 64;

  // The chunks from the cursor on, claimed together where they share a word.
  std::uint32_t chunk = got / 64 + place;
  if (chunk >= capacity) chunk -= capacity;
  const bool head = served && (place == 0 || chunk % 32 == 0);
  const simt::lane_mask heads = us.which(head) & (below_me << 1 | 1);
  std::uint32_t was = 0;
  if (head) {
    std::uint32_t length = windows::smaller(got % 64 - place, capacity - chunk);
    length = windows::smaller(length, 32 - chunk % 32);
    was = simt::atomic_ref<std::uint32_t>(bits(pages, page)[chunk / 32])
              .fetch_or(~std::uint32_t{0} >> (32 - length) << chunk % 32, simt::acquire);
  }
  was = simt::shuffle(us.all, was, served ? simt::highest_bit(heads) : me);
  simt::sync_warp(us.all);
  return {served ? page : none, static_cast<std::uint16_t>(chunk), (was >> chunk % 32 & 1) == 0,
          seen && got % 64 == 0};
}

/// Up to `wanted` chunks of a page, no more than it has: how many, plus 64 times the first. 0 where
/// there is no room, and where others were faster four times: then there are better places.
template <std::uint64_t PageBytes>
QUARRY_DEVICE std::uint32_t scatter<PageBytes>::reserve(const scatter_pages& pages,
                                                        std::uint32_t page, scatter_state state,
                                                        std::uint32_t capacity,
                                                        std::uint32_t wanted) {
  std::uint32_t word = state.word();
  for (int attempt = 0; attempt < 4; ++attempt) {
    const scatter_state now(word);
    const std::uint32_t k = windows::smaller(now.room(capacity), wanted);
    if (k == 0) return 0;
    if (pages.word(page).compare_exchange(word, now.reserve(capacity, k).word(), simt::acquire))
      return now.first() * 64 + k;
  }
  return 0;
}

}  // namespace quarry

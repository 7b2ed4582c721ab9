// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The chunk headers of circular: the end of a chunk, and its state.
///
/// Headers are outside the pool, one header per granule, so no lane reads user data as a header
/// (the published form does, after a merge). While granules have 32 bytes, the headers take an
/// eighth of the pool's size with fused_header and a quarter with split_header. A chunk starts at
/// granule `at` and ends where the next chunk starts. A header is in one of five states:
///
///   free       a free chunk starts here; only its owner stores this state, only try_take() and
///              try_merge() leave it
///   busy       a lane has taken the chunk and is about to split it; the chunk becomes used or free
///              next
///   used       a chunk in use starts here
///   merged     a tombstone: the chunk that started here was merged into its predecessor
///   unwritten  0: no chunk ever started here
///
/// All states but `unwritten` hold a link: `next` is a later granule, which is the start of a chunk
/// or a tombstone. A header never becomes unwritten again. Stale offsets are harmless, since
/// tombstones link forward: a traversal that starts at a merged chunk returns to the list. The
/// header after the last granule is the end marker. It is always used, and its link is 0, which
/// closes the ring.
///
///   fused_header   CFMalloc: one word, next << 2 | state. try_take() is one compare-exchange on
///                  the word. It describes the chunk completely, so ABA is harmless: an equal
///                  word means an equal chunk.
///   split_header   CMalloc: one word for the state and one for `next`. try_take() claims the state
///                  and then loads `next`, which no other lane changes any more. publish_free()
///                  stores `next` before the state.
///
/// Ordering: publish_free() releases; try_take() and try_merge() acquire. The accesses of the
/// previous owner happen before those of the next one. A traversal that loads a stale word
/// continues at a header that was written before. If this header still reads as 0, its store is in
/// flight, and the lane loads it again. publish_used() follows the counting of freed chunks
/// (regions.hpp), and load() precedes the load of a counter.
/// Progress: try_take() and try_merge() wait only for a store in flight.

#include <quarry/core/carve.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>

#include <cstdint>

namespace quarry {

enum class chunk_state : std::uint32_t { unwritten = 0, used = 1, free = 2, busy = 3, merged = 4 };

class fused_header {
 public:
  static constexpr std::uint64_t max_granules = (std::uint64_t{1} << 30) - 2;

  fused_header() = default;
  fused_header(carve& metadata, std::uint64_t granules)
      : words_(metadata.take<std::uint32_t>("words", granules + 1)) {}

  /// Returns the state of any header. Sets `next` to its link, unless the header is unwritten.
  QUARRY_DEVICE chunk_state load(std::uint32_t at, std::uint32_t& next) const {
    const std::uint32_t seen = word(at).load(simt::by_value);
    next = seen >> 2;
    return seen != 0 && seen % 4 == 0 ? chunk_state::merged : static_cast<chunk_state>(seen % 4);
  }
  // try_take() and try_merge() require a header that was written. They set `next` to its link.

  /// Takes the chunk at `at` if it is free: its state becomes busy.
  QUARRY_DEVICE bool try_take(std::uint32_t at, std::uint32_t& next) const {
    return claim(at, next, chunk_state::busy);
  }
  /// Merges the chunk at `at` into the caller's chunk if it is free: its header becomes a
  /// tombstone.
  QUARRY_DEVICE bool try_merge(std::uint32_t at, std::uint32_t& next) const {
    return claim(at, next, chunk_state::merged);
  }
  /// Returns the end of a chunk that the caller owns.
  QUARRY_DEVICE std::uint32_t end_of(std::uint32_t at) const {
    return word(at).load(simt::relaxed) >> 2;
  }
  /// Publishes the caller's chunk [at, next) as used.
  QUARRY_DEVICE void publish_used(std::uint32_t at, std::uint32_t next) const {
    word(at).store(fuse(next, chunk_state::used), simt::after_fence);
  }
  /// Publishes the caller's chunk [at, next) as free.
  QUARRY_DEVICE void publish_free(std::uint32_t at, std::uint32_t next) const {
    word(at).store(fuse(next, chunk_state::free), simt::release);
  }
  /// Writes the end marker: used, with a link to the front.
  QUARRY_DEVICE void write_end_marker(std::uint32_t at) const { publish_used(at, 0); }

  // Between kernels.
  bool is_free(std::uint32_t at) const {
    return words_[at] % 4 == static_cast<std::uint32_t>(chunk_state::free);
  }
  std::uint32_t next(std::uint32_t at) const { return words_[at] >> 2; }

  /// Loads a word that was written; waits while its store is in flight (0).
  QUARRY_DEVICE static std::uint32_t load_written(std::uint32_t& word) {
    for (;;) {
      if (const std::uint32_t seen = simt::atomic_ref<std::uint32_t>(word).load(simt::relaxed))
        return seen;
      simt::spin();
    }
  }

 private:
  QUARRY_DEVICE static constexpr std::uint32_t fuse(std::uint32_t next, chunk_state state) {
    return next << 2 | static_cast<std::uint32_t>(state) % 4;
  }
  QUARRY_DEVICE bool claim(std::uint32_t at, std::uint32_t& next, chunk_state desired) const {
    std::uint32_t seen = load_written(words_[at]);
    next = seen >> 2;
    return seen % 4 == static_cast<std::uint32_t>(chunk_state::free) &&
           word(at).compare_exchange(seen, fuse(next, desired), simt::acquire);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> word(std::uint32_t at) const {
    return simt::atomic_ref<std::uint32_t>(words_[at]);
  }
  std::uint32_t* words_;
};

class split_header {
 public:
  static constexpr std::uint64_t max_granules = fused_header::max_granules;

  split_header() = default;
  split_header(carve& metadata, std::uint64_t granules)
      : headers_(metadata.take<header>("headers", granules + 1)) {}

  QUARRY_DEVICE chunk_state load(std::uint32_t at, std::uint32_t& next) const {
    const std::uint32_t seen = state(at).load(simt::by_value);
    next = end_of(at);
    return static_cast<chunk_state>(seen);
  }
  QUARRY_DEVICE bool try_take(std::uint32_t at, std::uint32_t& next) const {
    return claim(at, next, chunk_state::busy);
  }
  QUARRY_DEVICE bool try_merge(std::uint32_t at, std::uint32_t& next) const {
    return claim(at, next, chunk_state::merged);
  }
  QUARRY_DEVICE std::uint32_t end_of(std::uint32_t at) const {
    return next_word(at).load(simt::relaxed);
  }
  QUARRY_DEVICE void publish_used(std::uint32_t at, std::uint32_t next) const {
    next_word(at).store(next, simt::relaxed);
    state(at).store(static_cast<std::uint32_t>(chunk_state::used), simt::after_fence);
  }
  QUARRY_DEVICE void publish_free(std::uint32_t at, std::uint32_t next) const {
    next_word(at).store(next, simt::relaxed);
    state(at).store(static_cast<std::uint32_t>(chunk_state::free), simt::release);
  }
  QUARRY_DEVICE void write_end_marker(std::uint32_t at) const { publish_used(at, 0); }

  bool is_free(std::uint32_t at) const {
    return headers_[at].state == static_cast<std::uint32_t>(chunk_state::free);
  }
  std::uint32_t next(std::uint32_t at) const { return headers_[at].next; }

 private:
  struct header {
    std::uint32_t state;
    std::uint32_t next;
  };

  QUARRY_DEVICE bool claim(std::uint32_t at, std::uint32_t& next, chunk_state desired) const {
    std::uint32_t seen = fused_header::load_written(headers_[at].state);
    const bool taken =
        seen == static_cast<std::uint32_t>(chunk_state::free) &&
        state(at).compare_exchange(seen, static_cast<std::uint32_t>(desired), simt::acquire);
    next = end_of(at);
    return taken;
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> state(std::uint32_t at) const {
    return simt::atomic_ref<std::uint32_t>(headers_[at].state);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> next_word(std::uint32_t at) const {
    return simt::atomic_ref<std::uint32_t>(headers_[at].next);
  }
  header* headers_;
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The chunk headers of circular: where a chunk ends, and whether it is free.
///
/// Headers are kept outside the pool, one place per granule, so that nobody ever reads user data as a
/// header (the published form does, after a merge). A chunk starts at granule `at` and ends where the
/// next one starts. A place is in one of five states:
///
///   free       a free chunk starts here; only its owner made it so, and only take() and swallow() end it
///   busy       somebody has taken the chunk and is about to cut it: soon it is used, or free again
///   used       a chunk in use starts here
///   merged     a *tombstone*: a chunk started here that was merged away
///   unwritten  0: no chunk ever started here
///
/// All but the last say where to go on: next lies further on, at the start of a chunk or at a tombstone. A place
/// that was written once is never unwritten again. Because tombstones lead on, a stale offset is harmless: a walk
/// that starts at a merged-away chunk comes back to the list. The place after the last granule is the end marker,
/// used for ever; its next is 0, which closes the circle.
///
/// fused_header   CFMalloc: one word, next << 2 | state. take() is one compare-exchange on the whole word;
///                the word describes the chunk fully, so finding the same word again (ABA) is finding the
///                same chunk again.
/// split_header   CMalloc: a word for the state and one for next. take() claims the state and only then reads
///                next, which nobody else changes any more. A free chunk gets its next first, then the state.
///
/// Ordering: put() releases, take() and swallow() acquire, so that what the old owner wrote is past when the
/// new one starts. A walker that reads an old word is sent on to a place that was a chunk's start then; if it reads
/// the place's word from before it was ever written (0), the store is under way and it looks again. keep() comes after
/// what was counted (circular_regions.hpp), and look() before a counter is read.

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

  /// What is at any place; `next` is where to go on, if it was ever written.
  QUARRY_DEVICE chunk_state look(std::uint32_t at, std::uint32_t& next) const {
    const std::uint32_t seen = word(at).load(simt::by_value);
    next = seen >> 2;
    return seen != 0 && seen % 4 == 0 ? chunk_state::merged : static_cast<chunk_state>(seen % 4);
  }
  // At a place that was a chunk's start once. In any case `next` is where to go on.
  /// Makes the chunk at `at` ours if it is free, to be cut: busy.
  QUARRY_DEVICE bool take(std::uint32_t at, std::uint32_t& next) const {
    return claim(at, next, chunk_state::busy);
  }
  /// Makes the chunk at `at` part of ours if it is free: a tombstone.
  QUARRY_DEVICE bool swallow(std::uint32_t at, std::uint32_t& next) const {
    return claim(at, next, chunk_state::merged);
  }
  /// Where a chunk of ours ends.
  QUARRY_DEVICE std::uint32_t end_of(std::uint32_t at) const {
    return word(at).load(simt::relaxed) >> 2;
  }
  /// A chunk of ours, in use up to there from now on.
  QUARRY_DEVICE void keep(std::uint32_t at, std::uint32_t next) const {
    word(at).store(fuse(next, chunk_state::used), simt::after_fence);
  }
  /// A chunk of ours, free from now on.
  QUARRY_DEVICE void put(std::uint32_t at, std::uint32_t next) const {
    word(at).store(fuse(next, chunk_state::free), simt::release);
  }
  /// The end marker: used, and the ring goes on at the front.
  QUARRY_DEVICE void close(std::uint32_t at) const { keep(at, 0); }

  // Between kernels.
  bool is_free(std::uint32_t at) const {
    return words_[at] % 4 == static_cast<std::uint32_t>(chunk_state::free);
  }
  std::uint32_t next(std::uint32_t at) const { return words_[at] >> 2; }

  /// The word of a place that was a chunk's start once: if it is 0, the store is under way.
  QUARRY_DEVICE static std::uint32_t written(std::uint32_t& word) {
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
  QUARRY_DEVICE bool claim(std::uint32_t at, std::uint32_t& next, chunk_state as) const {
    std::uint32_t seen = written(words_[at]);
    next = seen >> 2;
    return seen % 4 == static_cast<std::uint32_t>(chunk_state::free) &&
           word(at).compare_exchange(seen, fuse(next, as), simt::acquire);
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

  QUARRY_DEVICE chunk_state look(std::uint32_t at, std::uint32_t& next) const {
    const std::uint32_t seen = state(at).load(simt::by_value);
    next = end_of(at);
    return static_cast<chunk_state>(seen);
  }
  QUARRY_DEVICE bool take(std::uint32_t at, std::uint32_t& next) const {
    return claim(at, next, chunk_state::busy);
  }
  QUARRY_DEVICE bool swallow(std::uint32_t at, std::uint32_t& next) const {
    return claim(at, next, chunk_state::merged);
  }
  QUARRY_DEVICE std::uint32_t end_of(std::uint32_t at) const {
    return next_word(at).load(simt::relaxed);
  }
  QUARRY_DEVICE void keep(std::uint32_t at, std::uint32_t next) const {
    next_word(at).store(next, simt::relaxed);
    state(at).store(static_cast<std::uint32_t>(chunk_state::used), simt::after_fence);
  }
  QUARRY_DEVICE void put(std::uint32_t at, std::uint32_t next) const {
    next_word(at).store(next, simt::relaxed);
    state(at).store(static_cast<std::uint32_t>(chunk_state::free), simt::release);
  }
  QUARRY_DEVICE void close(std::uint32_t at) const { keep(at, 0); }

  bool is_free(std::uint32_t at) const {
    return headers_[at].state == static_cast<std::uint32_t>(chunk_state::free);
  }
  std::uint32_t next(std::uint32_t at) const { return headers_[at].next; }

 private:
  struct header {
    std::uint32_t state;
    std::uint32_t next;
  };

  QUARRY_DEVICE bool claim(std::uint32_t at, std::uint32_t& next, chunk_state as) const {
    std::uint32_t seen = fused_header::written(headers_[at].state);
    const bool ours =
        seen == static_cast<std::uint32_t>(chunk_state::free) &&
        state(at).compare_exchange(seen, static_cast<std::uint32_t>(as), simt::acquire);
    next = end_of(at);
    return ours;
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

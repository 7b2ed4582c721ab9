// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The chunk headers of circular: where a chunk ends, and whether it is free.
///
/// Headers are kept outside the pool, one place per granule, so that nobody ever reads user data as a
/// header (the published form does, after a merge). A chunk starts at granule `at` and ends where the
/// next one starts. A place is in one of three states:
///
///   free       a free chunk starts here; only its owner made it so, and only take() ends it
///   used       a chunk in use starts here; or a *tombstone*: the start of a chunk that was merged away.
///              Both say "go on at next", and next lies further on, at the start of a chunk or at
///              another tombstone. A place that was a chunk's start once stays one of the two for ever.
///   unwritten  0: no chunk ever started here
///
/// Because tombstones lead on, a stale offset is harmless: a walk that starts at a merged-away chunk
/// comes back to the list. The place after the last granule is the end marker, used for ever; its next
/// is 0, which closes the circle.
///
/// fused_header   CFMalloc: one word, next << 1 | used. take() is one compare-exchange on the whole word;
///                the word describes the chunk fully, so finding the same word again (ABA) is finding the
///                same chunk again.
/// split_header   CMalloc: a word for the flag and one for next. take() claims the flag and only then reads
///                next, which nobody else changes any more. A free chunk gets its next first, then the flag.
///
/// Ordering: put() releases and take() acquires, so that what the old owner wrote is past when the new one
/// starts. Nothing else needs an order: a walker that reads an old word is sent on to a place that was a
/// chunk's start then; if it reads the place's word from before it was ever written (0), the store is under
/// way and it looks again.

#include <quarry/core/carve.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>

#include <cstdint>

namespace quarry {

class fused_header {
 public:
  static constexpr std::uint64_t max_granules = (std::uint64_t{1} << 31) - 2;

  fused_header() = default;
  fused_header(carve& metadata, std::uint64_t granules)
      : words_(metadata.take<std::uint32_t>("words", granules + 1)) {}

  /// Makes the chunk at `at` ours if it is free. In any case `next` is where to go on.
  QUARRY_DEVICE bool take(std::uint32_t at, std::uint32_t& next) const {
    std::uint32_t seen = written(words_[at]);
    next = seen >> 1;
    return (seen & 1) == 0 && word(at).compare_exchange(seen, seen | 1, simt::acquire);
  }
  /// Where a chunk of ours ends.
  QUARRY_DEVICE std::uint32_t end_of(std::uint32_t at) const { return word(at).load(simt::relaxed) >> 1; }
  /// A chunk of ours ends there from now on.
  QUARRY_DEVICE void keep(std::uint32_t at, std::uint32_t next) const {
    word(at).store(next << 1 | 1, simt::relaxed);
  }
  /// A chunk of ours, free from now on.
  QUARRY_DEVICE void put(std::uint32_t at, std::uint32_t next) const {
    word(at).store(next << 1, simt::release);
  }

  /// The end marker: used, and the ring goes on at the front.
  QUARRY_DEVICE void close(std::uint32_t at) const { keep(at, 0); }

  // Between kernels.
  bool is_free(std::uint32_t at) const { return (words_[at] & 1) == 0; }
  std::uint32_t next(std::uint32_t at) const { return words_[at] >> 1; }

  /// The word of a place that was a chunk's start once.
  QUARRY_DEVICE static std::uint32_t written(std::uint32_t& word) {
    std::uint32_t seen = simt::atomic_ref<std::uint32_t>(word).load(simt::relaxed);
    while (seen == 0) {
      simt::spin();
      seen = simt::atomic_ref<std::uint32_t>(word).load(simt::relaxed);
    }
    return seen;
  }

 private:
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> word(std::uint32_t at) const {
    return simt::atomic_ref<std::uint32_t>(words_[at]);
  }
  std::uint32_t* words_;
};

class split_header {
 public:
  static constexpr std::uint64_t max_granules = (std::uint64_t{1} << 31) - 2;

  split_header() = default;
  split_header(carve& metadata, std::uint64_t granules)
      : headers_(metadata.take<header>("headers", granules + 1)) {}

  QUARRY_DEVICE bool take(std::uint32_t at, std::uint32_t& next) const {
    std::uint32_t seen = fused_header::written(headers_[at].flag);
    const bool ours = seen == free_flag && flag(at).compare_exchange(seen, used_flag, simt::acquire);
    next = end_of(at);
    return ours;
  }
  QUARRY_DEVICE std::uint32_t end_of(std::uint32_t at) const { return next_word(at).load(simt::relaxed); }
  QUARRY_DEVICE void keep(std::uint32_t at, std::uint32_t next) const {
    next_word(at).store(next, simt::relaxed);
  }
  QUARRY_DEVICE void put(std::uint32_t at, std::uint32_t next) const {
    next_word(at).store(next, simt::relaxed);
    flag(at).store(free_flag, simt::release);
  }
  QUARRY_DEVICE void close(std::uint32_t at) const { flag(at).store(used_flag, simt::relaxed); }

  bool is_free(std::uint32_t at) const { return headers_[at].flag == free_flag; }
  std::uint32_t next(std::uint32_t at) const { return headers_[at].next; }

 private:
  static constexpr std::uint32_t used_flag = 1;
  static constexpr std::uint32_t free_flag = 2;
  struct header {
    std::uint32_t flag;
    std::uint32_t next;
  };

  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> flag(std::uint32_t at) const {
    return simt::atomic_ref<std::uint32_t>(headers_[at].flag);
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> next_word(std::uint32_t at) const {
    return simt::atomic_ref<std::uint32_t>(headers_[at].next);
  }
  header* headers_;
};

}  // namespace quarry

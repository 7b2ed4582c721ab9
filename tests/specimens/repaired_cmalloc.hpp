// SPDX-License-Identifier: Apache-2.0
#pragma once
/// repaired_cmalloc: the circular list of Vinkler and Havran (2014) with every defect of the published
/// form repaired and its character kept. A specimen that must survive.
///
///   words   next << 1 | used, one for each 16 bytes of the pool, beside it
///
/// A word is the header of the chunk that starts there. A header that is merged away stays behind as a
/// Used tombstone which points forward. So a Free word always denotes a free chunk (only its owner
/// writes Free, only an exchange removes it) and describes it fully, which makes ABA and old offsets
/// harmless. The end marker is Used for ever.
/// Bound: every visit moves forward or passes the marker; a walk ends after as many visits as one round
/// can have.
/// Absorbs: a malloc that finds its chunk too small takes the free chunks that follow into it.
/// Ordering: Free is stored with release, taken with acquire; whoever merges hands both on.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/ids.hpp>

#include <cstdint>
#include <string>

namespace quarry::specimens {

template <bool Absorbs = false, std::uint32_t Offsets = 1>
class repaired_cmalloc {
 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true, .min_pool = 64 * Offsets};

  repaired_cmalloc(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        end_(static_cast<std::uint32_t>(pool.size / 16)),
        offsets_(metadata.take<std::uint32_t>("offsets", Offsets)),
        words_(metadata.take<std::uint32_t>("words", end_ + 1)) {}

  void initialise(std::uint64_t lane, std::uint64_t) const {
    if (lane != 0) return;
    const std::uint32_t length = end_ / Offsets;
    for (std::uint32_t i = 0; i < Offsets; ++i) {
      offsets_[i] = i * length;
      words_[i * length] = (i + 1 == Offsets ? end_ : (i + 1) * length) << 1;
    }
    words_[end_] = 1;
  }

  void* malloc(std::size_t n) const {
    if (n == 0 || n > std::uint64_t{end_} * 16) return nullptr;
    const auto size = static_cast<std::uint32_t>((n + 15) / 16);
    std::uint32_t offset = load(my_offset());
    for (std::uint32_t visits = 0; visits <= end_ + 1; ++visits) {
      const std::uint32_t word = load(words_ + offset);
      const std::uint32_t next = word >> 1;
      if ((word & 1) == 0 && (Absorbs || offset + size <= next) && take(offset, word)) {
        const std::uint32_t end = Absorbs ? absorb(next, offset + size) : next;
        if (offset + size <= end) return hand_out(offset, size, end);
        store(words_ + offset, end << 1);
        offset = end;
      } else {
        offset = next;
      }
    }
    return nullptr;
  }

  void free(void* p) const {
    if (p == nullptr) return;
    const auto offset = static_cast<std::uint32_t>((static_cast<std::byte*>(p) - pool_) / 16);
    const std::uint32_t next = load(words_ + offset) >> 1;
    const std::uint32_t end = absorb(next, next + 1);
    if (end != next) store(my_offset(), end);
    store(words_ + offset, end << 1);
  }

  // Quiescent: the chunks lead forward from the first word to the marker.
  std::string check_invariants() const {
    std::uint32_t at = 0;
    while (at < end_) {
      const std::uint32_t next = words_[at] >> 1;
      if (next <= at || next > end_)
        return "the chunk at word " + std::to_string(at) + " leads to " + std::to_string(next);
      at = next;
    }
    return words_[end_] == 1 ? std::string{} : "the end marker has changed";
  }
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = std::uint64_t{end_} * 16;
    std::uint64_t blocks = 0, units = 0;
    for (std::uint32_t at = 0; at < end_; at = words_[at] >> 1) {
      if ((words_[at] & 1) == 0) continue;
      ++blocks;
      units += (words_[at] >> 1) - at;
    }
    s.live_blocks = blocks;
    s.live_bytes = units * 16;
    return s;
  }

 private:
  std::uint32_t* my_offset() const { return offsets_ + simt::sm_id() % Offsets; }

  bool take(std::uint32_t offset, std::uint32_t word) const {
    return simt::atomic_ref(words_[offset]).compare_exchange(word, word | 1, simt::acq_rel);
  }
  // Takes free chunks from `next` on until `wanted` is reached; the end of what is then owned.
  std::uint32_t absorb(std::uint32_t next, std::uint32_t wanted) const {
    while (next < wanted) {
      const std::uint32_t word = load(words_ + next);
      if ((word & 1) != 0 || !take(next, word)) break;
      next = word >> 1;
    }
    return next;
  }
  void* hand_out(std::uint32_t offset, std::uint32_t size, std::uint32_t end) const {
    std::uint32_t next = end;
    if (offset + size < end && (Absorbs || offset + size + size / 2 <= end)) {
      next = offset + size;
      store(words_ + next, end << 1);
    }
    store(words_ + offset, next << 1 | 1);
    store(my_offset(), next);
    return pool_ + std::uint64_t{offset} * 16;
  }

  static std::uint32_t load(std::uint32_t* word) {
    return simt::atomic_ref(*word).load(simt::acquire);
  }
  static void store(std::uint32_t* word, std::uint32_t v) {
    simt::atomic_ref(*word).store(v, simt::release);
  }

  std::byte* pool_;
  std::uint32_t end_;
  std::uint32_t* offsets_;
  std::uint32_t* words_;
};

static_assert(freeing_allocator<repaired_cmalloc<>> &&
              freeing_allocator<repaired_cmalloc<true, 4>>);

}  // namespace quarry::specimens

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// repaired_cmalloc: the circular list of Vinkler and Havran (2014) with all defects of the
/// published form repaired. The explorer must find no failure in it.
///
///   words   next << 1 | used, one word per 16 bytes of the pool, outside the pool
///
/// A word is the header of the chunk that starts at its 16 bytes. A merged header remains as a Used
/// tombstone that links forward. Invariant: a Free word is the header of a free chunk and describes
/// it completely, since only the owner of a chunk stores Free and only a compare-and-swap removes
/// it. ABA and stale offsets are therefore harmless. The end marker is always Used.
/// Absorbs: a malloc whose chunk is too small merges the free chunks that follow.
/// Ordering: Free is stored with release and taken with acquire; a lane that merges does both.
/// Progress: each step of a traversal moves forward or passes the marker. A traversal ends after
/// the largest number of steps that one round can have.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/ids.hpp>

#include <cstdint>
#include <string>

namespace quarry::mutants {

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
        if (offset + size <= end) return split(offset, size, end);
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

  // Requires quiescence. The chunks ascend from the first word to the marker.
  std::string check_invariants() const {
    std::uint32_t at = 0;
    while (at < end_) {
      const std::uint32_t next = words_[at] >> 1;
      if (next <= at || next > end_)
        return "the chunk at word " + std::to_string(at) + " links to " + std::to_string(next);
      at = next;
    }
    return words_[end_] == 1 ? std::string{} : "the end marker was overwritten";
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
  // Takes the free chunks from `next` up to `wanted`. Returns the end of the owned range.
  std::uint32_t absorb(std::uint32_t next, std::uint32_t wanted) const {
    while (next < wanted) {
      const std::uint32_t word = load(words_ + next);
      if ((word & 1) != 0 || !take(next, word)) break;
      next = word >> 1;
    }
    return next;
  }
  // Frees what the request does not need of the owned chunk [offset, end). Returns the block.
  void* split(std::uint32_t offset, std::uint32_t size, std::uint32_t end) const {
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

}  // namespace quarry::mutants

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CMalloc as published: Vinkler and Havran (2014), Algorithm 3, line by line, with its defects.
/// With several offsets the algorithm is CMMalloc (their section 4.4). A flag repairs each defect
/// alone.
///
///   pool   | pad | flag next | user … | flag next | user … | … | flag next |     32-bit words
///                  chunk 0              chunk 1                 end marker: next is chunk 0
///
///   defect  repair             what goes wrong
///   A       marker_used        The end marker is Free, so freeing the last chunk merges the
///           marker.
///   B       out_of_band        A merged header becomes user data, and a delayed traversal reads
///           it.
///   C       next_before_flag   A new chunk is Free before its `next` is written.
///   D       out_of_band        Several offsets: a merge leaves the offsets of other
///                              multiprocessors stale. D is defect B without concurrency.
///   E       bounded            The traversal does not terminate when the pool is full.
///
/// With `out_of_band`, flag and next are in two arrays beside the pool, with one element per 16
/// bytes, and a merged header remains as a Used tombstone that links forward. An access to a header
/// outside the pool ends the run with "wild access" and does not crash the process.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/explore.hpp>

#include <cstdint>
#include <string>

namespace quarry::mutants {

struct cmalloc_repairs {
  bool marker_used = false;
  bool out_of_band = false;
  bool next_before_flag = false;
  bool bounded = false;
};

template <cmalloc_repairs Fix = cmalloc_repairs{}, std::uint32_t Offsets = 1>
class published_cmalloc {
 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true, .min_pool = 64 * Offsets};

  published_cmalloc(memory_range pool, carve& metadata)
      : words_(reinterpret_cast<std::uint32_t*>(pool.begin)),
        end_(Fix.out_of_band ? static_cast<std::uint32_t>(pool.size / 16)
                             : static_cast<std::uint32_t>(pool.size / 16 * 4 - header)),
        mem_offset_(metadata.take<std::uint32_t>("memOffset", Offsets)) {
    if constexpr (Fix.out_of_band) {
      flags_ = metadata.take<std::uint32_t>("flags", end_ + 1);
      nexts_ = metadata.take<std::uint32_t>("nexts", end_ + 1);
    }
  }

  // One chunk per offset; the chunks cover the pool.
  void initialise(std::uint64_t lane, std::uint64_t) const {
    if (lane != 0) return;
    const std::uint32_t length = align_down((end_ - start) / Offsets, unit);
    for (std::uint32_t i = 0; i < Offsets; ++i) {
      const std::uint32_t chunk = start + i * length;
      mem_offset_[i] = chunk;
      *flag(chunk) = Free;
      *next_of(chunk) = i + 1 == Offsets ? end_ : chunk + length;
    }
    *flag(end_) = Fix.marker_used ? Used : Free;
    *next_of(end_) = start;
  }

  void* malloc(std::size_t n) const {
    if (n == 0 || n > end_ * std::uint64_t{word_bytes}) return nullptr;
    std::uint32_t offset = load(my_offset());  // 2
    const std::uint32_t size = units_for(n);   // 3
    std::uint32_t next = 0;
    std::int32_t chunk_size = 0;
    for (std::uint32_t visits = 0;; ++visits) {  // 4
      if (Fix.bounded && visits > end_ / unit) return nullptr;
      const std::uint32_t lock = cas(flag(offset), Free, Used);    // 5
      next = load(next_of(offset));                                // 6
      chunk_size = static_cast<std::int32_t>(next - offset);       // 7
      if (lock == Free) {                                          // 8
        if (static_cast<std::int32_t>(size) <= chunk_size) break;  // 9, 10
        store(flag(offset), Free);                                 // 11
      }
      offset = next;  // 12
    }
    std::uint32_t new_next = next;  // 13
    const auto length = static_cast<std::uint32_t>(chunk_size);
    if (size + header <= length && size + size / 2 <= length && size < length) {  // 14, 15
      new_next = offset + size;                                                   // 16
      if constexpr (Fix.next_before_flag) {
        store(next_of(new_next), next);
        store(flag(new_next), Free);
      } else {
        store(flag(new_next), Free);     // 17
        store(next_of(new_next), next);  // 18
      }
      store(next_of(offset), new_next);  // 20
    }
    store(my_offset(), new_next);  // 21
    return reinterpret_cast<std::byte*>(words_) +
           std::uint64_t{offset + header} * word_bytes;  // 22
  }

  void free(void* p) const {
    if (p == nullptr) return;
    const auto distance = static_cast<std::byte*>(p) - reinterpret_cast<std::byte*>(words_);
    const std::uint32_t offset = static_cast<std::uint32_t>(distance / word_bytes) - header;
    std::uint32_t next = load(next_of(offset));  // 27
    if (cas(flag(next), Free, Used) == Free) {   // 28
      next = load(next_of(next));                // 30
      store(my_offset(), next);                  // 31
      store(next_of(offset), next);              // 32
    }
    store(flag(offset), Free);  // 34
  }

  // Requires quiescence. The list ascends from the first chunk, and its last chunk links back to
  // it.
  std::string check_invariants() const {
    for (std::uint32_t at = start, visits = 0; visits <= end_; ++visits) {
      if (*flag(at) > Used)
        return "the flag at " + std::to_string(at) + " is neither free nor used";
      const std::uint32_t next = *next_of(at);
      if (next == start) return {};
      if (next <= at || next > end_ || (next - start) % unit != 0)
        return "the chunk at " + std::to_string(at) + " links to " + std::to_string(next);
      at = next;
    }
    return "the list does not return to its first chunk";
  }
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = std::uint64_t{end_} * word_bytes;
    return s;
  }

 private:
  static constexpr std::uint32_t Free = 0;
  static constexpr std::uint32_t Used = 1;
  static constexpr std::int32_t word_bytes = Fix.out_of_band ? 16 : 4;  // the unit of an offset
  static constexpr std::uint32_t header = Fix.out_of_band ? 0 : 2;
  static constexpr std::uint32_t unit = Fix.out_of_band ? 1 : 4;  // 16 bytes
  static constexpr std::uint32_t start = header;  // in band: aligns user memory to 16 bytes

  // Header and request, a multiple of 16 bytes.
  static std::uint32_t units_for(std::size_t n) {
    return static_cast<std::uint32_t>(align_up(std::uint64_t{n} + header * 4, 16) / word_bytes);
  }

  std::uint32_t* my_offset() const { return mem_offset_ + simt::sm_id() % Offsets; }
  std::uint32_t* flag(std::uint32_t offset) const {
    check(offset);
    return Fix.out_of_band ? flags_ + offset : words_ + offset;
  }
  std::uint32_t* next_of(std::uint32_t offset) const {
    check(offset);
    return Fix.out_of_band ? nexts_ + offset : words_ + offset + 1;
  }
  void check(std::uint32_t offset) const {
    if (offset > end_)
      simt::fail("wild access: a header was read at offset " + std::to_string(offset));
  }

  static std::uint32_t load(std::uint32_t* word) {
    return simt::atomic_ref(*word).load(simt::acquire);
  }
  static void store(std::uint32_t* word, std::uint32_t v) {
    simt::atomic_ref(*word).store(v, simt::release);
  }
  static std::uint32_t cas(std::uint32_t* word, std::uint32_t expected, std::uint32_t desired) {
    simt::atomic_ref(*word).compare_exchange(expected, desired, simt::acq_rel);
    return expected;
  }

  std::uint32_t* words_;
  std::uint32_t end_;  // end of the last chunk, and offset of the marker
  std::uint32_t* mem_offset_;
  std::uint32_t* flags_ = nullptr;
  std::uint32_t* nexts_ = nullptr;
};

using published_cmmalloc = published_cmalloc<cmalloc_repairs{}, 4>;

static_assert(freeing_allocator<published_cmalloc<>> && freeing_allocator<published_cmmalloc>);

}  // namespace quarry::mutants

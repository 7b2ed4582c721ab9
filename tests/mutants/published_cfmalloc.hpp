// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CFMalloc as published: CMalloc with flag and next in one word (Vinkler and Havran 2014, section
/// 4.3), with its defects. With several offsets the algorithm is CFMMalloc. The paper gives no
/// listing; this file is Algorithm 3 with both fields in one word.
///
///   pool   | pad | next << 1 | used | user … | next << 1 | used | … | marker |     32-bit words
///
/// Defects A, B, D and E are those of CMalloc (published_cmalloc.hpp). Defect C cannot occur, since
/// one store publishes a new chunk. Defect B is more frequent: any even word of user data reads as
/// a free chunk.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/explore.hpp>

#include <cstdint>
#include <string>

namespace quarry::mutants {

struct cfmalloc_repairs {
  bool marker_used = false;
  bool bounded = false;
};

template <cfmalloc_repairs Fix = cfmalloc_repairs{}, std::uint32_t Offsets = 1>
class published_cfmalloc {
 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true, .min_pool = 64 * Offsets};

  published_cfmalloc(memory_range pool, carve& metadata)
      : words_(reinterpret_cast<std::uint32_t*>(pool.begin)),
        end_(static_cast<std::uint32_t>(pool.size / 16 * 4 - header)),
        mem_offset_(metadata.take<std::uint32_t>("memOffset", Offsets)) {}

  void initialise(std::uint64_t lane, std::uint64_t) const {
    if (lane != 0) return;
    const std::uint32_t length = align_down((end_ - start) / Offsets, 4);
    for (std::uint32_t i = 0; i < Offsets; ++i) {
      const std::uint32_t chunk = start + i * length;
      mem_offset_[i] = chunk;
      words_[chunk] = (i + 1 == Offsets ? end_ : chunk + length) << 1;
    }
    words_[end_] = start << 1 | std::uint32_t{Fix.marker_used};
  }

  void* malloc(std::size_t n) const {
    if (n == 0 || n > end_ * std::uint64_t{4}) return nullptr;
    std::uint32_t offset = load(my_offset());
    const auto size = static_cast<std::uint32_t>(align_up(std::uint64_t{n} + 4 * header, 16) / 4);
    std::uint32_t next = 0;
    std::int32_t chunk_size = 0;
    for (std::uint32_t visits = 0;; ++visits) {
      if (Fix.bounded && visits > end_ / 4) return nullptr;
      const std::uint32_t word = load(at(offset));
      next = word >> 1;
      chunk_size = static_cast<std::int32_t>(next - offset);
      const bool fits = (word & 1) == 0 && static_cast<std::int32_t>(size) <= chunk_size;
      if (fits && cas(at(offset), word, word | 1) == word) break;
      offset = next;
    }
    std::uint32_t new_next = next;
    const auto length = static_cast<std::uint32_t>(chunk_size);
    if (size + header <= length && size + size / 2 <= length) {
      new_next = offset + size;
      store(at(new_next), next << 1);
      store(at(offset), new_next << 1 | 1);
    }
    store(my_offset(), new_next);
    return words_ + offset + header;
  }

  void free(void* p) const {
    if (p == nullptr) return;
    const auto offset =
        static_cast<std::uint32_t>(static_cast<std::uint32_t*>(p) - words_) - header;
    std::uint32_t next = load(at(offset)) >> 1;
    const std::uint32_t word = load(at(next));
    if ((word & 1) == 0 && cas(at(next), word, word | 1) == word) {
      next = word >> 1;
      store(my_offset(), next);
    }
    store(at(offset), next << 1);
  }

  // Requires quiescence. The list ascends from the first chunk, and its last chunk links back to
  // it.
  std::string check_invariants() const {
    for (std::uint32_t here = start, visits = 0; visits <= end_; ++visits) {
      const std::uint32_t next = words_[here] >> 1;
      if (next == start) return {};
      if (next <= here || next > end_ || (next - start) % 4 != 0)
        return "the chunk at " + std::to_string(here) + " links to " + std::to_string(next);
      here = next;
    }
    return "the list does not return to its first chunk";
  }
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = std::uint64_t{end_} * 4;
    return s;
  }

 private:
  static constexpr std::uint32_t header = 1;
  static constexpr std::uint32_t start = 3;  // aligns user memory to 16 bytes

  std::uint32_t* my_offset() const { return mem_offset_ + simt::sm_id() % Offsets; }
  std::uint32_t* at(std::uint32_t offset) const {
    if (offset > end_)
      simt::fail("wild access: a header was read at offset " + std::to_string(offset));
    return words_ + offset;
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
  std::uint32_t end_;
  std::uint32_t* mem_offset_;
};

using published_cfmmalloc = published_cfmalloc<cfmalloc_repairs{}, 4>;

static_assert(freeing_allocator<published_cfmalloc<>> && freeing_allocator<published_cfmmalloc>);

}  // namespace quarry::mutants

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The headers that warp_aggregated places before user memory, as in Fig. 3 of Huang et al. (2013).
///
///   area   | count | offset, tag | bytes of a lane … | offset, tag | bytes of the next lane … |
///          0       8             16                   8 mod 16      0 mod 16
///
/// An area starts at a multiple of 16. Its header and the header of each compartment take 8 bytes.
/// A compartment is rounded up such that the next one starts at 8 modulo 16. User blocks are
/// therefore aligned to 16 bytes at no cost beyond the paper's headers: 56 bytes take 64, 64 bytes
/// take 80, and requests of 56, 56, 40 and 120 bytes make an area of 312 bytes, as in the paper.
///
/// A block that was not aggregated has the layout of an area with one compartment, with another tag
/// and an unused count. In both cases the upstream's block starts `offset` bytes before the user's
/// block.
///
/// Ordering: relaxed atomics, so that the executor counts the accesses. The owners of an area share
/// its count (warp_aggregated.hpp states the ordering). The header of a compartment belongs to the
/// owner of the block; whatever passes the block to another lane passes the header too.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry {

/// Whether a block is a compartment of a shared area.
enum class block_tag : std::uint32_t { single = 0x414c4f4e, compartment = 0x434f4d50 };

struct compartment_header {
  static constexpr std::uint32_t size = 8;

  std::uint32_t offset;  // from the upstream's block to the user's block
  block_tag tag;

  QUARRY_DEVICE static compartment_header of(void* block) {
    const std::uint64_t word = simt::atomic_ref<std::uint64_t>(word_of(block)).load(simt::relaxed);
    return {static_cast<std::uint32_t>(word), static_cast<block_tag>(word >> 32)};
  }
  QUARRY_DEVICE void write_before(void* block) const {
    simt::atomic_ref<std::uint64_t>(word_of(block))
        .store(std::uint64_t{static_cast<std::uint32_t>(tag)} << 32 | offset, simt::relaxed);
  }

 private:
  QUARRY_DEVICE static std::uint64_t& word_of(void* block) {
    return *(static_cast<std::uint64_t*>(block) - 1);
  }
};

struct area_header {
  static constexpr std::uint32_t size = 8;

  /// The number of live compartments of an area.
  QUARRY_DEVICE static simt::atomic_ref<std::uint32_t> count(void* area) {
    return simt::atomic_ref<std::uint32_t>(*static_cast<std::uint32_t*>(area));
  }
};

/// Returns the bytes that a request of n bytes takes in an area. Requires n < 2^32 - 24.
QUARRY_DEVICE constexpr std::uint32_t compartment_size(std::uint32_t n) {
  return align_up(n + compartment_header::size, 16);
}

static_assert(area_header::size + 2 * compartment_size(56) + compartment_size(40) +
                  compartment_size(120) ==
              312);

}  // namespace quarry

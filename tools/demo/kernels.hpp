// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the demo. Every lane owns one block; size and contents follow from its number.

#include "demo/demo.hpp"

#include <quarry/core/bits.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/random.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace quarry::tool {

struct demo_sizes {
  std::uint64_t least;
  std::uint64_t most;

  /// Octave first, then a size inside it: small blocks are as frequent as in programs.
  QUARRY_DEVICE std::uint64_t of(std::uint64_t lane) const {
    if (least == most) return least;
    simt::lane_random random(lane);
    const unsigned low = log2_floor(least);
    const unsigned octave = low + random.below(log2_floor(most) - low + 1);
    const std::uint64_t from = std::uint64_t{1} << octave;
    const std::uint64_t first = from < least ? least : from;
    const std::uint64_t last = from > most - from + 1 ? most : 2 * from - 1;
    const std::uint64_t span = last - first + 1;
    return first + ((std::uint64_t{random.next()} << 32 | random.next()) % span);
  }
};

/// What lane `lane` writes as word `word` of its block.
QUARRY_DEVICE inline std::uint32_t demo_word(std::uint64_t lane, std::uint64_t word) {
  return simt::scramble(static_cast<std::uint32_t>(lane * 0x9e3779b9u + word) ^
                        static_cast<std::uint32_t>(lane >> 32));
}

struct demo_block {
  std::byte* memory;
  std::uint64_t lane;
  std::uint64_t size;

  QUARRY_DEVICE void write() const {
    auto* words = reinterpret_cast<std::uint32_t*>(memory);
    for (std::uint64_t i = 0; i < size / 4; ++i) words[i] = demo_word(lane, i);
    for (std::uint64_t i = size / 4 * 4; i < size; ++i) memory[i] = tail();
  }
  QUARRY_DEVICE bool intact() const {
    const auto* words = reinterpret_cast<const std::uint32_t*>(memory);
    for (std::uint64_t i = 0; i < size / 4; ++i)
      if (words[i] != demo_word(lane, i)) return false;
    for (std::uint64_t i = size / 4 * 4; i < size; ++i)
      if (memory[i] != tail()) return false;
    return true;
  }
  QUARRY_DEVICE std::byte tail() const {
    return static_cast<std::byte>(demo_word(lane, ~std::uint64_t{0}));
  }
};

/// Takes a block a lane and, where told to, fills it while others still ask for theirs.
template <class Heap, bool Writes>
struct malloc_kernel {
  Heap heap;
  demo_sizes sizes;
  std::uint64_t lanes;
  std::byte** blocks;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t lane = simt::global_thread();
    if (lane >= lanes) return;
    const std::uint64_t size = sizes.of(lane);
    auto* block = static_cast<std::byte*>(heap.malloc(size));
    blocks[lane] = block;
    if (Writes && block != nullptr) demo_block{block, lane, size}.write();
  }
};

/// A later kernel finds every block as its lane left it.
struct check_kernel {
  demo_sizes sizes;
  std::uint64_t lanes;
  std::byte* const* blocks;
  std::uint8_t* spoilt;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t lane = simt::global_thread();
    if (lane >= lanes || blocks[lane] == nullptr) return;
    spoilt[lane] = demo_block{blocks[lane], lane, sizes.of(lane)}.intact() ? 0 : 1;
  }
};

/// Lane i frees the block of lane (i + distance) mod lanes.
template <class Heap>
struct free_kernel {
  Heap heap;
  std::uint64_t lanes;
  std::byte* const* blocks;
  std::uint64_t distance;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t lane = simt::global_thread();
    if (lane < lanes) heap.free(blocks[(lane + distance) % lanes]);
  }
};

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The kernels of the demo. Every lane owns one block. The lane number determines size and
/// contents.

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

  /// Returns the block size of a lane: a random octave, then a random size in that octave.
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

/// Returns the value of word `word` in the block of lane `lane`.
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

/// Every lane allocates one block. If Writes, the lane fills the block while other lanes allocate.
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

/// Checks the contents of every block, in a later kernel than the writes.
struct check_kernel {
  demo_sizes sizes;
  std::uint64_t lanes;
  std::byte* const* blocks;
  std::uint8_t* corrupt;

  QUARRY_DEVICE void operator()() const {
    const std::uint64_t lane = simt::global_thread();
    if (lane >= lanes || blocks[lane] == nullptr) return;
    corrupt[lane] = demo_block{blocks[lane], lane, sizes.of(lane)}.intact() ? 0 : 1;
  }
};

/// Every lane frees one block: lane i that of lane (i + distance) mod lanes.
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

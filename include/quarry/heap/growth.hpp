// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How a heap may grow between kernels.
///
///   quarry::heap<quarry::slab> heap(256_MiB, {.max = 16_GiB});
///   kernel<<<…>>>(heap.ref());
///   heap.adapt();                       // twice as large if it was short of memory
///   kernel<<<…>>>(heap.ref());          // refs taken before are good, too
///
/// Addresses for `max` are reserved at once, memory comes when the heap grows (growing_memory.hpp), and no block
/// moves. Metadata is laid out for `max` and has its memory from the beginning.

#include <quarry/core/bytes.hpp>

#include <cstdint>

namespace quarry {

/// What adapt() does.
enum class resizing : std::uint8_t {
  when_short,  // grows if an allocation failed since the last call, or too little is free
  manual,      // nothing: the program calls grow() and trim()
};

struct growth {
  bytes max;  // the pool's size, at most
  resizing policy = resizing::when_short;
  double least_free = 0.125;  // share of the pool below which it is short of memory
  double factor = 2;          // by which it grows, at least
};

}  // namespace quarry

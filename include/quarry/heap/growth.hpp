// SPDX-License-Identifier: Apache-2.0
#pragma once
/// growth: how a heap may grow between kernels.
///
///   quarry::heap<quarry::slab> heap(256_MiB, {.max = 16_GiB});
///   kernel<<<...>>>(heap.ref());
///   heap.adapt();                       // doubles the pool if an allocation failed
///   kernel<<<...>>>(heap.ref());        // a heap_ref from before is valid, too
///
/// The heap reserves addresses for `max` at construction and commits memory when it grows
/// (detail/growing_memory.hpp). No block moves. Metadata is laid out for `max` and committed at
/// construction.

#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>

#include <cstdint>
#include <string>

namespace quarry {

/// What heap::adapt() does.
enum class resizing : std::uint8_t {
  when_short,  // grows if an allocation failed since the last call, or too little is free
  manual,      // nothing: the program calls grow() and trim()
};

struct growth {
  bytes max;  // maximum size of the pool
  resizing policy = resizing::when_short;
  double least_free = 0.125;  // adapt() grows if a smaller fraction of the pool is free
  double factor = 2;          // adapt() multiplies the size of the pool by at least this factor

  /// Throws error unless least_free is in [0, 1] and factor in [1, 1024].
  void check() const {
    if (!(least_free >= 0 && least_free <= 1))
      throw error("growth::least_free is " + std::to_string(least_free) +
                  "; it must be from 0 to 1");
    if (!(factor >= 1 && factor <= 1024))
      throw error("growth::factor is " + std::to_string(factor) + "; it must be from 1 to 1024");
  }
};

}  // namespace quarry

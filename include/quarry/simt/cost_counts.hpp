// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the CPU backend observes of the lanes: the number of their operations, and each access to
/// shared memory.

#include <cstdint>

namespace quarry::simt {

/// The number of operations that lanes executed. The counts are exact.
struct cost_counts {
  std::uint64_t loads = 0;
  std::uint64_t stores = 0;
  std::uint64_t atomics = 0;      // read-modify-write operations
  std::uint64_t collectives = 0;  // counted once per participating lane
};

/// One access of a lane to shared memory, as a tracer receives it.
struct step {
  std::uint64_t number;
  std::uint64_t thread;  // in the grid
  const char* what;      // "fetch_add", "load", ...
  const void* where;
  std::uint64_t before;
  std::uint64_t after;
};

}  // namespace quarry::simt

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The workload of quarry map. It runs on the CPU executor with one worker thread, so that a seed
/// determines the picture.
///
/// Each lane has an array of block pointers. In each round the lane visits its pointers: it
/// allocates a block of random size for a null pointer, and frees an existing block with the given
/// probability. With an allocator that cannot free single blocks, the lanes only allocate.

#include "common/parse.hpp"

#include <quarry/core/statistics.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct map_plan {
  std::uint64_t heap = 16 << 20;
  size_range sizes{16, 4096};
  std::uint64_t lanes = 1024;
  std::uint64_t blocks_per_lane = 8;  // at most
  std::uint64_t rounds = 6;
  std::uint64_t free_percent = 40;
  std::uint64_t seed = 1;
};

struct map_result {
  heap_statistics statistics;
  std::vector<pool_piece> pieces;
  std::string problem;  // first violated invariant of the metadata; empty: none
};

/// An allocator that can report the layout of its pool.
struct mapping_entry {
  std::string_view name;
  std::uint64_t min_pool;
  map_result (*run)(const map_plan&);
};
std::vector<mapping_entry> mapping_allocators();

}  // namespace quarry::tool

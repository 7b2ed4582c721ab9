// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a heap says about itself between kernels. An allocator leaves empty what it can not know.

#include <cstdint>
#include <optional>
#include <vector>

namespace quarry {

struct size_class_statistics {
  std::uint64_t block_bytes = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t free_blocks = 0;  // formatted for this class and free
};

struct heap_statistics {
  std::uint64_t pool_bytes = 0;
  std::uint64_t metadata_bytes = 0;
  std::optional<std::uint64_t> live_blocks;
  std::optional<std::uint64_t> live_bytes;     // as handed out, rounded up to what a block takes
  std::optional<std::uint64_t> free_bytes;
  std::optional<std::uint64_t> largest_free;   // the largest request that would be served now
  std::vector<size_class_statistics> classes;

  /// Share of the pool that is handed out.
  std::optional<double> utilisation() const {
    if (!live_bytes || pool_bytes == 0) return std::nullopt;
    return static_cast<double>(*live_bytes) / static_cast<double>(pool_bytes);
  }
};

}  // namespace quarry

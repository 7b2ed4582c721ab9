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

/// What a stretch of the pool is.
enum class piece_kind : std::uint8_t {
  free,         // any request may have it
  kept,         // no block lies in it, but some lanes have it in reserve
  blocks,       // cut into equal blocks, of which some are live
  single,       // one live block
  used,         // handed out, nobody knows in which blocks
  uncommitted,  // reserved addresses without memory, behind the end of the pool
};
inline constexpr unsigned piece_kinds = 6;

/// A stretch of the pool that is all of one kind. Allocators that can tell have visit_pieces(visit), which calls
/// visit(pool_piece) from the front of the pool to its end.
struct pool_piece {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  piece_kind kind = piece_kind::free;
  std::uint64_t block_bytes = 0;  // of one block
  std::uint64_t blocks = 0;       // that it is cut into
  std::uint64_t live = 0;         // of them
};

/// Failed allocations of a heap since it was constructed or reset.
struct allocation_failures {
  std::uint64_t count = 0;
  std::uint64_t first = 0;    // bytes of the first request that failed
  std::uint64_t largest = 0;  // bytes of the largest request that failed
};

struct heap_statistics {
  std::uint64_t pool_bytes = 0;
  std::uint64_t metadata_bytes = 0;
  std::optional<std::uint64_t> live_blocks;
  std::optional<std::uint64_t> live_bytes;  // as handed out, rounded up to what a block takes
  std::optional<std::uint64_t> peak_bytes;  // the most that were live at a time, as asked for
  std::optional<std::uint64_t> free_bytes;
  std::optional<std::uint64_t> largest_free;  // the largest request that would be served now
  // From the front of the pool to the end of the last piece with a live block.
  std::optional<std::uint64_t> address_range_bytes;
  std::vector<size_class_statistics> classes;
  std::vector<std::uint64_t> piece_bytes;  // of each piece_kind; empty: nobody can tell

  // What the heap knows, whatever the allocator.
  std::uint64_t max_pool_bytes = 0;  // up to which the pool can grow
  allocation_failures failures;
  bool wants_growth = false;  // adapt() would grow it

  /// Share of the pool that is handed out.
  std::optional<double> utilisation() const {
    if (!live_bytes || pool_bytes == 0) return std::nullopt;
    return static_cast<double>(*live_bytes) / static_cast<double>(pool_bytes);
  }
  /// Share of the free bytes that the largest request can not have.
  std::optional<double> fragmentation() const {
    if (!free_bytes || !largest_free) return std::nullopt;
    if (*free_bytes == 0) return 0.0;
    return 1.0 - static_cast<double>(*largest_free) / static_cast<double>(*free_bytes);
  }
};

}  // namespace quarry

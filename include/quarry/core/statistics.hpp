// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The statistics that a heap reports between kernels. A value that an allocator does not know is
/// empty.

#include <cstdint>
#include <optional>
#include <vector>

namespace quarry {

struct size_class_statistics {
  std::uint64_t block_bytes = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t free_blocks = 0;  // free slots of segments of this class
};

/// The state of an address range of the pool.
enum class piece_kind : std::uint8_t {
  free,         // available to any request
  kept,         // without live blocks, but reserved by lanes
  blocks,       // divided into blocks of equal size, some of them live
  single,       // one live block
  used,         // allocated; the allocator does not know the blocks
  uncommitted,  // reserved addresses without memory, behind the end of the pool
};
inline constexpr unsigned piece_kinds = 6;

/// An address range of the pool in one state. Allocators that know their pieces have
/// visit_pieces(visit), which calls visit(pool_piece) in the order of addresses.
struct pool_piece {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  piece_kind kind = piece_kind::free;
  std::uint64_t block_bytes = 0;  // of one block
  std::uint64_t blocks = 0;       // live and free blocks of the piece
  std::uint64_t live = 0;         // live blocks of the piece
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
  std::optional<std::uint64_t> live_bytes;  // sizes of the live blocks, including padding
  std::optional<std::uint64_t> peak_bytes;  // the maximum of live bytes, as requested
  std::optional<std::uint64_t> free_bytes;
  std::optional<std::uint64_t> largest_free;  // the largest request that would succeed
  // From the front of the pool to the end of the last piece with a live block.
  std::optional<std::uint64_t> address_range_bytes;
  std::vector<size_class_statistics> classes;
  std::vector<std::uint64_t> piece_bytes;  // per piece_kind; empty: unknown

  // Values of the heap, independent of the allocator.
  std::uint64_t max_pool_bytes = 0;  // the maximum size of the pool
  allocation_failures failures;
  bool wants_growth = false;  // adapt() would grow the pool

  /// Returns: the fraction of the pool that live blocks occupy.
  std::optional<double> utilisation() const {
    if (!live_bytes || pool_bytes == 0) return std::nullopt;
    return static_cast<double>(*live_bytes) / static_cast<double>(pool_bytes);
  }
  /// Returns: the fraction of the free bytes that the largest possible request does not get.
  std::optional<double> fragmentation() const {
    if (!free_bytes || !largest_free) return std::nullopt;
    if (*free_bytes == 0) return 0.0;
    return 1.0 - static_cast<double>(*largest_free) / static_cast<double>(*free_bytes);
  }
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One lane copies or clears the bytes of a block.
///
/// Blocks are 16-byte aligned, so the loops access 16 bytes at a time and only the last n % 16
/// bytes one by one. nvcc compiles memcpy and memset in a kernel to byte accesses, because it does
/// not know the alignment.

#include <quarry/core/config.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry::detail {

struct alignas(16) sixteen_bytes {
  std::uint64_t low;
  std::uint64_t high;
};

/// Copies n bytes. Requires: both blocks are 16-byte aligned and do not overlap.
QUARRY_DEVICE inline void copy_block(void* to, const void* from, std::size_t n) {
  for (std::size_t i = 0; i < n / 16; ++i)
    static_cast<sixteen_bytes*>(to)[i] = static_cast<const sixteen_bytes*>(from)[i];
  for (std::size_t i = n - n % 16; i < n; ++i)
    static_cast<std::byte*>(to)[i] = static_cast<const std::byte*>(from)[i];
}

/// Sets n bytes to zero. Requires: the block is 16-byte aligned.
QUARRY_DEVICE inline void clear_block(void* block, std::size_t n) {
  for (std::size_t i = 0; i < n / 16; ++i)
    static_cast<sixteen_bytes*>(block)[i] = sixteen_bytes{0, 0};
  for (std::size_t i = n - n % 16; i < n; ++i) static_cast<std::byte*>(block)[i] = std::byte{0};
}

}  // namespace quarry::detail

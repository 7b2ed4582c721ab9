// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Bytes of blocks, moved and cleared by one lane. Blocks are 16-byte aligned, so the loops go by 16 and only the last
/// few bytes one by one; what the compiler makes of memcpy in a kernel goes byte by byte, since it knows neither.

#include <quarry/core/config.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry::detail {

struct alignas(16) sixteen_bytes {
  std::uint64_t low;
  std::uint64_t high;
};

/// Both at a multiple of 16, and not overlapping.
QUARRY_DEVICE inline void copy_block(void* to, const void* from, std::size_t n) {
  for (std::size_t i = 0; i < n / 16; ++i)
    static_cast<sixteen_bytes*>(to)[i] = static_cast<const sixteen_bytes*>(from)[i];
  for (std::size_t i = n - n % 16; i < n; ++i)
    static_cast<std::byte*>(to)[i] = static_cast<const std::byte*>(from)[i];
}

QUARRY_DEVICE inline void clear_block(void* block, std::size_t n) {
  for (std::size_t i = 0; i < n / 16; ++i)
    static_cast<sixteen_bytes*>(block)[i] = sixteen_bytes{0, 0};
  for (std::size_t i = n - n % 16; i < n; ++i) static_cast<std::byte*>(block)[i] = std::byte{0};
}

}  // namespace quarry::detail

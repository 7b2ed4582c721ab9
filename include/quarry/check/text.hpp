// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Numbers and addresses as the reports of check/ write them.

#include <quarry/core/carve.hpp>

#include <charconv>
#include <cstdint>
#include <string>

namespace quarry {

/// "0x2a".
inline std::string to_hex(std::uint64_t value) {
  char digits[16];
  return "0x" + std::string(digits, std::to_chars(digits, digits + 16, value, 16).ptr);
}

/// "pool+0x40" inside the pool, the bare address outside, "nullptr".
inline std::string place_in(memory_range pool, const void* p) {
  if (p == nullptr) return "nullptr";
  if (!pool.contains(p)) return to_hex(reinterpret_cast<std::uintptr_t>(p));
  return "pool+" +
         to_hex(static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - pool.begin));
}

}  // namespace quarry

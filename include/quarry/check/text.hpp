// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The text form of numbers and addresses in the messages of check/.

#include <quarry/core/carve.hpp>

#include <charconv>
#include <cstdint>
#include <string>

namespace quarry {

/// Returns: a hexadecimal number such as "0x2a".
inline std::string to_hex(std::uint64_t value) {
  char digits[16];
  return "0x" + std::string(digits, std::to_chars(digits, digits + 16, value, 16).ptr);
}

/// Returns: "pool+0x40" for an address inside the pool, the absolute address outside, or "nullptr".
inline std::string address_text(memory_range pool, const void* p) {
  if (p == nullptr) return "nullptr";
  if (!pool.contains(p)) return to_hex(reinterpret_cast<std::uintptr_t>(p));
  return "pool+" +
         to_hex(static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - pool.begin));
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// pattern_range: a range of memory that the checked layer has filled with a pattern, and that the
/// user must not write.
///
/// The expected value of a byte follows from its address: three bits encode the purpose of the
/// range, and five bits are a hash. A constant value, or bytes copied from elsewhere, therefore
/// differ from the pattern soon. A pattern byte is never 0, 0xff or a letter, which stray writes
/// mostly store. A single stray byte is undetected if it has the expected value, with probability
/// 1/256 for a random one.
///
/// fill() and first_mismatch() access aligned words, and bytes at the ends: bytes of the block's
/// owner may share a word with the range and are not touched. All accesses use memcpy, so that the
/// compiler does not reorder a user's last store to a block and the fill because of their types.

#include <quarry/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quarry {

class pattern_range {
 public:
  enum purpose : std::uint8_t { guard = 0x80, freed = 0xc0 };
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  QUARRY_DEVICE pattern_range(std::byte* begin, std::uint64_t size, purpose use)
      : begin_(begin), size_(size), purpose_(use) {}

  QUARRY_DEVICE void fill() const {
    for_each_piece([](std::byte* at, std::uint64_t value, bool word) {
      if (word)
        memcpy(__builtin_assume_aligned(at, 8), &value, 8);
      else
        *at = static_cast<std::byte>(value);
      return true;
    });
  }

  /// Returns the offset of the first byte that differs from the pattern, or none.
  QUARRY_DEVICE std::uint64_t first_mismatch() const {
    const std::uint64_t found = for_each_piece([](std::byte* at, std::uint64_t value, bool word) {
      if (!word) return *at == static_cast<std::byte>(value);
      std::uint64_t stored;
      memcpy(&stored, __builtin_assume_aligned(at, 8), 8);
      return stored == value;
    });
    if (found == size_) return none;
    std::uint64_t byte = found;  // the first byte of its word may match
    while (begin_[byte] == static_cast<std::byte>(value_at(address() + byte))) ++byte;
    return byte;
  }

 private:
  QUARRY_DEVICE std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(begin_); }

  /// The pattern of eight bytes from this address on, in little-endian order.
  QUARRY_DEVICE std::uint64_t word_at(std::uint64_t address) const {
    constexpr std::uint64_t each = 0x0101'0101'0101'0101u;
    std::uint64_t mixed = (address >> 3) * 0x9e37'79b9'7f4a'7c15u;
    mixed ^= mixed >> 29;
    return (mixed & each * 0x1f) | each * purpose_;
  }
  QUARRY_DEVICE std::uint64_t value_at(std::uint64_t address) const {
    return word_at(address & ~std::uint64_t{7}) >> (address % 8 * 8);
  }

  /// Calls step(at, value, is whole word) for every piece until a call returns false. Returns the
  /// offset of that piece, or size_.
  template <class Step>
  QUARRY_DEVICE std::uint64_t for_each_piece(Step step) const {
    for (std::uint64_t i = 0; i < size_;) {
      const std::uint64_t here = address() + i;
      const bool word = here % 8 == 0 && size_ - i >= 8;
      if (!step(begin_ + i, value_at(here), word)) return i;
      i += word ? 8 : 1;
    }
    return size_;
  }

  std::byte* begin_;
  std::uint64_t size_;
  purpose purpose_;
};

}  // namespace quarry

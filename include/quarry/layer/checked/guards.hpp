// SPDX-License-Identifier: Apache-2.0
#pragma once
/// painted: a range of user memory that the checked layer has filled, and nobody should write.
///
/// A byte's value follows from its address: three bits say what the range is for, five are mixed. So
/// neither one value, nor what was copied from elsewhere, looks untouched for long; and a byte is
/// never 0, 0xff or a letter, which are what stray writes mostly write. A single stray byte goes
/// unnoticed if it has the very value, one in 256 at random.
///
/// Whole words where they are aligned, bytes at the ends: the bytes of a block's owner may lie in the
/// same word and are not touched. All accesses go through memcpy, so that a compiler does not move a
/// user's last store to a block past the fill for being of another type.

#include <quarry/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quarry {

class painted {
 public:
  enum purpose : std::uint8_t { guard = 0x80, freed = 0xc0 };
  static constexpr std::uint64_t nothing = ~std::uint64_t{0};

  QUARRY_DEVICE painted(std::byte* begin, std::uint64_t size, purpose what)
      : begin_(begin), size_(size), what_(what) {}

  QUARRY_DEVICE void fill() const {
    walk([](std::byte* at, std::uint64_t value, bool word) {
      if (word)
        memcpy(__builtin_assume_aligned(at, 8), &value, 8);
      else
        *at = static_cast<std::byte>(value);
      return true;
    });
  }

  /// The first byte that was changed, counted from the start; or nothing.
  QUARRY_DEVICE std::uint64_t damage() const {
    const std::uint64_t found = walk([](std::byte* at, std::uint64_t value, bool word) {
      if (!word) return *at == static_cast<std::byte>(value);
      std::uint64_t there;
      memcpy(&there, __builtin_assume_aligned(at, 8), 8);
      return there == value;
    });
    if (found == size_) return nothing;
    std::uint64_t byte = found;  // perhaps not the first of its word
    while (begin_[byte] == static_cast<std::byte>(value_at(address() + byte))) ++byte;
    return byte;
  }

 private:
  QUARRY_DEVICE std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(begin_); }

  /// Eight bytes from this address on; the lowest comes first.
  QUARRY_DEVICE std::uint64_t word_at(std::uint64_t address) const {
    constexpr std::uint64_t each = 0x0101'0101'0101'0101u;
    std::uint64_t mixed = (address >> 3) * 0x9e37'79b9'7f4a'7c15u;
    mixed ^= mixed >> 29;
    return (mixed & each * 0x1f) | each * what_;
  }
  QUARRY_DEVICE std::uint64_t value_at(std::uint64_t address) const {
    return word_at(address & ~std::uint64_t{7}) >> (address % 8 * 8);
  }

  /// step(at, value, whole word?) for every piece until one says false: where that was, else the size.
  template <class Step>
  QUARRY_DEVICE std::uint64_t walk(Step step) const {
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
  purpose what_;
};

}  // namespace quarry

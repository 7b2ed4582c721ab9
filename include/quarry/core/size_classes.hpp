// SPDX-License-Identifier: Apache-2.0
#pragma once
/// size_classes: rounds a request up to one of few block sizes.
///
///   Steps = 4    16 32 48 64 | 80 96 112 128 | 160 192 224 256 | 320 ...
///   class         0  1  2  3 |  4  5   6   7 |   8   9  10  11 |  12 ...
///
/// Each interval [2^k, 2^(k+1)] is divided into Steps equal steps. Below 16 * Steps the step is 16,
/// the alignment of every block. Each size is (Steps + j) << k with 1 <= j <= Steps, and a multiple
/// of 16.
///
/// class_of has no loop and no branch. Let x = n - 1 and e = floor(log2(x)). The step at x is
/// 2^e / Steps. Hence x >> (e - log2(Steps)) = Steps + j - 1, where j - 1 is the number of steps
/// between 2^e and x. The class is this number plus Steps for each doubling below x. Setting bit
/// log2(16 * Steps) of x before the logarithm bounds e from below; the same formula then counts
/// steps of 16.
///
/// Device code reads no table. size_of is a shift. A division of n by m * 16 << k, with
/// m <= 2 * Steps, is n >> (4 + k), then a multiplication by ceil(2^15 / m), then a shift. The
/// error of the multiplier is below 8, so the quotient is exact for n <= 2^16. The multipliers have
/// 16 bits each and are packed into 64-bit constants. The table `sizes` serves host code and the
/// checks below.
///
/// Internal fragmentation: size - n < max(16, size / (Steps + 1)), asserted for every class.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace quarry {

/// Divides an offset by a block size.
struct size_divider {
  static constexpr unsigned bits = 15;
  static constexpr std::uint32_t most = 1u << 16;  // the largest dividend

  std::uint32_t multiplier;
  std::uint32_t shift;

  QUARRY_DEVICE constexpr std::uint32_t quotient(std::uint32_t n) const {
    return (n >> shift) * multiplier >> bits;
  }
};

namespace detail {

/// The unbounded sequence of sizes 16, 32, 48 ...; size_classes uses an interval of it.
template <std::uint32_t Steps>
struct size_sequence {
  static constexpr std::uint32_t granule = 16;
  static constexpr unsigned step_bits = log2_floor(Steps);
  static constexpr unsigned linear_bits =
      log2_floor(granule) + step_bits;  // steps of 16 up to 2^this

  static_assert(is_power_of_two(Steps) && Steps >= 2 && Steps <= 8, "Steps must be 2, 4 or 8");

  /// Returns: the position of the smallest size that holds n bytes. Requires 1 <= n <= 2^31.
  QUARRY_DEVICE static constexpr std::uint32_t position(std::uint32_t n) {
    const std::uint32_t x = n - 1;
    const unsigned e = highest_bit(x | 1u << linear_bits);
    return Steps * (e - linear_bits) + (x >> (e - step_bits));
  }

  QUARRY_DEVICE static constexpr std::uint32_t size(std::uint32_t position) {
    return (position - doublings(position) * Steps + 1) * granule << doublings(position);
  }

  /// Divides by the size at this position.
  QUARRY_DEVICE static constexpr size_divider divider(std::uint32_t position) {
    const std::uint32_t m = position - doublings(position) * Steps;  // minus 1
    return {static_cast<std::uint32_t>(multiplier_word(m / 4) >> m % 4 * 16) & 0xffff,
            log2_floor(granule) + doublings(position)};
  }

  /// Returns: whether the properties at the top of this file hold for an interval of the sequence.
  static constexpr bool sound(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t p = first; p < first + count; ++p) {
      const std::uint32_t here = size(p);
      if (here % granule != 0 || position(here) != p) return false;
      const std::uint32_t last = size_divider::most / here;  // the error grows with the number
      for (const std::uint32_t k : {1u, last})
        if (k != 0 &&
            (divider(p).quotient(k * here) != k || divider(p).quotient(k * here - 1) != k - 1))
          return false;
      if (p == first) continue;
      const std::uint32_t gap = here - size(p - 1);
      if (here <= size(p - 1) || position(size(p - 1) + 1) != p) return false;
      if (gap > granule && gap > here / (Steps + 1)) return false;
    }
    return true;
  }

 private:
  /// The number of times that the step has doubled before this position.
  QUARRY_DEVICE static constexpr std::uint32_t doublings(std::uint32_t position) {
    return position < Steps ? 0 : position / Steps - 1;
  }
  /// The multipliers for m = 4w + 1 to 4w + 4.
  QUARRY_DEVICE static constexpr std::uint64_t multiplier_word(std::uint32_t w) {
    if (w == 0 || Steps == 2) return multipliers(1);
    if (w == 1 || Steps == 4) return multipliers(5);
    return w == 2 ? multipliers(9) : multipliers(13);
  }
  QUARRY_DEVICE static constexpr std::uint64_t multipliers(std::uint32_t m) {
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < 4; ++i)
      all |= std::uint64_t{ceil_div(1u << size_divider::bits, m + i)} << i * 16;
    return all;
  }
};

}  // namespace detail

template <std::uint32_t Smallest = 16, std::uint32_t Largest = 8192, std::uint32_t Steps = 4>
class size_classes {
  using sequence = detail::size_sequence<Steps>;
  static_assert(Smallest >= 16 && Smallest <= Largest && Largest <= 1u << 31);
  static constexpr std::uint32_t first = sequence::position(Smallest);

 public:
  static constexpr std::uint32_t smallest = Smallest;
  static constexpr std::uint32_t largest = Largest;
  static constexpr std::uint32_t steps_per_doubling = Steps;
  static constexpr std::uint32_t count = sequence::position(Largest) - first + 1;

  static_assert(sequence::size(first) == Smallest, "the smallest size must be a class");
  static_assert(sequence::size(first + count - 1) == Largest, "the largest size must be a class");
  static_assert(sequence::sound(first, count));

  /// Returns: whether a class holds n bytes. False for 0 and for n > Largest.
  QUARRY_DEVICE static constexpr bool fits(std::size_t n) { return n - 1 < Largest; }

  /// The smallest class that holds n bytes. Requires fits(n).
  QUARRY_DEVICE static constexpr std::uint32_t class_of(std::size_t n) {
    const auto size = static_cast<std::uint32_t>(n);
    return sequence::position(size < Smallest ? Smallest : size) - first;
  }

  /// The block size of class c. Requires c < count.
  QUARRY_DEVICE static constexpr std::uint32_t size_of(std::uint32_t c) {
    return sequence::size(c + first);
  }

  /// Divides an offset of at most 64 KiB by size_of(c). The quotient is the index of the block that
  /// contains the offset.
  QUARRY_DEVICE static constexpr size_divider divider_of(std::uint32_t c) {
    return sequence::divider(c + first);
  }

  /// All sizes, for host code.
  static constexpr std::array<std::uint32_t, count> sizes = [] {
    std::array<std::uint32_t, count> all{};
    for (std::uint32_t c = 0; c < count; ++c) all[c] = sequence::size(first + c);
    return all;
  }();

  /// The maximum internal fragmentation of a block, in thousandths of its size, rounded up, over
  /// all requests larger than `above`. Requests of a few bytes waste most of a 16-byte block, hence
  /// the lower bound.
  static constexpr std::uint32_t worst_waste_permille(std::uint32_t above) {
    std::uint64_t worst = 0;
    for (std::uint32_t c = 0; c < count; ++c) {
      const std::uint32_t size = sequence::size(first + c);
      const std::uint32_t below = c == 0 ? 0 : sequence::size(first + c - 1);
      const std::uint32_t least =
          (below > above ? below : above) + 1;  // the smallest request of the class
      if (least > size) continue;
      const std::uint64_t waste = (std::uint64_t{size - least} * 1000 + size - 1) / size;
      worst = waste > worst ? waste : worst;
    }
    return static_cast<std::uint32_t>(worst);
  }
};

}  // namespace quarry

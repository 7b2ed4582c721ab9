// SPDX-License-Identifier: Apache-2.0
#pragma once
/// size_classes: rounds a request up to one of few block sizes.
///
///   Steps = 4    16 32 48 64 | 80 96 112 128 | 160 192 224 256 | 320 ...
///   class         0  1  2  3 |  4  5   6   7 |   8   9  10  11 |  12 ...
///
/// Every doubling is cut into Steps equal steps; below 16 * Steps the step is 16, the alignment of
/// every block. So each size is (Steps + j) << k with 1 <= j <= Steps, and a multiple of 16.
///
/// class_of needs no search and no branch. With x = n - 1 and e = log2(x), the step at x is
/// 2^e/Steps wide, so x >> (e - log2 Steps) counts Steps whole ones below 2^e and then j - 1 more;
/// adding Steps for every doubling passed gives the class. Setting bit log2(16 * Steps) of x before
/// taking its logarithm pins e from below, and the same formula then counts steps of 16.
///
/// There is no table in memory on the device. size_of is a shift. To divide n by m * 16 << k: n >> (4 + k), then by
/// m <= 2 * Steps, which is a multiplication with 2^15 / m, rounded up, and a shift. With an error below 8 in that
/// number the quotient is right as long as n <= 2^16; and 16 bits for each m fit into a few 64-bit
/// constants. The host's table `sizes` exists for printing and for the checks below.
///
/// Waste: size - n < max(16, size / (Steps + 1)), asserted for every class.

#include <quarry/core/bits.hpp>
#include <quarry/core/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace quarry {

/// Divides offsets in a segment by a block size.
struct size_divider {
  static constexpr unsigned bits = 15;
  static constexpr std::uint32_t most = 1u << 16;  // that it divides

  std::uint32_t multiplier;
  std::uint32_t shift;

  QUARRY_DEVICE constexpr std::uint32_t quotient(std::uint32_t n) const {
    return (n >> shift) * multiplier >> bits;
  }
};

namespace detail {

/// The endless sequence 16, 32, 48 ... for a number of steps; size_classes cuts a piece out of it.
template <std::uint32_t Steps>
struct size_sequence {
  static constexpr std::uint32_t granule = 16;
  static constexpr unsigned step_bits = log2_floor(Steps);
  static constexpr unsigned linear_bits =
      log2_floor(granule) + step_bits;  // steps of 16 up to 2^this

  static_assert(is_power_of_two(Steps) && Steps >= 2 && Steps <= 8, "2, 4 or 8 steps a doubling");

  /// Where n bytes go. Requires 1 <= n <= 2^31.
  QUARRY_DEVICE static constexpr std::uint32_t position(std::uint32_t n) {
    const std::uint32_t x = n - 1;
    const unsigned e = simt::highest_bit(x | 1u << linear_bits);
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

  /// Whether a piece of the sequence is what the head of this file says.
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
  /// That the step at this position has grown by.
  QUARRY_DEVICE static constexpr std::uint32_t doublings(std::uint32_t position) {
    return position < Steps ? 0 : position / Steps - 1;
  }
  /// For m = 4w + 1 … 4w + 4, up to 2 * Steps.
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

  /// Whether some class holds n bytes. False for 0 and for any size too large.
  QUARRY_DEVICE static constexpr bool fits(std::size_t n) { return n - 1 < Largest; }

  /// The smallest class that holds n bytes. Requires fits(n).
  QUARRY_DEVICE static constexpr std::uint32_t class_of(std::size_t n) {
    const auto size = static_cast<std::uint32_t>(n);
    return sequence::position(size < Smallest ? Smallest : size) - first;
  }

  /// Bytes in a block of class c. Requires c < count.
  QUARRY_DEVICE static constexpr std::uint32_t size_of(std::uint32_t c) {
    return sequence::size(c + first);
  }

  /// Divides an offset up to 64 KiB by size_of(c): the number of the block that holds the offset.
  QUARRY_DEVICE static constexpr size_divider divider_of(std::uint32_t c) {
    return sequence::divider(c + first);
  }

  /// All sizes, for host code.
  static constexpr std::array<std::uint32_t, count> sizes = [] {
    std::array<std::uint32_t, count> all{};
    for (std::uint32_t c = 0; c < count; ++c) all[c] = sequence::size(first + c);
    return all;
  }();

  /// The most that one block wastes, in thousandths of its size, rounded up; over requests larger
  /// than `above`. A small request wastes up to 15 bytes of 16, hence the bound on the request.
  static constexpr std::uint32_t worst_waste_permille(std::uint32_t above) {
    std::uint64_t worst = 0;
    for (std::uint32_t c = 0; c < count; ++c) {
      const std::uint32_t size = sequence::size(first + c);
      const std::uint32_t below = c == 0 ? 0 : sequence::size(first + c - 1);
      const std::uint32_t least =
          (below > above ? below : above) + 1;  // smallest request it serves
      if (least > size) continue;
      const std::uint64_t waste = (std::uint64_t{size - least} * 1000 + size - 1) / size;
      worst = waste > worst ? waste : worst;
    }
    return static_cast<std::uint32_t>(worst);
  }
};

}  // namespace quarry

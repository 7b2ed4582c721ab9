// SPDX-License-Identifier: Apache-2.0
#pragma once
/// lane_random: a random number generator in one register. A draw takes four instructions. Each
/// lane has its own. Host code uses core/random.hpp.

#include <quarry/core/config.hpp>

#include <cstdint>

namespace quarry::simt {

/// A bijective hash of 32 bits (Wellons 2018), for seeds and hash tables.
QUARRY_DEVICE constexpr std::uint32_t scramble(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// xorshift32 (Marsaglia 2003): the state is never zero, and the period is 2^32 - 1.
class lane_random {
 public:
  QUARRY_DEVICE explicit constexpr lane_random(std::uint64_t seed)
      : state_(scramble(static_cast<std::uint32_t>(seed) ^
                        scramble(static_cast<std::uint32_t>(seed >> 32) + 0x9e3779b9u))) {
    if (state_ == 0) state_ = 0x9e3779b9u;
  }

  QUARRY_DEVICE constexpr std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }
  /// Returns a number in [0, n). Each is drawn with the same probability, up to n / 2^32.
  QUARRY_DEVICE constexpr std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32);
  }

 private:
  std::uint32_t state_;
};

}  // namespace quarry::simt

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Random numbers private to a lane: four instructions a draw, one register of state.

#include <quarry/core/config.hpp>

#include <cstdint>

namespace quarry::simt {

/// A bijection of 32 bits that leaves no visible pattern; for seeds and hashes.
QUARRY_DEVICE constexpr std::uint32_t scramble(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// xorshift32: the state is never zero, and all other states follow each other in one cycle.
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
  /// Uniform in [0, n) up to n / 2^32.
  QUARRY_DEVICE constexpr std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32);
  }

 private:
  std::uint32_t state_;
};

}  // namespace quarry::simt

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// splitmix64 (Steele, Lea and Flood 2014): a small random number generator for host code. The
/// explorer draws schedules from it, and tests draw their programs. Equal seeds give equal
/// sequences.

#include <cstdint>

namespace quarry {

class splitmix64 {
 public:
  explicit splitmix64(std::uint64_t seed = 0) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Returns a number in [0, n). Each is drawn with the same probability, up to n / 2^32.
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace quarry

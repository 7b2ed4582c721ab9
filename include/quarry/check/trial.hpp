// SPDX-License-Identifier: Apache-2.0
#pragma once
/// trial: all parameters of one run of an allocator under the explorer, and their text form, the
/// token.
///
///   1-s2a-l8-b2-o4-m1024-p8-r2a-x50000                 all operations of the script with seed 0x2a
///   1-s2a-l8-b2-o4-m1024-p8-d7f-c3-e412-x50000-k0501   a subset, under the PCT schedule 0x7f
///
///   1          version of the format
///   s          seed of the script
///   l b o      bounds of the script: lanes, blocks, operations
///   m          bytes of the largest pool
///   p          one script in p is followed by a refill
///   r, w or d  seed of the schedule: random, lockstep or PCT
///   c e        PCT: change points (0: lanes run one after the other), expected steps
///   x          step limit
///   k          executed operations, one bit each, the lowest bit of the first digit first
///
/// Seeds and k are hexadecimal. Equal trials give equal runs.

#include <quarry/check/script.hpp>
#include <quarry/simt/explore.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace quarry {

struct trial {
  static constexpr std::uint64_t min_pool_bytes = 64;
  static constexpr std::uint64_t max_pool_bytes = std::uint64_t{1} << 30;

  std::uint64_t seed = 1;  // of the script, the grid and the size of the pool
  script_bounds bounds{};
  std::uint64_t pool_bytes = 1024;
  std::uint64_t refill_one_in = 8;  // 0: never
  simt::schedule schedule{};
  keep_mask keep{};  // empty: all operations

  /// Returns: whether each lane runs to its end before the next starts (PCT without change points).
  bool sequential() const {
    return schedule.how == simt::strategy::pct && schedule.change_points == 0;
  }

  std::string to_token() const;
  static trial from_token(std::string_view token);  // throws quarry::error
};

}  // namespace quarry

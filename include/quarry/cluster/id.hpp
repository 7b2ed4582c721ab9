// SPDX-License-Identifier: Apache-2.0
#pragma once
/// rid: a region's name in the whole cluster.
///
///   | generation 29 | scheduler 13 | number 22 |
///
/// The paper lets schedulers trade ranges of ids and look up who has one. Here an id says which
/// scheduler made it: nothing is traded or looked up, and a stale id always ends at the one that
/// knows that it is stale. A number is used again with the next generation (region_id.hpp); when its
/// generations are used up it is not used any more. The root is 0.

#include <quarry/cluster/shape.hpp>
#include <quarry/region/id.hpp>

#include <cstdint>

namespace quarry::cluster {

using rid = std::uint64_t;
inline constexpr rid root = 0;

inline constexpr unsigned scheduler_bits = 13;
inline constexpr unsigned most_schedulers = 1u << scheduler_bits;
inline constexpr std::uint64_t most_generations = std::uint64_t{1}
                                                  << (64 - scheduler_bits - stamp_bits);

constexpr rid make_rid(node scheduler, region_id local) {
  return local.generation() << (scheduler_bits + stamp_bits) |
         std::uint64_t{scheduler} << stamp_bits | local.number();
}
constexpr node scheduler_of(rid id) {
  return static_cast<node>(id >> stamp_bits) & (most_schedulers - 1);
}
constexpr region_id local_id(rid id) {
  return region_id(id >> (scheduler_bits + stamp_bits),
                   static_cast<std::uint32_t>(id) & ((1u << stamp_bits) - 1));
}

}  // namespace quarry::cluster

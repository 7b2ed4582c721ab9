// SPDX-License-Identifier: Apache-2.0
#pragma once
/// rid: the id of a region in the whole cluster.
///
///   | generation 29 | scheduler 13 | number 22 |
///
/// In the paper, schedulers trade ranges of ids and look up the owner of an id. Here an id contains
/// the scheduler that created it: nothing is traded or looked up, and a request with a stale id
/// reaches the scheduler that knows that it is stale. A number is reused with the next generation
/// (region/id.hpp); a number whose generations are used up is not reused. The root is 0.

#include <quarry/cluster/shape.hpp>
#include <quarry/region/id.hpp>

#include <cstdint>

namespace quarry::cluster {

enum class rid : std::uint64_t {};
inline constexpr rid root{};

inline constexpr unsigned scheduler_bits = 13;
inline constexpr unsigned max_schedulers = 1u << scheduler_bits;
inline constexpr std::uint64_t max_generations = std::uint64_t{1}
                                                 << (64 - scheduler_bits - stamp_bits);

constexpr rid make_rid(node_id scheduler, region_id local) {
  return rid{local.generation() << (scheduler_bits + stamp_bits) |
             std::uint64_t{scheduler} << stamp_bits | local.number()};
}
constexpr node_id scheduler_of(rid id) {
  return static_cast<node_id>(static_cast<std::uint64_t>(id) >> stamp_bits) & (max_schedulers - 1);
}
constexpr region_id local_id(rid id) {
  const auto word = static_cast<std::uint64_t>(id);
  return region_id(word >> (scheduler_bits + stamp_bits),
                   static_cast<std::uint32_t>(word) & ((1u << stamp_bits) - 1));
}

}  // namespace quarry::cluster

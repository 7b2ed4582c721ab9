// SPDX-License-Identifier: Apache-2.0
#pragma once
/// last_arrivals: keeps the messages of each pair of nodes in order, in simulated time.

#include <quarry/cluster/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace quarry::cluster::detail {

class last_arrivals {
 public:
  /// Adds a message that would arrive at time `at` if it were the only one, and returns when it
  /// arrives: not before the messages that were added earlier for the two nodes.
  /// Requires: no message arrives before `now`; calls never decrease it.
  double add(node_id from, node_id to, double at, double now) {
    double& last = last_[std::uint64_t{from} << 32 | to];
    last = at = std::max(at, last);
    if (last_.size() > max_size_) forget(now);
    return at;
  }
  /// The number of pairs that are recorded.
  std::size_t size() const { return last_.size(); }

 private:
  /// An arrival in the past delays no message. Without this, the table grows to all pairs of nodes.
  /// Twice the size of what remains makes the cost per message constant.
  void forget(double now) {
    std::erase_if(last_, [&](const auto& entry) { return entry.second <= now; });
    max_size_ = std::max(max_size_, 2 * last_.size());
  }

  std::unordered_map<std::uint64_t, double> last_;  // arrival, by pair of nodes
  std::size_t max_size_ = 1024;
};

}  // namespace quarry::cluster::detail

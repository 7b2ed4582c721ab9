// SPDX-License-Identifier: Apache-2.0
#pragma once
/// interval_map: a value for each offset of a range, stored as intervals of equal value.
///
///   offsets     0        a        b                 end
///   intervals   | A      | B      | A               |
///
/// Invariant: the intervals cover the range, and adjacent intervals have different values.
/// Cost: O(log intervals), plus the number of intervals that a call touches.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace quarry::cluster::detail {

template <class Value>
class interval_map {
 public:
  explicit interval_map(Value initial) : intervals_{{0, initial}} {}

  void assign(std::uint64_t begin, std::uint64_t end, Value value) {
    if (begin == end) return;
    const auto last = split(end);
    auto first = split(begin);
    intervals_.erase(std::next(first), last);
    first->second = value;
    if (last != intervals_.end() && last->second == value) intervals_.erase(last);
    if (first != intervals_.begin() && std::prev(first)->second == value) intervals_.erase(first);
  }

  /// Calls f(begin, end, value) for each interval, in order. Requires: f does not change the map.
  template <class F>
  void for_each(std::uint64_t begin, std::uint64_t end, F f) const {
    auto it = std::prev(intervals_.upper_bound(begin));
    while (begin < end) {
      const Value& value = it->second;
      ++it;
      const std::uint64_t stop = it == intervals_.end() || it->first > end ? end : it->first;
      f(begin, stop, value);
      begin = stop;
    }
  }
  std::size_t size() const { return intervals_.size(); }

 private:
  /// Returns the interval that starts at `at`, after splitting one if necessary.
  typename std::map<std::uint64_t, Value>::iterator split(std::uint64_t at) {
    const auto it = std::prev(intervals_.upper_bound(at));
    if (it->first == at) return it;
    return intervals_.emplace_hint(std::next(it), at, it->second);
  }

  std::map<std::uint64_t, Value> intervals_;  // by first offset
};

}  // namespace quarry::cluster::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// linearizable(): decides whether a history of concurrent calls is linearizable.
///
/// Each call has an interval [invoked, returned]. The history is linearizable if there is an order
/// of the calls that respects the intervals (a call that returned before another was invoked comes
/// first), and in which a sequential object gives the recorded results. The search is that of Wing
/// and Gong (1993): it selects a call that no remaining call precedes, applies it to the object,
/// and continues with the remaining calls. It backtracks if the result differs. The search caches
/// failed configurations, that is, the set of selected calls and the state of the object (Lowe
/// 2017). In practice this avoids exponential time.
///
/// Object   copyable, ordered by <, with bool apply(const Call&): applies the call to the state and
///          returns whether the recorded result is that of the object.

#include <quarry/simt/atomic.hpp>
#include <quarry/simt/explore.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace quarry::testing {

template <class Call>
struct recorded {
  Call call{};
  std::uint64_t lane = 0;
  std::uint64_t invoked = 0;
  std::uint64_t returned = 0;
};

template <class Call>
using history = std::vector<recorded<Call>>;

namespace detail {

template <class Object, class Call>
class search {
 public:
  explicit search(const history<Call>& calls) : calls_(calls) {
    if (calls.size() > 64) throw std::invalid_argument("histories of at most 64 calls");
  }

  bool from(std::uint64_t placed, const Object& state) {
    if (placed == all()) return true;
    if (failed_.contains({placed, state})) return false;
    const std::uint64_t limit = earliest_return(placed);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((placed >> i & 1) != 0 || calls_[i].invoked > limit) continue;
      Object next = state;
      if (next.apply(calls_[i].call) && from(placed | std::uint64_t{1} << i, next)) return true;
    }
    failed_.insert({placed, state});
    return false;
  }

 private:
  std::uint64_t all() const {
    return calls_.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << calls_.size()) - 1;
  }
  // The next call of the order must have been invoked by this time.
  std::uint64_t earliest_return(std::uint64_t placed) const {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if ((placed >> i & 1) == 0 && calls_[i].returned < first) first = calls_[i].returned;
    return first;
  }

  const history<Call>& calls_;
  std::set<std::pair<std::uint64_t, Object>> failed_;
};

}  // namespace detail

template <class Object, class Call>
bool linearizable(const history<Call>& calls, const Object& start) {
  return detail::search<Object, Call>(calls).from(0, start);
}

/// Records a history while lanes run under the explorer. The explorer runs one lane at a time, so a
/// counter of events serves as the clock. The memory is allocated in advance, so that an abandoned
/// lane leaks nothing.
template <class Call>
class recorder {
 public:
  explicit recorder(std::size_t most) : calls_(most) {}

  void clear() { used_ = now_ = 0; }
  std::size_t begin(std::uint64_t lane) {
    simt::host_section hidden;
    calls_.at(used_) = {.lane = lane, .invoked = ++now_};
    return used_++;
  }
  void end(std::size_t at, const Call& call) {
    simt::host_section hidden;
    calls_[at].call = call;
    calls_[at].returned = ++now_;
  }
  history<Call> calls() const {
    return {calls_.begin(), calls_.begin() + static_cast<std::ptrdiff_t>(used_)};
  }

 private:
  history<Call> calls_;
  std::size_t used_ = 0;
  std::uint64_t now_ = 0;
};

// ---- a queue ------------------------------------------------------------------------------------

struct queue_call {
  bool enqueue = false;  // false: dequeue
  std::uint32_t value = 0;
  bool answer = false;  // false: the queue was full or empty
};

/// The sequential specification of a bounded queue.
class sequential_queue {
 public:
  explicit sequential_queue(std::size_t capacity) : capacity_(capacity) {}

  bool apply(const queue_call& c) {
    if (c.enqueue) {
      const bool room = values_.size() < capacity_;
      if (room) values_.push_back(c.value);
      return room == c.answer;
    }
    if (values_.empty()) return !c.answer;
    const std::uint32_t oldest = values_.front();
    values_.erase(values_.begin());
    return c.answer && oldest == c.value;
  }
  friend bool operator<(const sequential_queue& a, const sequential_queue& b) {
    return a.values_ < b.values_;
  }

 private:
  std::size_t capacity_;
  std::vector<std::uint32_t> values_;
};

inline std::string to_text(const history<queue_call>& calls) {
  std::ostringstream out;
  for (const auto& c : calls) {
    out << "  lane " << c.lane << "  [" << c.invoked << ", " << c.returned << "]  ";
    if (c.call.enqueue)
      out << "enqueue " << c.call.value << (c.call.answer ? "" : ": full");
    else if (c.call.answer)
      out << "dequeue: " << c.call.value;
    else
      out << "dequeue: empty";
    out << "\n";
  }
  return out.str();
}

}  // namespace quarry::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// back_off: how a process polls while it waits. It spins, then yields the processor, then sleeps
/// for increasing times.
///
///   polls    spinning | yielding | 20 us, 40 us, ... 640 us, 640 us, ...
///
/// reset() starts again with spinning. If processes outnumber processors, spinning only delays the
/// process that is waited for: it is omitted. Sleeping delays a request by at most the longest
/// sleep; in return, hundreds of idle processes can share a processor with a busy one.

#include <sched.h>

#include <algorithm>
#include <ctime>

namespace quarry::cluster::detail {

class back_off {
 public:
  explicit back_off(bool oversubscribed = true) : spins_(oversubscribed ? 0 : 2000) {}

  void reset() { polls_ = 0; }
  void wait() {
    ++polls_;
    if (polls_ <= spins_ + yields) return yield();
    const unsigned doublings =
        std::min((polls_ - spins_ - yields) / sleeps_per_step, max_doublings);
    polls_ = std::min(polls_, spins_ + yields + sleeps_per_step * max_doublings);
    const timespec pause{0, first_sleep_ns << doublings};
    ::nanosleep(&pause, nullptr);
  }
  /// As wait, but never sleeps.
  void yield() const {
    if (polls_ >= spins_) ::sched_yield();
  }

 private:
  static constexpr unsigned yields = 200;
  static constexpr unsigned sleeps_per_step = 8;
  static constexpr unsigned max_doublings = 5;
  static constexpr long first_sleep_ns = 20'000;

  unsigned spins_;
  unsigned polls_ = 0;  // since the last reset
};

}  // namespace quarry::cluster::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// back_off: how a process waits that has nothing to do: first it looks again at once, then it lets
/// others run, then it sleeps, longer each time.
///
///   looks    spinning | yielding | 20 us, 40 us, ... 640 us, 640 us, ...
///
/// moved() starts anew. Where processes outnumber cores (crowded) spinning only keeps the one that
/// is waited for from running: it is left out. A sleeper costs a request at most the longest sleep;
/// in return hundreds of idle processes share a core with one that works.

#include <sched.h>
#include <time.h>

#include <algorithm>

namespace quarry::cluster {

class back_off {
 public:
  explicit back_off(bool crowded = true) : spins_(crowded ? 0 : 2000) {}

  void moved() { quiet_ = 0; }
  void wait() {
    ++quiet_;
    if (quiet_ <= spins_ + yields) return yield();
    const unsigned doublings = std::min((quiet_ - spins_ - yields) / sleeps_each, most_doublings);
    quiet_ = std::min(quiet_, spins_ + yields + sleeps_each * most_doublings);
    const timespec pause{0, first_sleep << doublings};
    ::nanosleep(&pause, nullptr);
  }
  /// As wait, but never sleeps.
  void yield() const {
    if (quiet_ >= spins_) ::sched_yield();
  }

 private:
  static constexpr unsigned yields = 200;
  static constexpr unsigned sleeps_each = 8;
  static constexpr unsigned most_doublings = 5;
  static constexpr long first_sleep = 20'000;  // nanoseconds

  unsigned spins_;
  unsigned quiet_ = 0;
};

}  // namespace quarry::cluster

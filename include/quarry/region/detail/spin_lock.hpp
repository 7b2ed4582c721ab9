// SPDX-License-Identifier: Apache-2.0
#pragma once
/// spin_lock: one exchange to lock, one store to unlock. For sections of a few dozen instructions.
/// Waits by looking, and lets others run after a while: a holder that was preempted is not kept from
/// its processor. lock acquires, unlock releases.

#include <atomic>
#include <thread>

namespace quarry {

class spin_lock {
 public:
  void lock() {
    for (unsigned looks = 0; !try_lock(); ++looks)
      if (looks >= 64) std::this_thread::yield();
  }
  bool try_lock() {
    return !taken_.load(std::memory_order_relaxed) &&
           !taken_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

/// Takes the lock only where there is somebody to share with.
class lock_if {
 public:
  lock_if(spin_lock& lock, bool wanted) : lock_(wanted ? &lock : nullptr) {
    if (lock_ != nullptr) lock_->lock();
  }
  lock_if(const lock_if&) = delete;
  lock_if& operator=(const lock_if&) = delete;
  ~lock_if() {
    if (lock_ != nullptr) lock_->unlock();
  }

 private:
  spin_lock* lock_;
};

}  // namespace quarry

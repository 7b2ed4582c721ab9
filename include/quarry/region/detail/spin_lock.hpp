// SPDX-License-Identifier: Apache-2.0
#pragma once
/// spin_lock: a test-and-test-and-set lock for critical sections of a few dozen instructions.
///
/// A waiting thread spins on a load, and yields its processor after 64 attempts, so that a
/// preempted holder can run. Memory ordering: lock() acquires, unlock() releases. Progress:
/// blocking.

#include <atomic>
#include <thread>

namespace quarry {

class spin_lock {
 public:
  void lock() {
    for (unsigned attempts = 0; !try_lock(); ++attempts)
      if (attempts >= 64) std::this_thread::yield();
  }
  bool try_lock() {
    return !taken_.load(std::memory_order_relaxed) &&
           !taken_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

/// Holds the lock for its scope if `wanted`.
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

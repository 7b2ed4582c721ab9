// SPDX-License-Identifier: Apache-2.0
#pragma once
/// thread_places: numbers for the threads of a process, used as indices into the regions of a heap.
///
/// A thread receives the lowest of the numbers that the fewest threads have, and keeps it until it
/// ends. Hence n threads that exist at the same time use the numbers below n, and threads share a
/// number only if there are more threads than numbers. A number is a hint: a thread that is ending
/// may still use its own while another thread receives it.
///
/// The end of a thread is observed through a pthread key. A thread_local variable with a destructor
/// would allocate memory and take a lock of the loader; a heap that implements malloc can do
/// neither.
///
/// Progress: mine() is wait-free except for the first call of a thread, which takes a spin lock and
/// inspects all numbers.

#include <quarry/region/detail/spin_lock.hpp>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <thread>

namespace quarry::detail {

class thread_places {
 public:
  static constexpr unsigned most = 64;

  /// Returns the number of this thread, less than `most`.
  static unsigned mine() { return place_ != none ? place_ : all().assign(); }

  /// Must be called in the child after a fork: it has only the thread that called fork.
  static void after_fork_in_child() {
    thread_places& places = all();
    new (&places.lock_) spin_lock;
    places.threads_.fill(0);
    if (place_ != none) places.threads_[place_] = 1;
  }

 private:
  static constexpr unsigned none = ~0u;

  thread_places()
      : count_(std::clamp(numbers_per_processor * std::thread::hardware_concurrency(), 8u, most)) {
    has_key_ = ::pthread_key_create(&key_, [](void*) { all().release(); }) == 0;
  }
  static thread_places& all() {
    static thread_places it;
    return it;
  }

  unsigned assign() {
    {
      std::lock_guard guard(lock_);
      unsigned* const least = std::min_element(threads_.data(), threads_.data() + count_);
      ++*least;
      place_ = static_cast<unsigned>(least - threads_.data());
    }
    // pthread_setspecific may allocate, so this thread must have its number before.
    if (has_key_) ::pthread_setspecific(key_, this);
    return place_;
  }
  void release() {
    std::lock_guard guard(lock_);
    --threads_[place_];
  }

  /// With as many threads as numbers, two threads that run at the same time rarely share one.
  static constexpr unsigned numbers_per_processor = 4;
  static inline constinit thread_local unsigned place_ = none;

  unsigned count_;
  bool has_key_ = false;
  pthread_key_t key_{};
  spin_lock lock_;
  std::array<unsigned, most> threads_{};  // number -> threads that have it
};

}  // namespace quarry::detail

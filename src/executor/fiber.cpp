// SPDX-License-Identifier: Apache-2.0
#include "executor/fiber_switch.hpp"

#include <pthread.h>

#if QUARRY_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace quarry::simt::detail {

void fiber::make(char* bottom, unsigned colour, entry start, std::size_t size) {
  forget();
  start_ = start;
  bottom_ = bottom;
  size_ = size;
#if QUARRY_ASAN
  __asan_unpoison_memory_region(bottom, size);
#endif
  const std::size_t offset = std::size_t{colour % 32} * 320;
  context_ = boost::context::detail::make_fcontext(bottom + size - offset, size - offset,
                                                   &fiber_switch::enter);
#if QUARRY_TSAN
  tsan_fiber_ = __tsan_create_fiber(0);
  owns_tsan_fiber_ = true;
#endif
  made_ = true;
}

void fiber::adopt_thread() {
#if QUARRY_TSAN
  tsan_fiber_ = __tsan_get_current_fiber();
#endif
#if QUARRY_ASAN
  pthread_attr_t attributes;
  void* bottom = nullptr;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &bottom, &size_);
  ::pthread_attr_destroy(&attributes);
  bottom_ = static_cast<char*>(bottom);
#endif
}

void fiber::forget() {
#if QUARRY_TSAN
  // The next user of this stack and of its data is ordered after the accesses of this fiber.
  if (owns_tsan_fiber_) {
    constexpr unsigned no_sync = 1;
    void* const self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_fiber_, no_sync);
    __tsan_release(this);
    __tsan_switch_to_fiber(self, no_sync);
    __tsan_acquire(this);
    __tsan_destroy_fiber(tsan_fiber_);
  }
  owns_tsan_fiber_ = false;
#endif
  made_ = false;
}

QUARRY_NO_TSAN void fiber::jump(fiber& from, fiber& to, bool ordered) {
  fiber_switch::jump(from, to, ordered);
}

}  // namespace quarry::simt::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// fiber: a stack, and the place on it where execution stopped.
///
/// Boost.Context switches; this file adds what sanitizers want to know. A fiber is made once and then
/// loops for ever, since a warm stack is much cheaper than a new one. One that is abandoned in the
/// middle is simply made anew: frames on a lane's stack own nothing that needs a destructor.
///
///   stacks of a warp   | guard | stack 0 | guard | stack 1 | ...
/// Stack tops are staggered, or all lanes would fight for the same cache sets.

#include <quarry/core/error.hpp>
#include <quarry/simt/executor/sanitizer.hpp>

#include <boost/context/detail/fcontext.hpp>

#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>

#if QUARRY_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace quarry::simt::exec {

inline constexpr std::size_t guard_bytes = 4096;
#if QUARRY_TSAN || QUARRY_ASAN
inline constexpr std::size_t stack_bytes = 256 * 1024;
#else
inline constexpr std::size_t stack_bytes = 64 * 1024 - guard_bytes;
#endif

/// Stacks for `count` fibers, a guard page below each.
class stacks {
 public:
  explicit stacks(unsigned count) : bytes_(count * stride) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw out_of_memory("no memory for the stacks of a warp");
    base_ = static_cast<char*>(memory);
    // A guard costs a mapping, and a process may have some 65,000. Past that, run without.
    for (unsigned i = 0; i < count; ++i)
      (void)::mprotect(base_ + i * stride, guard_bytes, PROT_NONE);
  }
  ~stacks() {
#if QUARRY_ASAN
    __asan_unpoison_memory_region(base_,
                                  bytes_);  // lanes that were given up leave their frames' marks
#endif
    ::munmap(base_, bytes_);
  }
  stacks(const stacks&) = delete;
  stacks& operator=(const stacks&) = delete;

  char* bottom(unsigned i) const { return base_ + i * stride + guard_bytes; }

 private:
  static constexpr std::size_t stride = stack_bytes + guard_bytes;
  std::size_t bytes_;
  char* base_;
};

class fiber {
 public:
  using transfer = boost::context::detail::transfer_t;
  using entry = void (*)(transfer);  // calls arrive() first, and never returns

  fiber() = default;
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;
  ~fiber() { forget(); }

  /// Ready to enter `start` on the given stack.
  void make(char* bottom, unsigned colour, entry start, std::size_t size = stack_bytes) {
    forget();
    bottom_ = bottom;
    size_ = size;
#if QUARRY_ASAN
    __asan_unpoison_memory_region(bottom, size);
#endif
    const std::size_t offset = (colour % 32) * 320;
    context_ = boost::context::detail::make_fcontext(bottom + size - offset, size - offset, start);
#if QUARRY_TSAN
    tsan_ = __tsan_create_fiber(0);
    owns_tsan_ = true;
#endif
    made_ = true;
  }

  /// This fiber stands for the calling thread.
  void adopt_thread() {
#if QUARRY_TSAN
    tsan_ = __tsan_get_current_fiber();
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

  bool made() const { return made_; }
  void forget() {
#if QUARRY_TSAN
    if (owns_tsan_) {  // whoever uses this stack and its data next comes after what was done here
      constexpr unsigned no_sync = 1;
      void* const self = __tsan_get_current_fiber();
      __tsan_switch_to_fiber(tsan_, no_sync);
      __tsan_release(this);
      __tsan_switch_to_fiber(self, no_sync);
      __tsan_acquire(this);
      __tsan_destroy_fiber(tsan_);
    }
    owns_tsan_ = false;
#endif
    made_ = false;
  }

  /// Stop here, go on there. For the race detector a switch orders nothing, so that lanes stay
  /// concurrent, unless it is `ordered`: then fibers are the parts of one thread.
  QUARRY_UNSEEN static void jump(fiber& from, fiber& to, [[maybe_unused]] bool ordered = false) {
#if QUARRY_TSAN
    constexpr unsigned no_sync = 1;
    __tsan_switch_to_fiber(to.tsan_, ordered ? 0 : no_sync);
#endif
#if QUARRY_ASAN
    __sanitizer_start_switch_fiber(&from.asan_frames_, to.bottom_, to.size_);
#endif
    const transfer back = boost::context::detail::jump_fcontext(to.context_, &from);
    static_cast<fiber*>(back.data)->context_ = back.fctx;
#if QUARRY_ASAN
    __sanitizer_finish_switch_fiber(from.asan_frames_, nullptr, nullptr);
#endif
  }

  /// The first thing a new fiber does: note where the one that entered it stopped.
  QUARRY_UNSEEN static void arrive(transfer back) {
    static_cast<fiber*>(back.data)->context_ = back.fctx;
#if QUARRY_ASAN
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  }

 private:
  void* context_ = nullptr;
  char* bottom_ = nullptr;
  std::size_t size_ = 0;
  bool made_ = false;
#if QUARRY_TSAN
  void* tsan_ = nullptr;
  bool owns_tsan_ = false;
#endif
#if QUARRY_ASAN
  void* asan_frames_ = nullptr;
#endif
};

}  // namespace quarry::simt::exec

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Annotations for ThreadSanitizer. Without the sanitizer they compile to nothing.
///
/// The lanes of a warp share an OS thread, yet they are concurrent: a data race between two lanes
/// is a data race on the GPU. ThreadSanitizer reports it, because each lane is a sanitizer fiber of
/// its own, and a switch between fibers orders nothing. All lanes access the executor's own state
/// in turn; `tsan_ignore` hides these accesses. Lanes are ordered only by atomics, by sync_warp, by
/// sync_block, and by the start and the end of a kernel. The last three use tsan_release and
/// tsan_acquire.

#include <quarry/core/config.hpp>

#if QUARRY_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace quarry::simt::detail {

/// While an object of this class exists, the sanitizer ignores the memory accesses of its lane.
class tsan_ignore {
 public:
#if QUARRY_TSAN
  QUARRY_NO_TSAN tsan_ignore() { begin(); }
  QUARRY_NO_TSAN ~tsan_ignore() { end(); }
#else
  // nvcc warns of unused variables of trivial types, even of [[maybe_unused]] ones.
  tsan_ignore() {}   // NOLINT(modernize-use-equals-default)
  ~tsan_ignore() {}  // NOLINT(modernize-use-equals-default)
#endif
  tsan_ignore(const tsan_ignore&) = delete;
  tsan_ignore& operator=(const tsan_ignore&) = delete;

  QUARRY_NO_TSAN static void begin() {
#if QUARRY_TSAN
    AnnotateIgnoreReadsBegin("", 0);
    AnnotateIgnoreWritesBegin("", 0);
#endif
  }
  QUARRY_NO_TSAN static void end() {
#if QUARRY_TSAN
    AnnotateIgnoreWritesEnd("", 0);
    AnnotateIgnoreReadsEnd("", 0);
#endif
  }
};

/// Orders the earlier accesses of this lane before every later tsan_acquire(key).
inline void tsan_release([[maybe_unused]] void* key) {
#if QUARRY_TSAN
  __tsan_release(key);
#endif
}
/// Orders the later accesses of this lane after every earlier tsan_release(key).
inline void tsan_acquire([[maybe_unused]] void* key) {
#if QUARRY_TSAN
  __tsan_acquire(key);
#endif
}

}  // namespace quarry::simt::detail

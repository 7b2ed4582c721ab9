// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What race and memory detectors must be told about lanes.
///
/// Lanes of one warp share an OS thread, yet they are concurrent: a race between two of them is a
/// race on the GPU. ThreadSanitizer sees it because every lane is a fiber of its own and switching
/// orders nothing. The executor's own bookkeeping, touched by all lanes in turn, is hidden from it.
/// Order between lanes comes only from atomics, sync_warp, the block barrier, and from a kernel's
/// beginning and end; the last three are announced here.

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

namespace quarry::simt::exec {

/// While one lives, memory accesses of this lane are not recorded.
class unseen {
 public:
#if QUARRY_TSAN
  QUARRY_UNSEEN unseen() { begin(); }
  QUARRY_UNSEEN ~unseen() { end(); }
#else
  unseen() {}
  ~unseen() {}
#endif
  unseen(const unseen&) = delete;
  unseen& operator=(const unseen&) = delete;

  QUARRY_UNSEEN static void begin() {
#if QUARRY_TSAN
    AnnotateIgnoreReadsBegin("", 0);
    AnnotateIgnoreWritesBegin("", 0);
#endif
  }
  QUARRY_UNSEEN static void end() {
#if QUARRY_TSAN
    AnnotateIgnoreWritesEnd("", 0);
    AnnotateIgnoreReadsEnd("", 0);
#endif
  }
};

/// What came before on this lane is visible to whoever joins `where` later.
inline void publish([[maybe_unused]] void* where) {
#if QUARRY_TSAN
  __tsan_release(where);
#endif
}
inline void join([[maybe_unused]] void* where) {
#if QUARRY_TSAN
  __tsan_acquire(where);
#endif
}

}  // namespace quarry::simt::exec

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// fiber: a stack, and the point on it where execution is suspended. Part of quarry::cpu.
///
/// Boost.Context switches stacks; the library adds the annotations that the sanitizers need. A
/// fiber is made once and then loops forever, since a warm stack is much cheaper than a new one. A
/// fiber may be abandoned at any suspension point and made again: the frames on its stack must own
/// nothing that needs a destructor.
///
/// The layout of the class does not depend on sanitizers, so that it is the same in all translation
/// units.

#include <quarry/core/config.hpp>

#include <cstddef>

namespace quarry::simt::detail {

/// The size of the inaccessible page below each stack.
inline constexpr std::size_t guard_bytes = 4096;
#if QUARRY_TSAN || QUARRY_ASAN
inline constexpr std::size_t stack_bytes = std::size_t{256} * 1024;
#else
inline constexpr std::size_t stack_bytes = std::size_t{64} * 1024 - guard_bytes;
#endif

class fiber {
 public:
  using entry = void (*)();  // never returns

  fiber() = default;
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;
  ~fiber() { forget(); }

  /// Effects: the first jump to this fiber calls `start` on the stack [bottom, bottom + size). The
  /// stack pointer starts `colour` % 32 times 320 bytes below the top: without these offsets the
  /// stacks of a warp would compete for the same sets of the cache.
  void make(char* bottom, unsigned colour, entry start, std::size_t size = stack_bytes);

  /// Effects: this fiber stands for the calling thread.
  void adopt_thread();

  bool made() const { return made_; }
  /// Effects: abandons the fiber at its suspension point. Its stack may be used again.
  void forget();

  /// Effects: suspends `from`, which is running, and resumes `to`. For ThreadSanitizer the switch
  /// orders nothing, so that lanes stay concurrent. An `ordered` switch does: such fibers are parts
  /// of one sequential program.
  static void jump(fiber& from, fiber& to, bool ordered = false);

 private:
  friend struct fiber_switch;  // src/executor/fiber_switch.hpp

  void* context_ = nullptr;
  entry start_ = nullptr;
  char* bottom_ = nullptr;
  std::size_t size_ = 0;
  void* tsan_fiber_ = nullptr;
  void* asan_fake_stack_ = nullptr;
  bool made_ = false;
  bool owns_tsan_fiber_ = false;
};

}  // namespace quarry::simt::detail

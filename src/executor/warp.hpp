// SPDX-License-Identifier: Apache-2.0
#pragma once
/// lane and warp: the executor's state of each.
///
/// A lane is ready, running, spinning, waiting (in a collective or at the block barrier) or exited.
///   existing, ready, spinning, alive, at_barrier    one bit per lane
///   pending                                         the collectives in which lanes wait; no two
///                                                   are equal
/// Invariant: alive = ready + spinning + at_barrier + the lanes of `pending`. The sets are
/// disjoint. In explore mode the running lane is not in `ready`, and is added to the sum.

#include <quarry/core/error.hpp>
#include <quarry/simt/bits.hpp>
#include <quarry/simt/detail/executor_interface.hpp>
#include <quarry/simt/detail/fiber.hpp>

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>

#if QUARRY_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace quarry::simt::detail {

/// The stacks of a warp: | guard | stack 0 | guard | stack 1 | ...
class stacks {
 public:
  explicit stacks(unsigned count) : bytes_(count * stride) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw out_of_memory("the CPU backend can not map " + std::to_string(bytes_) +
                          " bytes for the stacks of a warp");
    base_ = static_cast<char*>(memory);
    // Each guard is a mapping, and Linux limits a process to about 65,000 mappings. Beyond the
    // limit mprotect fails, and the stacks have no guards.
    for (unsigned i = 0; i < count; ++i)
      (void)::mprotect(base_ + i * stride, guard_bytes, PROT_NONE);
  }
  ~stacks() {
#if QUARRY_ASAN
    // The frames of abandoned lanes are still poisoned.
    __asan_unpoison_memory_region(base_, bytes_);
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

struct warp;

struct lane : lane_state {
  fiber context;
  warp* home = nullptr;
  std::uint64_t priority = 0;  // explore mode, PCT

  lane_mask bit() const { return lane_mask{1} << index; }
};

/// A collective in which lanes wait. Lanes with equal kinds and masks take part in the same
/// collective. active_mask() has no mask argument: lanes match if they call it on the same source
/// line.
struct pending_collective {
  const collective_kind* kind = nullptr;
  lane_mask mask = 0;
  lane_mask arrived = 0;
  const char* file = nullptr;
  unsigned line = 0;
};

struct warp {
  warp() : memory(warp_size) {}

  stacks memory;
  std::array<lane, warp_size> lanes;
  std::array<lane_operand, warp_size> operands;
  warp* first_of_block = nullptr;
  lane_mask existing = 0;  // all lanes, those that have exited too
  lane_mask ready = 0;
  lane_mask spinning = 0;
  lane_mask alive = 0;
  lane_mask at_barrier = 0;
  lane* turn = nullptr;  // explore mode, lockstep: the lane that runs until it waits
  unsigned pending_count = 0;
  std::array<pending_collective, warp_size> pending;

  pending_collective* find(const pending_collective& like) {
    for (unsigned k = 0; k < pending_count; ++k) {
      pending_collective& p = pending[k];
      if (p.kind == like.kind && p.mask == like.mask && p.line == like.line && p.file == like.file)
        return &p;
    }
    return nullptr;
  }
  pending_collective& find_or_add(const pending_collective& like) {
    if (pending_collective* p = find(like)) return *p;
    return pending[pending_count++] = like;
  }
  void remove(pending_collective& p) {
    if (&p != &pending[--pending_count]) p = pending[pending_count];
  }
};

}  // namespace quarry::simt::detail

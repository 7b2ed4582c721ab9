// SPDX-License-Identifier: Apache-2.0
#pragma once
/// heap_ref: a heap as kernels see it. A few words, trivially copyable: a kernel argument, a captured
/// variable, a __device__ global. It stays valid as long as the heap lives, also when the heap moves.

#include <quarry/core/allocator.hpp>
#include <quarry/heap/default.hpp>
#include <quarry/simt/machine.hpp>

#include <cstddef>

namespace quarry {

template <allocator Allocator = default_allocator, machine Machine = default_machine>
class heap_ref {
 public:
  using allocator_type = Allocator;
  using machine_type = Machine;
  static constexpr abilities can = Allocator::can;

  heap_ref() = default;  // uninitialised: assign one before use
  explicit heap_ref(const Allocator& a) : allocator_(a) {}

  /// n bytes, 16-byte aligned; nullptr for n = 0 and when nothing fits.
  QUARRY_DEVICE void* malloc(std::size_t n) const { return allocator_.malloc(n); }

  /// As above at a larger alignment, a power of two up to can.max_alignment.
  QUARRY_DEVICE void* malloc(std::size_t n, std::size_t alignment) const
    requires aligning_allocator<Allocator>
  {
    return allocator_.malloc(n, alignment);
  }

  /// Requires: p from malloc of this heap, not freed since, or nullptr.
  QUARRY_DEVICE void free(void* p) const
    requires freeing_allocator<Allocator>
  {
    allocator_.free(p);
  }

  /// For layers and tests that need the allocator itself.
  QUARRY_DEVICE const Allocator& allocator() const { return allocator_; }

 private:
  Allocator allocator_;
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// failure_log: counts the failed allocations of a heap.
///
/// A kernel that gets nullptr can not throw, and few programs check every pointer. The heap
/// therefore records how many allocations failed, the size of the first, and the largest size.
/// heap::failures() returns the counts, and heap::check() throws if there are any.
///
/// Cost: three words in the metadata of the heap, written by failed allocations only. A failed
/// allocation takes one load and one atomic, and three more accesses if its size is the largest so
/// far. bump and wrap do not record failures: the log would cost their kernels a register.
///
/// Memory ordering: relaxed; the host reads the log between kernels. If several lanes fail first at
/// the same time, `first` is the size of one of them.

#include <quarry/core/statistics.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>

namespace quarry {

struct failure_log {
  std::uint64_t count;
  std::uint64_t first;
  std::uint64_t largest;

  /// Records a failed allocation of n bytes. Requires n != 0.
  QUARRY_DEVICE void record(std::uint64_t n) {
    const simt::atomic_ref<std::uint64_t> largest_word(largest);
    if (largest_word.load(simt::relaxed) < n) {
      const simt::atomic_ref<std::uint64_t> first_word(first);
      if (first_word.load(simt::relaxed) == 0) first_word.store(n, simt::relaxed);
      largest_word.fetch_max(n, simt::relaxed);
    }
    simt::atomic_ref<std::uint64_t>(count).add(1, simt::relaxed);
  }

  allocation_failures counts() const { return {count, first, largest}; }
};

}  // namespace quarry

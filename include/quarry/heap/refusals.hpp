// SPDX-License-Identifier: Apache-2.0
#pragma once
/// refusal_book: what a heap remembers of requests that found no memory.
///
/// A kernel that gets nullptr has nobody to tell, and few programs look. So the heap counts: how many requests were
/// refused, how large the first was, and the largest. Three words in the heap's metadata, written where malloc
/// has failed and nowhere else; a request that is served touches none of them.
///
/// Ordering: relaxed, read between kernels. Of requests that are the first at the same moment,
/// `first` is that of any.
/// Bound: a load and an atomic a refusal, three accesses more for one that is larger than all before. No named
/// allocator takes a register more for it, but bump and wrap, whose refusals are therefore not noted.

#include <quarry/core/statistics.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>

namespace quarry {

struct refusal_book {
  std::uint64_t count;
  std::uint64_t first;
  std::uint64_t largest;

  /// A request for n bytes failed. Requires n != 0.
  QUARRY_DEVICE void note(std::uint64_t n) {
    const simt::atomic_ref<std::uint64_t> most(largest);
    if (most.load(simt::relaxed) < n) {
      const simt::atomic_ref<std::uint64_t> earliest(first);
      if (earliest.load(simt::relaxed) == 0) earliest.store(n, simt::relaxed);
      most.fetch_max(n, simt::relaxed);
    }
    simt::atomic_ref<std::uint64_t>(count).add(1, simt::relaxed);
  }

  refusal_counts counts() const { return {count, first, largest}; }
};

}  // namespace quarry

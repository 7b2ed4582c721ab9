// SPDX-License-Identifier: Apache-2.0
#pragma once
/// instrumented: an upstream for tests that counts its calls and fails for requests above Limit.
///
/// statistics() returns the counts as two additional size classes, since it works on both backends.

#include <quarry/core/allocator.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>
#include <string>

namespace quarry::testing {

struct call_counts {
  std::uint64_t mallocs = 0;  // successful ones
  std::uint64_t failed = 0;
  std::uint64_t frees = 0;
  std::uint64_t last_size = 0;
};

/// Returns the counts of a heap over an instrumented upstream.
inline call_counts calls_of(const heap_statistics& s) {
  const auto& last = s.classes.back();
  const auto& one = s.classes[s.classes.size() - 2];
  return {one.live_blocks, one.free_blocks, last.live_blocks, last.free_blocks};
}

template <allocator A, std::uint64_t Limit = ~std::uint64_t{0}>
class instrumented {
 public:
  static constexpr abilities can = A::can;
  instrumented() = default;
  instrumented(memory_range pool, carve& metadata)
      : inner_(pool, metadata), counts_(metadata.take<call_counts>("calls", 1)) {}
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    inner_.initialise(lane, lanes);
  }
  QUARRY_DEVICE void* malloc(std::size_t n) const {
    void* const p = n > Limit ? nullptr : inner_.malloc(n);
    add(p == nullptr ? counts_->failed : counts_->mallocs);
    simt::atomic_ref<std::uint64_t>(counts_->last_size).store(n, simt::relaxed);
    return p;
  }
  QUARRY_DEVICE void free(void* p) const requires(can.frees_one) {
    if (p != nullptr) add(counts_->frees);
    inner_.free(p);
  }
  std::string check_invariants() const { return inner_.check_invariants(); }
  heap_statistics statistics() const {
    heap_statistics s = inner_.statistics();
    s.classes.push_back({0, counts_->mallocs, counts_->failed});
    s.classes.push_back({0, counts_->frees, counts_->last_size});
    return s;
  }

 private:
  QUARRY_DEVICE static void add(std::uint64_t& word) {
    simt::atomic_ref<std::uint64_t>(word).add(1, simt::relaxed);
  }
  A inner_;
  call_counts* counts_;
};

}  // namespace quarry::testing

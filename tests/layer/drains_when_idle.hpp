// SPDX-License-Identifier: Apache-2.0
#pragma once
/// drains_when_idle: a buffering allocator, told to give everything back whenever no block is live.
///
/// Over the system's heap a buffer that is made new, as the explorer does after each run, would lose
/// what it keeps; and leak detectors would say so.

#include <quarry/core/allocator.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>
#include <string>

namespace quarry::testing {

template <freeing_allocator A>
class drains_when_idle {
 public:
  static constexpr abilities can = A::can;
  drains_when_idle() = default;
  drains_when_idle(memory_range pool, carve& metadata)
      : inner_(pool, metadata), live_(metadata.take<std::uint64_t>("live", 1)) {}
  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    inner_.initialise(lane, lanes);
  }
  QUARRY_DEVICE void* malloc(std::size_t n) const {
    void* const p = inner_.malloc(n);
    if (p != nullptr) simt::atomic_ref<std::uint64_t>(*live_).add(1, simt::relaxed);
    return p;
  }
  QUARRY_DEVICE void free(void* p) const {
    inner_.free(p);
    if (p == nullptr) return;
    if (simt::atomic_ref<std::uint64_t>(*live_).fetch_sub(1, simt::relaxed) == 1) inner_.drain();
  }
  std::string check_invariants() const { return inner_.check_invariants(); }
  heap_statistics statistics() const { return inner_.statistics(); }

 private:
  A inner_;
  std::uint64_t* live_;
};

}  // namespace quarry::testing

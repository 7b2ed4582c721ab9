// SPDX-License-Identifier: Apache-2.0
#pragma once
/// word_pool: a pool of at most 64 units, one bit of a word each; an upstream for tests.
///
/// word_pool does not fragment for blocks of one unit: after any order of frees it serves as many
/// of them as a new pool. A layer over it that serves fewer blocks has lost memory. A circular pool
/// does not have this property if the smallest block is larger than its granule.
///
/// malloc finds the lowest sufficient run of clear bits and sets it with one compare-exchange. An
/// array holds the length of each run for free.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/simt/atomic.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace quarry::testing {

template <std::uint32_t Unit>
class word_pool {
 public:
  static constexpr abilities can = {.frees_one = true, .reuses = true, .min_pool = Unit};

  word_pool() = default;
  word_pool(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        units_(static_cast<std::uint32_t>(std::min<std::uint64_t>(pool.size / Unit, 64))),
        taken_(metadata.take<std::uint64_t>("taken", 1)),
        length_(metadata.take<std::uint32_t>("length", 64)) {}

  QUARRY_DEVICE void initialise(std::uint64_t, std::uint64_t) const {}

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    if (n - 1 >= std::uint64_t{units_} * Unit) return nullptr;
    const auto units = static_cast<std::uint32_t>((n - 1) / Unit + 1);
    const simt::atomic_ref<std::uint64_t> taken(*taken_);
    std::uint64_t seen = taken.load(simt::relaxed);
    for (;;) {
      std::uint32_t at = 0;
      while (at + units <= units_ && (seen >> at & bits(units)) != 0) ++at;
      if (at + units > units_) return nullptr;
      if (!taken.compare_exchange(seen, seen | bits(units) << at, simt::acquire)) continue;
      simt::atomic_ref<std::uint32_t>(length_[at]).store(units, simt::relaxed);
      return pool_ + std::uint64_t{at} * Unit;
    }
  }

  QUARRY_DEVICE void free(void* p) const {
    if (p == nullptr) return;
    const auto at = static_cast<std::uint32_t>(
        static_cast<std::uint64_t>(static_cast<std::byte*>(p) - pool_) / Unit);
    const std::uint32_t units =
        simt::atomic_ref<std::uint32_t>(length_[at]).exchange(0, simt::relaxed);
    simt::atomic_ref<std::uint64_t>(*taken_).fetch_and(~(bits(units) << at), simt::release);
  }

  std::string check_invariants() const {
    std::uint64_t covered = 0;
    for (std::uint32_t at = 0; at < 64; ++at) {
      const std::uint64_t run = length_[at] == 0 ? 0 : bits(length_[at]) << at;
      if ((covered & run) != 0) return "two runs overlap at unit " + std::to_string(at);
      covered |= run;
    }
    return covered == *taken_ ? ""
                              : "the taken units differ from the units of all runs: a block was "
                                "freed twice, or lost";
  }
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = std::uint64_t{units_} * Unit;
    s.live_blocks = static_cast<std::uint64_t>(
        std::count_if(length_, length_ + 64, [](auto l) { return l != 0; }));
    s.live_bytes = std::uint64_t{simt::popc(*taken_)} * Unit;
    s.free_bytes = s.pool_bytes - *s.live_bytes;
    return s;
  }

 private:
  QUARRY_DEVICE static constexpr std::uint64_t bits(std::uint32_t n) {
    return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  }

  std::byte* pool_;
  std::uint32_t units_;
  std::uint64_t* taken_;
  std::uint32_t* length_;
};

static_assert(freeing_allocator<word_pool<64>>);

}  // namespace quarry::testing

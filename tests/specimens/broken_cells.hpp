// SPDX-License-Identifier: Apache-2.0
#pragma once
/// broken_cells: a small, sound allocator of equal cells, and the ways to break it, one at a time. Each
/// breaks one promise of the contract, so that each check of the explorer has something to find.
///
///   pool    | cell 0 | cell 1 | … |       64 bytes each
///   taken   a word for each cell: 0 free, 1 taken

#include <quarry/core/allocator.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/explore.hpp>

#include <cstdint>
#include <string>

namespace quarry::specimens {

enum class fault : std::uint8_t {
  none,
  claims_in_two_steps,  // looks, then takes: two lanes may take one cell
  one_cell_too_many,    // the last cell lies behind the pool
  wrong_alignment,      // small blocks start in the middle of 16 bytes
  forgets_the_last,     // the last cell never becomes free again
  waits_for_ever,       // until a cell is free
  counts_in_two_steps,  // the number of taken cells is read, then written
  scribbles,            // free writes into the neighbour
  serves_nothing,       // malloc(0) gives a block
  serves_everything,    // so does malloc(SIZE_MAX)
  miscounts,            // the statistics forget that blocks were freed
  writes_before_pool,
  writes_after_metadata,
  deadlocks  // lanes meet under a mask that not all of them pass
};

template <fault Fault = fault::none>
class broken_cells {
 public:
  static constexpr abilities can = {
      .frees_one = true, .reuses = true, .max_size = 64, .min_pool = 128};

  broken_cells(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        cells_(static_cast<std::uint32_t>(pool.size / 64) + is(fault::one_cell_too_many)),
        taken_(metadata.take<std::uint32_t>("taken", cells_)),
        count_(metadata.take<std::uint32_t>("count", 1)) {}

  void initialise(std::uint64_t, std::uint64_t) const {}

  void* malloc(std::size_t n) const {
    if (n == 0 && !is(fault::serves_nothing)) return nullptr;
    if (n > 64 && !is(fault::serves_everything)) return nullptr;
    if (is(fault::deadlocks) && simt::block_size() >= 2) simt::sync_warp(simt::active_mask() | 3u);
    for (std::uint32_t i = 0;; ++i) {
      if (i == cells_) {
        if (!is(fault::waits_for_ever)) return nullptr;
        i = 0;
        simt::spin();
      }
      if (!claim(i)) continue;
      add_to_count(1);
      return pool_ + 64 * std::uint64_t{i} + (is(fault::wrong_alignment) && n <= 32 ? 8 : 0);
    }
  }

  void free(void* p) const {
    if (p == nullptr) return;
    const auto cell = static_cast<std::uint32_t>((static_cast<std::byte*>(p) - pool_) / 64);
    add_to_count(is(fault::miscounts) ? 0u : ~0u);
    misbehave(cell);
    if (is(fault::forgets_the_last) && cell + 1 == cells_) return;
    simt::atomic_ref(taken_[cell]).store(0, simt::release);
  }

  std::string check_invariants() const {
    if (!is(fault::counts_in_two_steps)) return {};
    std::uint32_t taken = 0;
    for (std::uint32_t i = 0; i < cells_; ++i) taken += taken_[i];
    if (taken == *count_) return {};
    return std::to_string(taken) + " cells are taken, but the count is " + std::to_string(*count_);
  }
  heap_statistics statistics() const {
    heap_statistics s;
    s.pool_bytes = 64 * std::uint64_t{cells_};
    s.live_blocks = *count_;
    return s;
  }

 private:
  static constexpr bool is(fault f) { return Fault == f; }

  void misbehave(std::uint32_t cell) const {
    const simt::host_section hidden;  // or a race detector would complain before the oracle can
    if (is(fault::scribbles)) pool_[64 * std::uint64_t{(cell + 1) % cells_} + 3] ^= std::byte{1};
    if (is(fault::writes_before_pool)) *(pool_ - 1) = std::byte{0};
    if (is(fault::writes_after_metadata)) count_[1] = 0;
  }
  bool claim(std::uint32_t cell) const {
    const simt::atomic_ref word(taken_[cell]);
    std::uint32_t expected = 0;
    if constexpr (is(fault::claims_in_two_steps)) {
      if (word.load(simt::acquire) != 0) return false;
      word.store(1, simt::relaxed);
      return true;
    }
    return word.compare_exchange(expected, 1, simt::acquire);
  }
  void add_to_count(std::uint32_t n) const {
    const simt::atomic_ref count(*count_);
    if constexpr (is(fault::counts_in_two_steps))
      count.store(count.load(simt::relaxed) + n, simt::relaxed);
    else
      count.add(n, simt::relaxed);
  }

  std::byte* pool_;
  std::uint32_t cells_;
  std::uint32_t* taken_;
  std::uint32_t* count_;
};

static_assert(freeing_allocator<broken_cells<>>);

}  // namespace quarry::specimens

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// broken_cells: a small, sound allocator of equal cells, with one optional fault. Each fault
/// violates one clause of the allocator contract, so that each check of the explorer has a mutant
/// to detect.
///
///   pool    | cell 0 | cell 1 | … |       64 bytes each
///   taken   one word per cell: 0 free, 1 taken

#include <quarry/core/allocator.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/explore.hpp>

#include <cstdint>
#include <string>

namespace quarry::mutants {

enum class fault : std::uint8_t {
  none,
  claims_in_two_steps,    // malloc loads, then stores: two lanes may take one cell
  one_cell_too_many,      // the last cell lies behind the pool
  wrong_alignment,        // small blocks start 8 bytes after a multiple of 16
  leaks_last_cell,        // free does not release the last cell
  spins_when_full,        // malloc waits until a cell is free
  counts_in_two_steps,    // the number of taken cells is updated by a load and a store
  writes_to_neighbour,    // free writes into the next cell
  serves_zero_bytes,      // malloc(0) returns a block
  serves_oversize,        // malloc(SIZE_MAX) returns a block
  miscounts,              // the statistics ignore freed blocks
  writes_before_pool,     // free writes to the byte before the pool
  writes_after_metadata,  // free writes to the word after the metadata
  deadlocks               // lanes synchronise under a mask that names absent lanes
};

template <fault Fault = fault::none>
class broken_cells {
 public:
  static constexpr abilities can = {
      .frees_one = true, .reuses = true, .max_size = 64, .min_pool = 128};

  broken_cells(memory_range pool, carve& metadata)
      : pool_(pool.begin),
        cells_(static_cast<std::uint32_t>(pool.size / 64) + has(fault::one_cell_too_many)),
        taken_(metadata.take<std::uint32_t>("taken", cells_)),
        count_(metadata.take<std::uint32_t>("count", 1)) {}

  void initialise(std::uint64_t, std::uint64_t) const {}

  void* malloc(std::size_t n) const {
    if (n == 0 && !has(fault::serves_zero_bytes)) return nullptr;
    if (n > 64 && !has(fault::serves_oversize)) return nullptr;
    if (has(fault::deadlocks) && simt::block_size() >= 2) simt::sync_warp(simt::active_mask() | 3u);
    for (std::uint32_t i = 0;; ++i) {
      if (i == cells_) {
        if (!has(fault::spins_when_full)) return nullptr;
        i = 0;
        simt::spin();
      }
      if (!claim(i)) continue;
      add_to_count(1);
      return pool_ + 64 * std::uint64_t{i} + (has(fault::wrong_alignment) && n <= 32 ? 8 : 0);
    }
  }

  void free(void* p) const {
    if (p == nullptr) return;
    const auto cell = static_cast<std::uint32_t>((static_cast<std::byte*>(p) - pool_) / 64);
    add_to_count(has(fault::miscounts) ? 0u : ~0u);
    corrupt_memory(cell);
    if (has(fault::leaks_last_cell) && cell + 1 == cells_) return;
    simt::atomic_ref(taken_[cell]).store(0, simt::release);
  }

  std::string check_invariants() const {
    if (!has(fault::counts_in_two_steps)) return {};
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
  static constexpr bool has(fault f) { return Fault == f; }

  void corrupt_memory(std::uint32_t cell) const {
    const simt::host_section hidden;  // keeps race detectors from reporting before the oracle
    if (has(fault::writes_to_neighbour))
      pool_[64 * std::uint64_t{(cell + 1) % cells_} + 3] ^= std::byte{1};
    if (has(fault::writes_before_pool)) *(pool_ - 1) = std::byte{0};
    if (has(fault::writes_after_metadata)) count_[1] = 0;
  }
  bool claim(std::uint32_t cell) const {
    const simt::atomic_ref word(taken_[cell]);
    std::uint32_t expected = 0;
    if constexpr (has(fault::claims_in_two_steps)) {
      if (word.load(simt::acquire) != 0) return false;
      word.store(1, simt::relaxed);
      return true;
    }
    return word.compare_exchange(expected, 1, simt::acquire);
  }
  void add_to_count(std::uint32_t n) const {
    const simt::atomic_ref count(*count_);
    if constexpr (has(fault::counts_in_two_steps))
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

}  // namespace quarry::mutants

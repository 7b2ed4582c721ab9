// SPDX-License-Identifier: Apache-2.0
#pragma once
/// shadow_heap: the oracle of an allocator. It knows the live blocks and checks every result.
///
/// The shadow heap lies outside the allocator under test and identifies blocks by number. After
/// malloc, the block must be aligned, inside the pool, and disjoint from all live blocks; the
/// oracle then fills it with a pattern. Before free, the pattern must be intact. The block leaves
/// the shadow heap before the allocator is called, so that the next owner of the memory causes no
/// false report.
///
/// A quarter of the patterns are zero, and a quarter are small numbers. Algorithms with headers
/// between blocks read zero as "free" and a small number as a valid offset.
///
/// Allocators that overwrite by design cycle through their pool. Two of their blocks must be
/// disjoint if less than one cycle lies between the two reservations. That holds if the bytes that
/// were reserved in between, doubled to account for unused space at the end of the pool, fit into
/// the pool. The reservation of a call is its last access to the word that it accesses first. A
/// call without accesses may have reserved at any time since it began.
///
/// All lanes of the explorer share one OS thread, and no function here contains a scheduling point,
/// so every update is atomic. Race detectors ignore the tables (host_section) but not the patterns:
/// the allocator must order the last access of a block's owner before the first access of its next
/// owner. The order between malloc and the free of the same block is a duty of the users, and is
/// declared with tsan_release and tsan_acquire.

#include <quarry/core/allocator.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry {

class shadow_heap {
 public:
  struct block {
    std::byte* begin = nullptr;
    std::uint64_t size = 0;
    std::uint64_t pattern = 0;
    std::uint32_t lane = 0;
    std::uint32_t live_index = not_live;  // in live_
    std::uint64_t ended_before = 0;       // bytes of calls that ended before the reservation
  };
  static constexpr std::uint32_t not_live = ~std::uint32_t{0};

  /// Effects: removes all blocks. `paint_hidden`: race detectors ignore the patterns, too, for
  /// allocators that are known to access user memory.
  void begin(memory_range pool, const abilities& can, std::uint64_t seed, std::uint32_t blocks,
             std::uint64_t lanes, bool paint_hidden);

  // Called by a lane: before malloc(n), at each access to shared memory, and after malloc.
  // malloc_returned() returns false if the allocator violates its contract; violation() describes
  // it.
  void malloc_called(std::uint32_t lane, std::uint64_t n);
  /// Only for allocators that overwrite.
  void accessed(std::uint64_t lane, const void* where) {
    call& c = calls_[lane];
    if (c.word == nullptr) c.word = where;
    if (c.word == where) c.ended_before = ended_;
  }
  bool malloc_returned(std::uint32_t number, std::uint32_t lane, void* p, std::uint64_t n);
  /// Effects: removes a block. Returns: the block; begin == nullptr if it is not live.
  block remove(std::uint32_t number);
  bool still_painted(const block& b, std::uint32_t number, std::uint32_t lane);

  const std::string& violation() const { return violation_; }
  std::uint32_t live_count() const { return static_cast<std::uint32_t>(live_.size()); }
  std::uint32_t any_live() const { return live_.back(); }

  std::uint64_t served = 0, failed = 0, freed = 0;  // since begin

 private:
  struct call {
    std::uint64_t ended_before = 0;
    const void* word = nullptr;
  };

  std::uint64_t reserved_for(std::uint64_t n) const;
  bool may_overlap(const block& a, std::uint64_t ended_before) const;
  bool admit(std::uint32_t number, std::uint32_t lane, void* p, std::uint64_t n);
  bool report(std::uint32_t lane, const std::string& what);
  bool must_fail(std::uint64_t n) const;
  std::string name_of(std::uint32_t number) const;
  std::uint64_t pattern_of(std::uint32_t number) const;
  static void paint(const block& b);
  static std::uint64_t intact_bytes(const block& b);

  memory_range pool_;
  abilities can_;
  std::uint64_t seed_ = 0;
  bool hidden_ = false;
  std::vector<block> blocks_;
  std::vector<std::uint32_t> live_;
  std::vector<call> calls_;              // the last call of each lane
  std::uint64_t begun_ = 0, ended_ = 0;  // bytes of all calls
  std::string violation_;
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// allocator_sandbox: an allocator with its pool and metadata in host memory, between guard zones.
///
///   | guard | pool | guard | metadata | guard |
///
/// check_guards() detects writes to a guard zone. reset() fills the pool with one byte value, so
/// that reads of memory that was never allocated give the same result in every run.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace quarry {

template <allocator A>
class allocator_sandbox {
 public:
  explicit allocator_sandbox(std::uint64_t pool_bytes)
      : pool_bytes_(pool_bytes),
        metadata_bytes_(metadata_bytes<A>(pool_bytes)),
        metadata_offset_(align_up(2 * guard + pool_bytes_, guard)),
        bytes_(align_up(metadata_offset_ + metadata_bytes_ + guard, guard)),
        memory_(new (std::align_val_t{guard}) std::byte[bytes_]),
        metadata_(memory_.get() + metadata_offset_),
        heap_(pool(), metadata_) {
    std::memset(memory_.get(), guard_value, bytes_);
  }

  memory_range pool() const { return {memory_.get() + guard, pool_bytes_}; }
  const carve& metadata() const { return metadata_; }
  const A& heap() const { return heap_; }

  /// Effects: restores the initial state. `lanes` lanes call initialise(), one after the other.
  void reset(std::uint64_t lanes = 1) const {
    std::memset(pool().begin, pool_value, pool_bytes_);
    std::memset(memory_.get() + metadata_offset_, 0, metadata_bytes_);
    for (std::uint64_t lane = lanes; lane-- > 0;) heap_.initialise(lane, lanes);
  }

  /// Returns: an empty string if the guard zones are intact, otherwise a description of the write.
  std::string check_guards() const {
    const std::uint64_t pool_end = guard + pool_bytes_;
    if (!intact(0, guard)) return "the bytes before the pool were overwritten";
    if (!intact(pool_end, metadata_offset_)) return "the bytes after the pool were overwritten";
    if (!intact(metadata_offset_ + metadata_bytes_, bytes_))
      return "the bytes after the metadata were overwritten";
    return {};
  }

 private:
  static constexpr std::uint64_t guard = carve::alignment;
  static constexpr unsigned char guard_value = 0xb7;
  static constexpr unsigned char pool_value = 0xcd;

  struct release {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{guard}); }
  };

  bool intact(std::uint64_t first, std::uint64_t last) const {
    return std::all_of(memory_.get() + first, memory_.get() + last,
                       [](std::byte b) { return b == std::byte{guard_value}; });
  }

  std::uint64_t pool_bytes_;
  std::uint64_t metadata_bytes_;
  std::uint64_t metadata_offset_;
  std::uint64_t bytes_;
  std::unique_ptr<std::byte[], release> memory_;
  carve metadata_;
  A heap_;
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// address_range: a range of addresses that is reserved from the operating system.
///
/// The range is readable and writable. It is mapped with MAP_NORESERVE, so the system commits
/// memory page by page on first access: reserving a terabyte costs no memory. purge() returns the
/// memory of a part and keeps its addresses; the part then reads as zeros.

#include <quarry/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace quarry {

class address_range {
 public:
  static constexpr std::size_t system_page = 4096;
  /// The end of the addresses of a process; processors with five levels of page tables have most.
  static constexpr std::uintptr_t limit = std::uintptr_t{1} << 56;

  address_range() = default;

  /// Reserves `size` bytes, rounded up to pages of the system, at a multiple of `alignment`, a
  /// power of two. Throws out_of_memory if the system reserves none.
  address_range(std::size_t size, std::size_t alignment);

  /// Reserves exactly the addresses [where, where + size). Throws out_of_memory, with the reason,
  /// if the system reserves none.
  address_range(void* where, std::size_t size);

  address_range(address_range&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  address_range& operator=(address_range&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~address_range();

  std::byte* base() const { return base_; }
  std::size_t size() const { return size_; }

  /// Returns the memory of a part to the system. Requires whole pages of the system.
  void purge(std::size_t offset, std::size_t length) const;

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace quarry

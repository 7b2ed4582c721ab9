// SPDX-License-Identifier: Apache-2.0
#pragma once
/// address_range: addresses reserved from the operating system; memory comes when it is touched.
///
/// Reserved readable and writable without a promise of memory (MAP_NORESERVE): a terabyte costs
/// nothing until it is used, so nobody has to guess the size of a heap. purge gives the memory of a
/// part back and keeps the addresses; what it held reads as zeros, or as before, until written.

#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace quarry {

class address_range {
 public:
  static constexpr std::size_t system_page = 4096;

  address_range() = default;

  /// Reserves `size` bytes, rounded up to the system's pages, aligned to `alignment`, anywhere.
  /// Throws out_of_memory.
  address_range(std::size_t size, std::size_t alignment) : size_(align_up(size, system_page)) {
    size = size_;
    void* got = map(nullptr, size + alignment, 0);
    if (got == MAP_FAILED)
      throw out_of_memory("the system refuses to reserve " + to_text(bytes(size)) +
                          " of addresses; ask for a smaller range");
    const auto first = reinterpret_cast<std::uintptr_t>(got);
    const std::uintptr_t start = (first + alignment - 1) & ~(std::uintptr_t{alignment} - 1);
    base_ = reinterpret_cast<std::byte*>(start);
    if (start != first) ::munmap(got, start - first);
    const std::size_t tail = first + alignment - start;
    if (tail != 0) ::munmap(base_ + size, tail);
  }

  /// Reserves exactly these addresses. Throws out_of_memory where one of them is taken.
  address_range(void* where, std::size_t size) : size_(align_up(size, system_page)) {
    void* got = map(where, size_, MAP_FIXED_NOREPLACE);
    if (got == where) {
      base_ = static_cast<std::byte*>(got);
      return;
    }
    if (got != MAP_FAILED) ::munmap(got, size_);
    throw out_of_memory("the addresses from " +
                        std::to_string(reinterpret_cast<std::uintptr_t>(where)) + ", " +
                        to_text(bytes(size)) + ", are taken in this process");
  }

  address_range(address_range&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  address_range& operator=(address_range&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~address_range() {
    if (base_ != nullptr) ::munmap(base_, size_);
  }

  std::byte* base() const { return base_; }
  std::size_t size() const { return size_; }

  /// Requires whole pages of the operating system.
  void purge(std::size_t offset, std::size_t length) const {
    ::madvise(base_ + offset, length, MADV_DONTNEED);
  }

 private:
  static void* map(void* where, std::size_t size, int flags) {
    return ::mmap(where, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  }

  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace quarry

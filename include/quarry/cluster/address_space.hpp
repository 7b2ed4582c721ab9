// SPDX-License-Identifier: Apache-2.0
#pragma once
/// address_space: the same addresses in all processes, so that a pointer means the same everywhere.
///
///   0        16 TiB                         80 TiB   ~85 TiB        128 TiB
///   |          | reserved: 64 TiB              |    | program, heap ... libraries, stacks |
///
/// Addresses only: no memory, no access (PROT_NONE). Linux puts programs and libraries, at random
/// places, above 85 TiB, so the range is free in practice; where it is not, other places are tried,
/// then smaller ranges. A place counts when all processes have got it: agreement is a function from
/// outside (all of them call it with their own success, and learn whether all had it), so this
/// needs no MPI. Memory is laid over the addresses by shared_memory.hpp.
///
/// Not under ThreadSanitizer or AddressSanitizer, which have their shadow at these addresses.

#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace quarry::cluster {

class address_space {
 public:
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  static constexpr bool is_possible = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
  static constexpr bool is_possible = false;
#else
  static constexpr bool is_possible = true;
#endif
#else
  static constexpr bool is_possible = true;
#endif

  static constexpr std::uint64_t most = std::uint64_t{64} << 40;
  static constexpr std::uint64_t least = std::uint64_t{64} << 30;
  /// Multiples of the largest range of a scheduler, 8 TiB.
  static constexpr std::uintptr_t candidates[] = {0x1000'0000'0000, 0x0800'0000'0000,
                                                  0x2000'0000'0000, 0x4000'0000'0000,
                                                  0x3000'0000'0000, 0x6000'0000'0000};

  address_space() = default;

  /// Exactly this place; not is_reserved() where a part of it is taken.
  address_space(std::uintptr_t base, std::uint64_t size) {
    void* where = reinterpret_cast<void*>(base);  // NOLINT
    void* got = ::mmap(where, size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return;
    if (got != where) {  // kernels before 4.17 take the address for a hint
      ::munmap(got, size);
      return;
    }
    base_ = static_cast<std::byte*>(got);
    size_ = size;
  }
  address_space(address_space&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  address_space& operator=(address_space&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~address_space() {
    if (base_ != nullptr) ::munmap(base_, size_);
  }

  /// The first place that all processes can have, `wanted` bytes or less. All call it with the same
  /// size. everybody(bool) -> bool: collective, whether all said true. Throws out_of_memory, in
  /// all.
  template <class Everybody>
  static address_space agree(Everybody everybody, std::uint64_t wanted = most) {
    if (!is_possible)
      throw error(
          "a cluster needs the same addresses in all processes, and ThreadSanitizer and "
          "AddressSanitizer keep them for themselves: build without, or use the simulation");
    for (std::uint64_t size = wanted; size >= least || size == wanted; size /= 4)
      for (const std::uintptr_t base : candidates) {
        address_space mine(base, size);
        if (everybody(mine.is_reserved())) return mine;
      }
    throw out_of_memory("no " + to_text(bytes(std::min(wanted, least))) +
                        " of addresses are free at the same place in all processes; is the "
                        "address space limited (ulimit -v)?");
  }

  bool is_reserved() const { return base_ != nullptr; }
  std::byte* base() const { return base_; }
  std::uint64_t size() const { return size_; }
  bool contains(const void* p, std::size_t n = 1) const {
    const auto* at = static_cast<const std::byte*>(p);
    return at >= base_ && n <= size_ && static_cast<std::uint64_t>(at - base_) <= size_ - n;
  }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace quarry::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// address_space: a range of addresses that is reserved in all processes, so that a pointer has the
/// same meaning everywhere.
///
///   0        16 TiB                         80 TiB   ~85 TiB        128 TiB
///   |          | reserved: 64 TiB              |    | program, heap ... libraries, stacks |
///
/// The reservation has no memory and no access rights (PROT_NONE). Linux places programs and
/// libraries at random addresses above 85 TiB, so the range is free in practice. If it is not,
/// other base addresses are tried, then smaller sizes. A base is used if all processes could
/// reserve it. The processes agree through a collective function that the caller passes, so that
/// this file does not depend on MPI. worker_memory.hpp maps memory into the range.
///
/// ThreadSanitizer and AddressSanitizer place their shadow memory at these addresses: is_supported
/// is false under them.

#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace quarry::cluster::detail {

class address_space {
 public:
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  static constexpr bool is_supported = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
  static constexpr bool is_supported = false;
#else
  static constexpr bool is_supported = true;
#endif
#else
  static constexpr bool is_supported = true;
#endif

  static constexpr std::uint64_t min_size = std::uint64_t{64} << 30;
  /// Multiples of 8 TiB, the largest window of a scheduler.
  static constexpr std::uintptr_t candidates[] = {0x1000'0000'0000, 0x0800'0000'0000,
                                                  0x2000'0000'0000, 0x4000'0000'0000,
                                                  0x3000'0000'0000, 0x6000'0000'0000};

  address_space() = default;

  /// Reserves exactly this range; is_reserved() is false if a part of it is in use.
  address_space(std::uintptr_t base, std::uint64_t size) {
    void* wanted = reinterpret_cast<void*>(base);
    void* got = ::mmap(wanted, size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return;
    if (got != wanted) {  // Kernels before 4.17 treat the address as a hint.
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

  /// Collective: reserves the first candidate that all processes can reserve, of `wanted` bytes or
  /// fewer. all_true(bool) -> bool is collective and returns whether all processes passed true.
  /// Requires: all processes pass the same size. Throws out_of_memory in all processes.
  template <class AllTrue>
  static address_space agree(AllTrue all_true, std::uint64_t wanted) {
    if (!is_supported)
      throw error(
          "a cluster needs equal addresses in all processes, and ThreadSanitizer and "
          "AddressSanitizer occupy them: build without sanitizers, or use the simulation");
    for (std::uint64_t size = wanted; size >= min_size || size == wanted; size /= 4)
      for (const std::uintptr_t base : candidates) {
        address_space mine(base, size);
        if (all_true(mine.is_reserved())) return mine;
      }
    throw out_of_memory("no " + to_text(bytes(std::min(wanted, min_size))) +
                        " of addresses are free at the same base in all processes; is the address "
                        "space limited (ulimit -v)?");
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

}  // namespace quarry::cluster::detail

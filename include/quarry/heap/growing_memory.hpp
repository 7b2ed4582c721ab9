// SPDX-License-Identifier: Apache-2.0
#pragma once
/// growing_memory: a range of addresses of a machine, of which the front has memory.
///
///   | memory ……………………………… | addresses only ……………………………………………… |
///   data                     committed                                   reserved
///
/// grow and shrink move the border; what lies in front of it stays where it is. Memory comes in pages of the machine:
/// 4 KiB on most CPUs, 2 MiB on a GPU (growing_memory_cuda.hpp). An access behind the border faults.
/// If grow throws, everything is as before.

#include <quarry/core/bits.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>
#include <quarry/simt/backend.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace quarry {

/// One specialisation a machine.
template <class Backend>
class growing_memory;

template <>
class growing_memory<cpu> {
 public:
  growing_memory() = default;
  explicit growing_memory(std::uint64_t reserved) : reserved_(align_up(reserved, page())) {
    void* const p =
        ::mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      throw out_of_memory("the host can not reserve " + std::to_string(reserved_) +
                          " bytes of addresses");
    data_ = static_cast<std::byte*>(p);
  }
  growing_memory(growing_memory&& other) noexcept { swap(other); }
  growing_memory& operator=(growing_memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~growing_memory() {
    if (data_ != nullptr) ::munmap(data_, reserved_);
  }

  std::byte* data() const { return data_; }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t reserved() const { return reserved_; }

  /// At least n bytes have memory. Requires n <= reserved().
  void grow(std::uint64_t n) {
    const std::uint64_t to = align_up(n, page());
    if (to <= committed_) return;
    if (::mprotect(data_ + committed_, to - committed_, PROT_READ | PROT_WRITE) != 0)
      throw out_of_memory("the host has no memory to grow a heap from " + to_text(committed_) +
                          " to " + to_text(to));
    committed_ = to;
  }
  /// What lies behind the first n bytes may go; how much does is seen in committed().
  void shrink(std::uint64_t n) {
    const std::uint64_t to = align_up(n, page());
    if (to >= committed_) return;
    ::madvise(data_ + to, committed_ - to, MADV_DONTNEED);
    ::mprotect(data_ + to, committed_ - to, PROT_NONE);
    committed_ = to;
  }

 private:
  static std::uint64_t page() {
    static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return size;
  }
  void swap(growing_memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(committed_, other.committed_);
    std::swap(reserved_, other.reserved_);
  }

  std::byte* data_ = nullptr;
  std::uint64_t committed_ = 0;
  std::uint64_t reserved_ = 0;
};

}  // namespace quarry

#if QUARRY_CUDA
#include <quarry/heap/growing_memory_cuda.hpp>  // IWYU pragma: export
#endif

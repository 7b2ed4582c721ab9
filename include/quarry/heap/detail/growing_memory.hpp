// SPDX-License-Identifier: Apache-2.0
#pragma once
/// growing_memory: a reserved address range of a backend whose front is committed.
///
///   | committed: memory .......... | uncommitted: addresses only ....... |
///   data()                         data() + committed()                  data() + reserved()
///
/// grow() and shrink() move committed(); the bytes in front of it keep their addresses and
/// contents. The unit is a page of the backend: 4 KiB on most CPUs, 2 MiB on a GPU
/// (growing_memory_cuda.hpp). An access to uncommitted addresses faults. If grow() throws, nothing
/// has changed. Thread safety: none. Internal to heap.

#include <quarry/core/bits.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>
#include <quarry/simt/backend.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace quarry::detail {

/// One specialisation per backend.
template <class Backend>
class growing_memory;

template <>
class growing_memory<cpu> {
 public:
  growing_memory() = default;
  /// Reserves addresses; commits none.
  explicit growing_memory(std::uint64_t reserved) : reserved_(align_up(reserved, page())) {
    void* const p =
        ::mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      throw out_of_memory("reserving " + to_text(bytes(reserved_)) +
                          " of addresses for a heap failed: lower {.max = ...}");
    data_ = static_cast<std::byte*>(p);
  }
  growing_memory(growing_memory&& other) noexcept { swap(other); }
  growing_memory& operator=(growing_memory&& other) noexcept {
    growing_memory taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~growing_memory() {
    if (data_ != nullptr) ::munmap(data_, reserved_);
  }

  std::byte* data() const { return data_; }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t reserved() const { return reserved_; }

  /// Commits at least the first n bytes. Requires n <= reserved(). Throws out_of_memory.
  void grow(std::uint64_t n) {
    const std::uint64_t to = align_up(n, page());
    if (to <= committed_) return;
    if (::mprotect(data_ + committed_, to - committed_, PROT_READ | PROT_WRITE) != 0)
      throw out_of_memory("growing a heap from " + to_text(committed_) + " to " + to_text(to) +
                          " failed: the host has no more memory");
    committed_ = to;
  }
  /// Releases whole pages behind the first n bytes. committed() returns the new size.
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

}  // namespace quarry::detail

#if QUARRY_CUDA
#include <quarry/heap/detail/growing_memory_cuda.hpp>  // IWYU pragma: export
#endif

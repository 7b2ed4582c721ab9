// SPDX-License-Identifier: Apache-2.0
#include <quarry/core/error.hpp>
#include <quarry/region/detail/address_range.hpp>

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace quarry {
namespace {

void* map(void* where, std::size_t size, int flags) {
  return ::mmap(where, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

}  // namespace

/// Reserves `alignment` bytes more than needed, then unmaps what lies before and behind the range.
address_range::address_range(std::size_t size, std::size_t alignment)
    : size_(align_up(size, system_page)) {
  void* got = map(nullptr, size_ + alignment, 0);
  if (got == MAP_FAILED)
    throw out_of_memory("cannot reserve " + to_text(bytes(size_)) +
                        " of addresses; create the tree with a smaller range");
  const auto first = reinterpret_cast<std::uintptr_t>(got);
  const std::uintptr_t start = (first + alignment - 1) & ~(std::uintptr_t{alignment} - 1);
  base_ = reinterpret_cast<std::byte*>(start);
  if (start != first) ::munmap(got, start - first);
  const std::size_t tail = first + alignment - start;
  if (tail != 0) ::munmap(base_ + size_, tail);
}

address_range::address_range(void* where, std::size_t size) : size_(align_up(size, system_page)) {
  void* got = map(where, size_, MAP_FIXED_NOREPLACE);
  if (got == where) {
    base_ = static_cast<std::byte*>(got);
    return;
  }
  // Kernels before 4.17 take the address as a hint.
  const bool in_use = got != MAP_FAILED || errno == EEXIST;
  const std::string reason =
      in_use ? "this process uses some of these addresses" : std::strerror(errno);
  if (got != MAP_FAILED) ::munmap(got, size_);
  throw out_of_memory("cannot reserve " + to_text(bytes(size)) + " at address " +
                      std::to_string(reinterpret_cast<std::uintptr_t>(where)) + ": " + reason);
}

address_range::~address_range() {
  if (base_ != nullptr) ::munmap(base_, size_);
}

void address_range::purge(std::size_t offset, std::size_t length) const {
  ::madvise(base_ + offset, length, MADV_DONTNEED);
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// carve: the layout of an allocator's metadata, which lies outside the pool.
///
///   metadata   | next | padding | words[0] ... words[n-1] | padding | ... |
///
/// The constructor of an allocator takes its arrays from a carve, one after the other. The same
/// constructor serves three purposes, which differ in the base address of the carve:
///   null                        computes the size of the metadata (metadata_bytes)
///   memory of the backend       makes the handle that kernels use
///   a copy in host memory       makes a handle that inspects the metadata on the host
/// Metadata is zero before its first use.

#include <quarry/core/bits.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry {

/// The pool of an allocator. It contains blocks and nothing else.
struct memory_range {
  std::byte* begin = nullptr;
  std::uint64_t size = 0;

  bool contains(const void* p) const {
    const auto* q = static_cast<const std::byte*>(p);
    return q >= begin && q < begin + size;
  }
};

class carve {
 public:
  /// The alignment of arrays. It avoids false sharing between two arrays.
  static constexpr std::uint64_t alignment = 128;

  struct part {
    const char* name;
    std::uint64_t offset;
    std::uint64_t element_size;
    std::uint64_t count;
  };

  carve() = default;  // computes sizes only
  explicit carve(std::byte* base) : base_(base) {}

  template <class T>
  T* take(const char* name, std::uint64_t count) {
    const std::uint64_t offset = align_up(used_, alignment);
    used_ = offset + count * sizeof(T);
    parts_.push_back({name, offset, sizeof(T), count});
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + offset);
  }

  std::uint64_t used() const { return used_; }
  const std::vector<part>& parts() const { return parts_; }

  /// Returns: the element at an address inside the metadata, such as "words[17]"; empty for any
  /// other address.
  std::string name_of(const void* address) const {
    if (base_ == nullptr) return {};
    const auto distance = static_cast<const std::byte*>(address) - base_;
    if (distance < 0) return {};
    const auto offset = static_cast<std::uint64_t>(distance);
    for (const part& p : parts_) {
      if (offset < p.offset || offset >= p.offset + p.count * p.element_size) continue;
      const std::uint64_t index = (offset - p.offset) / p.element_size;
      return p.count == 1 ? std::string(p.name) : p.name + ("[" + std::to_string(index) + "]");
    }
    return {};
  }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t used_ = 0;
  std::vector<part> parts_;
};

/// Returns: the size of the metadata of allocator A for a pool of `pool_bytes`.
template <class A>
std::uint64_t metadata_bytes(std::uint64_t pool_bytes) {
  carve measure;
  (void)A(memory_range{nullptr, pool_bytes}, measure);
  return measure.used();
}

}  // namespace quarry

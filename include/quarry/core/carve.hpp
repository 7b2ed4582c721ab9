// SPDX-License-Identifier: Apache-2.0
#pragma once
/// carve: the layout of an allocator's metadata, written once and used three times.
///
///   metadata   | next | pad | words[0] … words[n-1] | pad | … |        outside the pool of user memory
///
/// An allocator takes its arrays one after the other in its constructor. With a null base that measures
/// (`footprint`), with the machine's memory it makes the handle for kernels, with a copy on the host it
/// makes a handle that can walk the same structures there. Metadata is zero before the first use.

#include <quarry/core/bits.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry {

/// Memory given to an allocator: user blocks lie inside, and nothing else does.
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
  /// Arrays start here, so that what is contended for does not share a line by accident.
  static constexpr std::uint64_t alignment = 128;

  struct part {
    const char* name;
    std::uint64_t offset;
    std::uint64_t element_size;
    std::uint64_t count;
  };

  carve() = default;  // measures only
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

  /// "words[17]" for an address inside the metadata; empty for any other.
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

/// Bytes of metadata that allocator A keeps beside a pool of this size.
template <class A>
std::uint64_t metadata_bytes(std::uint64_t pool_bytes) {
  carve measure;
  (void)A(memory_range{nullptr, pool_bytes}, measure);
  return measure.used();
}

}  // namespace quarry

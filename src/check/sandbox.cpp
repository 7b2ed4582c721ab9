// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/sandbox.hpp>
#include <quarry/core/bits.hpp>

#include <algorithm>
#include <cstring>
#include <new>

namespace quarry {
namespace {

constexpr unsigned char guard_value = 0xb7;
constexpr unsigned char pool_value = 0xcd;

}  // namespace

void sandbox::release::operator()(std::byte* p) const {
  ::operator delete[](p, std::align_val_t{guard});
}

sandbox::sandbox(const abilities& can, std::uint64_t pool_bytes, std::uint64_t metadata_bytes)
    : can_(can),
      pool_bytes_(pool_bytes),
      metadata_bytes_(metadata_bytes),
      metadata_offset_(align_up(2 * guard + pool_bytes_, guard)),
      bytes_(align_up(metadata_offset_ + metadata_bytes_ + guard, guard)),
      memory_(new (std::align_val_t{guard}) std::byte[bytes_]),
      metadata_(memory_.get() + metadata_offset_) {
  std::memset(memory_.get(), guard_value, bytes_);
}

void sandbox::reset(std::uint64_t lanes) const {
  std::memset(pool().begin, pool_value, pool_bytes_);
  std::memset(memory_.get() + metadata_offset_, 0, metadata_bytes_);
  for (std::uint64_t lane = lanes; lane-- > 0;) initialise(lane, lanes);
}

std::string sandbox::check_guards() const {
  const std::uint64_t pool_end = guard + pool_bytes_;
  if (!intact(0, guard)) return "the bytes before the pool were overwritten";
  if (!intact(pool_end, metadata_offset_)) return "the bytes after the pool were overwritten";
  if (!intact(metadata_offset_ + metadata_bytes_, bytes_))
    return "the bytes after the metadata were overwritten";
  return {};
}

bool sandbox::intact(std::uint64_t first, std::uint64_t last) const {
  return std::all_of(memory_.get() + first, memory_.get() + last,
                     [](std::byte b) { return b == std::byte{guard_value}; });
}

}  // namespace quarry

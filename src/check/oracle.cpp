// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/oracle.hpp>
#include <quarry/check/text.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/core/random.hpp>
#include <quarry/simt/explore.hpp>

#include <algorithm>
#include <cstring>

namespace quarry {

void shadow_heap::begin(memory_range pool, const abilities& can, std::uint64_t seed,
                        std::uint32_t blocks, std::uint64_t lanes, bool paint_hidden) {
  pool_ = pool;
  can_ = can;
  seed_ = seed;
  hidden_ = paint_hidden;
  live_.clear();
  blocks_.assign(blocks, {});
  calls_.assign(lanes, {});
  begun_ = ended_ = 0;
  served = failed = freed = 0;
}

void shadow_heap::malloc_called(std::uint32_t lane, std::uint64_t n) {
  simt::host_section bookkeeping;
  calls_[lane] = {ended_, nullptr};
  begun_ += reserved_for(n);
}

bool shadow_heap::malloc_returned(std::uint32_t number, std::uint32_t lane, void* p,
                                  std::uint64_t n) {
  block b;
  {
    simt::host_section bookkeeping;
    if (!admit(number, lane, p, n)) return false;
    if (p == nullptr) return true;
    b = blocks_[number];
    if (hidden_) paint(b);
  }
  if (!hidden_) paint(b);
  simt::detail::tsan_release(&blocks_[number]);
  return true;
}

bool shadow_heap::admit(std::uint32_t number, std::uint32_t lane, void* p, std::uint64_t n) {
  const auto result = [&] {
    return "malloc(" + std::to_string(n) + ") returned " + address_text(pool_, p);
  };
  ended_ += reserved_for(n);
  if (p == nullptr) return ++failed, true;
  ++served;
  if (must_fail(n))
    return report(lane,
                  result() + (n == 0 ? ", but the size is 0: nullptr is required"
                                     : ", but the size can not be served: nullptr is required"));
  if (reinterpret_cast<std::uintptr_t>(p) % block_alignment != 0)
    return report(lane,
                  result() + ", which is not a multiple of " + std::to_string(block_alignment));
  auto* const first = static_cast<std::byte*>(p);
  if (can_.owns_pool &&
      (!pool_.contains(p) || n > pool_.size - static_cast<std::uint64_t>(first - pool_.begin)))
    return report(lane, result() + ", which is not inside the pool of " +
                            std::to_string(pool_.size) + " bytes");
  for (const std::uint32_t other : live_) {
    const block& b = blocks_[other];
    if (first < b.begin + b.size && b.begin < first + n &&
        !may_overlap(b, calls_[lane].ended_before))
      return report(lane, result() + " for block #" + std::to_string(number) + ", which overlaps " +
                              name_of(other));
  }
  blocks_[number] = {first, n, pattern_of(number), lane, live_count(), calls_[lane].ended_before};
  live_.push_back(number);
  return true;
}

shadow_heap::block shadow_heap::remove(std::uint32_t number) {
  simt::detail::tsan_acquire(&blocks_[number]);
  simt::host_section bookkeeping;
  const block b = blocks_[number];
  if (b.live_index == not_live) return {};
  live_[b.live_index] = live_.back();
  blocks_[live_[b.live_index]].live_index = b.live_index;
  live_.pop_back();
  blocks_[number].live_index = not_live;
  ++freed;
  return b;
}

bool shadow_heap::still_painted(const block& b, std::uint32_t number, std::uint32_t lane) {
  std::uint64_t intact = 0;
  if (!hidden_) intact = intact_bytes(b);
  simt::host_section bookkeeping;
  if (hidden_) intact = intact_bytes(b);
  if (intact == b.size) return true;
  return report(lane, "byte " + std::to_string(intact) + " of " + name_of(number) +
                          " was overwritten while the block was live");
}

void shadow_heap::paint(const block& b) {
  std::uint64_t i = 0;
  for (; i + 8 <= b.size; i += 8) std::memcpy(b.begin + i, &b.pattern, 8);
  if (i < b.size) std::memcpy(b.begin + i, &b.pattern, b.size - i);
}

std::uint64_t shadow_heap::intact_bytes(const block& b) {
  const auto byte_of = [&](std::uint64_t i) {
    return static_cast<std::byte>(b.pattern >> (i % 8 * 8));
  };
  std::uint64_t i = 0;
  for (std::uint64_t word; i + 8 <= b.size; i += 8) {
    std::memcpy(&word, b.begin + i, 8);
    if (word != b.pattern) break;
  }
  while (i < b.size && b.begin[i] == byte_of(i)) ++i;
  return i;
}

std::uint64_t shadow_heap::reserved_for(std::uint64_t n) const {
  return n > pool_.size ? 0 : align_up(n, block_alignment);
}

bool shadow_heap::may_overlap(const block& a, std::uint64_t ended_before) const {
  return can_.overwrites && 2 * (begun_ - std::min(a.ended_before, ended_before)) > pool_.size;
}

bool shadow_heap::must_fail(std::uint64_t n) const {
  if (n == 0 || n > can_.max_size || n > ~std::uint64_t{0} / 2) return true;
  return can_.owns_pool && n > pool_.size;
}

bool shadow_heap::report(std::uint32_t lane, const std::string& what) {
  violation_ = "lane " + std::to_string(lane) + ": " + what;
  return false;
}

std::string shadow_heap::name_of(std::uint32_t number) const {
  const block& b = blocks_[number];
  return "block #" + std::to_string(number) + " of lane " + std::to_string(b.lane) + " (" +
         std::to_string(b.size) + " bytes at " + address_text(pool_, b.begin) + ")";
}

std::uint64_t shadow_heap::pattern_of(std::uint32_t number) const {
  const std::uint64_t word = splitmix64(seed_ + number).next();
  if ((word & 3) == 0) return 0;
  return (word & 3) == 1 ? (number + 1) * 0x0000'0001'0000'0001u : word;
}

}  // namespace quarry

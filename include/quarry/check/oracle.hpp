// SPDX-License-Identifier: Apache-2.0
#pragma once
/// shadow_heap: knows which blocks are live, and judges what an allocator hands out.
///
/// Kept beside the allocator under test, by block number. On malloc a block must be aligned, inside the
/// pool, and disjoint from every live block; then all of it is painted with a pattern of its own. On
/// free the pattern must be intact; the block leaves the shadow before the allocator hears of it, so
/// that whoever receives the memory next is not accused.
///
/// A quarter of the patterns are zeros and a quarter are small numbers, since algorithms that keep
/// headers between blocks take zero for "free" and a small number for a plausible offset.
///
/// Allocators that overwrite by design go round their pool and hand out everything again. Two of their
/// blocks must be disjoint while less than a round lies between the two reservations: what was
/// reserved in between, and as much again for what is left unused at the end of the pool, fits into it.
/// A call counts as reserving at its last access to the word it accesses first (its own lane's accesses; a
/// call that makes none may have reserved at any time since it began).
///
/// Lanes of the explorer share one OS thread and nothing here is a yield point, so that an entry is
/// read and changed at once. The tables are hidden from race detectors (host_section), the paint is
/// not: a block's next owner must come after its last, which is the allocator's business. That whoever
/// frees a block comes after whoever asked for it is the users', and announced here.

#include <quarry/check/text.hpp>
#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/core/random.hpp>
#include <quarry/simt/explore.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace quarry {

class shadow_heap {
 public:
  struct block {
    std::byte* begin = nullptr;
    std::uint64_t size = 0;
    std::uint64_t pattern = 0;
    std::uint32_t lane = 0;
    std::uint32_t place = not_live;  // in live_
    std::uint64_t ended_before = 0;  // bytes of calls that had ended when this block was reserved
  };
  static constexpr std::uint32_t not_live = ~std::uint32_t{0};

  /// Forgets everything. `paint_hidden`: race detectors do not see the paint either (allocators known
  /// to touch user memory).
  void begin(memory_range pool, const abilities& can, std::uint64_t seed, std::uint32_t blocks,
             std::uint64_t lanes, bool paint_hidden) {
    pool_ = pool;
    can_ = can;
    seed_ = seed;
    hidden_ = paint_hidden;
    live_.clear();
    blocks_.assign(blocks, {});
    calls_.assign(lanes, {});
    begun_ = ended_ = 0;
    served = refused = freed = 0;
  }

  // From a lane: malloc(n) begins, accesses shared memory, has ended. false: the allocator is wrong, and
  // complaint() says why.
  void asked(std::uint32_t lane, std::uint64_t n) {
    simt::host_section bookkeeping;
    calls_[lane] = {ended_, nullptr};
    begun_ += reserved_for(n);
  }
  void accessed(std::uint64_t lane,
                const void* where) {  // only needed for allocators that overwrite
    call& c = calls_[lane];
    if (c.word == nullptr) c.word = where;
    if (c.word == where) c.ended_before = ended_;
  }
  bool received(std::uint32_t number, std::uint32_t lane, void* p, std::uint64_t n);
  /// The block if it is live, which it then no longer is; begin == nullptr otherwise.
  block take(std::uint32_t number);
  bool still_painted(const block& b, std::uint32_t number, std::uint32_t lane);

  const std::string& complaint() const { return complaint_; }
  std::uint32_t live_count() const { return static_cast<std::uint32_t>(live_.size()); }
  std::uint32_t any_live() const { return live_.back(); }

  std::uint64_t served = 0, refused = 0, freed = 0;  // since begin

 private:
  struct call {
    std::uint64_t ended_before = 0;
    const void* word = nullptr;
  };

  std::uint64_t reserved_for(std::uint64_t n) const {
    return n > pool_.size ? 0 : align_up(n, block_alignment);
  }
  bool may_overlap(const block& a, std::uint64_t ended_before) const {
    return can_.overwrites && 2 * (begun_ - std::min(a.ended_before, ended_before)) > pool_.size;
  }
  bool admit(std::uint32_t number, std::uint32_t lane, void* p, std::uint64_t n);
  bool complain(std::uint32_t lane, const std::string& what) {
    complaint_ = "lane " + std::to_string(lane) + ": " + what;
    return false;
  }
  bool refusal_is_due(std::uint64_t n) const {
    if (n == 0 || n > can_.max_size || n > ~std::uint64_t{0} / 2) return true;
    return can_.owns_pool && n > pool_.size;
  }
  std::string name_of(std::uint32_t number) const {
    const block& b = blocks_[number];
    return "block #" + std::to_string(number) + " of lane " + std::to_string(b.lane) + " (" +
           std::to_string(b.size) + " bytes at " + place_in(pool_, b.begin) + ")";
  }
  std::uint64_t pattern_of(std::uint32_t number) const {
    const std::uint64_t word = splitmix64(seed_ + number).next();
    if ((word & 3) == 0) return 0;
    return (word & 3) == 1 ? (number + 1) * 0x0000'0001'0000'0001u : word;
  }
  static void paint(const block& b);
  static std::uint64_t intact_bytes(const block& b);

  memory_range pool_;
  abilities can_;
  std::uint64_t seed_ = 0;
  bool hidden_ = false;
  std::vector<block> blocks_;
  std::vector<std::uint32_t> live_;
  std::vector<call> calls_;              // the last one of each lane
  std::uint64_t begun_ = 0, ended_ = 0;  // bytes of all calls
  std::string complaint_;
};

inline bool shadow_heap::received(std::uint32_t number, std::uint32_t lane, void* p,
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

inline bool shadow_heap::admit(std::uint32_t number, std::uint32_t lane, void* p, std::uint64_t n) {
  const auto answer = [&] {
    return "malloc(" + std::to_string(n) + ") gave " + place_in(pool_, p);
  };
  ended_ += reserved_for(n);
  if (p == nullptr) return ++refused, true;
  ++served;
  if (refusal_is_due(n))
    return complain(lane, answer() + (n == 0 ? ", but nothing was asked for: nullptr was due"
                                             : ", but so much can not be served: nullptr was due"));
  if (reinterpret_cast<std::uintptr_t>(p) % block_alignment != 0)
    return complain(lane,
                    answer() + ", which is not a multiple of " + std::to_string(block_alignment));
  auto* const first = static_cast<std::byte*>(p);
  if (can_.owns_pool &&
      (!pool_.contains(p) || n > pool_.size - static_cast<std::uint64_t>(first - pool_.begin)))
    return complain(lane, answer() + ", which is not inside the pool of " +
                              std::to_string(pool_.size) + " bytes");
  for (const std::uint32_t other : live_) {
    const block& b = blocks_[other];
    if (first < b.begin + b.size && b.begin < first + n &&
        !may_overlap(b, calls_[lane].ended_before))
      return complain(lane, answer() + " for block #" + std::to_string(number) +
                                ", which overlaps " + name_of(other));
  }
  blocks_[number] = {first, n, pattern_of(number), lane, live_count(), calls_[lane].ended_before};
  live_.push_back(number);
  return true;
}

inline shadow_heap::block shadow_heap::take(std::uint32_t number) {
  simt::detail::tsan_acquire(&blocks_[number]);
  simt::host_section bookkeeping;
  const block b = blocks_[number];
  if (b.place == not_live) return {};
  live_[b.place] = live_.back();
  blocks_[live_[b.place]].place = b.place;
  live_.pop_back();
  blocks_[number].place = not_live;
  ++freed;
  return b;
}

inline bool shadow_heap::still_painted(const block& b, std::uint32_t number, std::uint32_t lane) {
  std::uint64_t intact = 0;
  if (!hidden_) intact = intact_bytes(b);
  simt::host_section bookkeeping;
  if (hidden_) intact = intact_bytes(b);
  if (intact == b.size) return true;
  return complain(lane, "byte " + std::to_string(intact) + " of " + name_of(number) +
                            " was overwritten while the block was live");
}

inline void shadow_heap::paint(const block& b) {
  std::uint64_t i = 0;
  for (; i + 8 <= b.size; i += 8) std::memcpy(b.begin + i, &b.pattern, 8);
  if (i < b.size) std::memcpy(b.begin + i, &b.pattern, b.size - i);
}

inline std::uint64_t shadow_heap::intact_bytes(const block& b) {
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

}  // namespace quarry

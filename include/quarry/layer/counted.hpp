// SPDX-License-Identifier: Apache-2.0
#pragma once
/// counted: how much memory a program uses, at most and now, and in which sizes; over any allocator.
///
///   quarry::heap<quarry::counted<quarry::cfmalloc>> heap(1_GiB);
///   kernel<<<…>>>(heap.ref());
///   print(counts(heap));
///
///   block of the upstream   | size | - | user bytes …… |     a header of 16 bytes; none where there is no free
///   metadata                live, peak, freed, refused, and a count for each power of two
///
/// Lanes that ask together count together: the sum of their bytes is added to `live` by one of them,
/// which raises `peak` to what it then was; each size class is counted once for all its lanes.
///
/// Bytes are those asked for, without headers and rounding. `peak` is exact: `live` is one word, only
/// adding makes it grow, and every sum is held against `peak`. In it a block counts from some moment
/// inside its malloc to some moment inside its free, so two blocks of which one was freed before the
/// other was asked for never count together, and two that are used at the same time always do.
///
/// Cost: 16 bytes a block. For lanes that call together, malloc: one atomic that is waited for, one on
/// `peak`, one for each size class among them, and a store each; free: two atomics, and a load each.
/// All warps share these words.
///
/// Ordering: relaxed. A warp's lanes leave malloc after a sync_warp, so the add comes before anything that
/// could lead to a free of these blocks; and free gives the blocks back after a sync_warp, so the
/// subtraction comes before their memory is anybody else's. Hence live never wraps and peak never
/// counts memory twice.
/// Bound: that of the upstream.

#include <quarry/core/allocator.hpp>
#include <quarry/core/bits.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/reduce.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace quarry {

/// What a counted heap has done since it was made or reset.
struct allocation_counts {
  std::uint64_t served = 0;               // calls of malloc that got memory
  std::uint64_t refused = 0;              // that got nullptr, malloc(0) among them
  std::uint64_t freed = 0;                // calls of free, nullptr apart
  std::uint64_t live_blocks = 0;          // served - freed
  std::uint64_t live_bytes = 0;           // as asked for
  std::uint64_t peak_bytes = 0;           // the most that were live at a time
  std::array<std::uint64_t, 65> sizes{};  // served, for 2^(i-1) < n <= 2^i bytes
};

template <allocator Upstream>
class counted {
  static constexpr std::uint32_t header = Upstream::can.frees_one ? 16 : 0;

 public:
  static constexpr abilities can = [] {
    abilities c = Upstream::can;
    if (c.max_size != ~std::uint64_t{0}) c.max_size -= header;
    c.max_alignment = block_alignment;
    return c;
  }();

  counted() = default;
  counted(memory_range pool, carve& metadata)
      : upstream_(pool, metadata), book_(metadata.take<book>("counts", 1)) {}

  template <class Backend>
  static void reserve(std::uint64_t size) requires requires {
    Upstream::template reserve<Backend>(size);
  }
  { Upstream::template reserve<Backend>(size); }

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    upstream_.initialise(lane, lanes);
  }

  QUARRY_DEVICE void* malloc(std::size_t n) const {
    void* block = n == 0 ? nullptr : upstream_.malloc(saturating_add(std::uint64_t{n}, header));
    if (header != 0 && block != nullptr) {
      size_of(block).store(n, simt::relaxed);
      block = static_cast<std::byte*>(block) + header;
    }
    count(n, block != nullptr);
    return block;
  }

  QUARRY_DEVICE void free(void* p) const requires(can.frees_one) {
    if (p == nullptr) return;
    std::byte* const block = static_cast<std::byte*>(p) - header;
    const simt::lane_mask group = simt::active_mask();
    const std::uint64_t sum = simt::reduce_add(group, size_of(block).load(simt::relaxed));
    if (simt::lane_id() == simt::lowest_bit(group)) {
      word(book_->live).sub(sum, simt::relaxed);
      word(book_->freed).add(simt::popc(group), simt::relaxed);
    }
    simt::sync_warp(group);
    upstream_.free(block);
  }

  /// What was asked for; what the upstream rounds it up to stays its secret, so that bytes are counted right.
  QUARRY_DEVICE std::uint64_t usable_size(void* p) const requires(header != 0) {
    return size_of(static_cast<std::byte*>(p) - header).load(simt::relaxed);
  }
  QUARRY_DEVICE std::uint64_t resize(std::uint64_t from, std::uint64_t to) const requires
      resizable_allocator<Upstream> {
    return upstream_.resize(from, to);
  }
  QUARRY_DEVICE void drain() const requires requires(const Upstream u) { u.drain(); }
  { upstream_.drain(); }
  QUARRY_DEVICE void inspect(std::uint64_t lane, std::uint64_t lanes) const requires
      requires(const Upstream u) {
    u.inspect(lane, lanes);
  }
  { upstream_.inspect(lane, lanes); }

  // On the host, between kernels.
  allocation_counts counts() const {
    allocation_counts c;
    c.refused = book_->refused;
    c.freed = book_->freed;
    c.live_bytes = book_->live;
    c.peak_bytes = book_->peak;
    for (std::size_t i = 0; i < c.sizes.size(); ++i) c.served += c.sizes[i] = book_->sizes[i];
    c.live_blocks = c.served - c.freed;
    return c;
  }
  std::string check_invariants() const {
    const allocation_counts c = counts();
    if (c.freed > c.served)
      return std::to_string(c.freed) + " blocks were freed, but " + std::to_string(c.served) +
             " served";
    if (c.live_bytes > c.peak_bytes) return "more bytes are live than at the peak";
    if (c.live_blocks == 0 && c.live_bytes != 0)
      return "no block is live, but " + std::to_string(c.live_bytes) + " bytes are";
    return upstream_.check_invariants();
  }
  heap_statistics statistics() const {
    heap_statistics s = upstream_.statistics();
    if (can.frees_one) s.live_blocks = counts().live_blocks;
    s.peak_bytes = counts().peak_bytes;
    if (s.largest_free) *s.largest_free -= std::min<std::uint64_t>(*s.largest_free, header);
    return s;
  }
  const Upstream& upstream() const { return upstream_; }

 private:
  struct book {
    alignas(128) std::uint64_t live;
    std::uint64_t peak;  // written with live
    alignas(128) std::uint64_t refused;
    std::uint64_t freed;
    alignas(128) std::uint64_t sizes[65];
  };

  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> size_of(void* block) {
    return word(*static_cast<std::uint64_t*>(block));
  }

  /// A call of malloc.
  QUARRY_DEVICE void count(std::uint64_t n, bool served) const {
    const simt::lane_mask all = simt::active_mask();
    const simt::lane_mask group = simt::ballot(all, served);
    if (!served) {
      if (simt::lane_id() == simt::lowest_bit(all & ~group))
        word(book_->refused).add(simt::popc(all & ~group), simt::relaxed);
      return;
    }
    const std::uint64_t sum = simt::reduce_add(group, n);
    const std::uint32_t size = log2_ceil(n);
    const simt::lane_mask equal = simt::match_any(group, size);
    if (simt::lane_id() == simt::lowest_bit(equal))
      word(book_->sizes[size]).add(simt::popc(equal), simt::relaxed);
    if (simt::lane_id() == simt::lowest_bit(group)) {
      const std::uint64_t before = word(book_->live).fetch_add(sum, simt::relaxed);
      word(book_->peak).fetch_max(before + sum, simt::relaxed);
    }
    simt::sync_warp(group);
  }

  Upstream upstream_;
  book* book_;
};

/// Of a heap whose allocator is counted.
template <class Heap>
  requires requires(const typename Heap::allocator_type a) { a.counts(); }
allocation_counts counts(const Heap& heap) {
  return heap.on_host([](const auto& a) { return a.counts(); });
}

/// A few lines: calls, bytes, and a line for each size that came.
inline std::string to_text(const allocation_counts& c) {
  std::string text = "malloc: " + std::to_string(c.served) + " served, " +
                     std::to_string(c.refused) + " refused; free: " + std::to_string(c.freed) +
                     "\n";
  text += "live: " + std::to_string(c.live_blocks) + " blocks, " + to_text(bytes(c.live_bytes)) +
          "; peak: " + to_text(bytes(c.peak_bytes)) + "\n";
  for (std::size_t i = 0; i < c.sizes.size(); ++i)
    if (c.sizes[i] != 0)
      text += (i < 64 ? "up to " + to_text(bytes(std::uint64_t{1} << i)) : std::string("more")) +
              ": " + std::to_string(c.sizes[i]) + "\n";
  return text;
}
inline void print(const allocation_counts& c, std::FILE* to = stdout) {
  std::fputs(to_text(c).c_str(), to);
}

}  // namespace quarry

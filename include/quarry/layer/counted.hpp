// SPDX-License-Identifier: Apache-2.0
#pragma once
/// counted: counts calls, live bytes, peak bytes and request sizes, over any allocator.
///
///   quarry::heap<quarry::counted<quarry::cfmalloc>> heap(1_GiB);
///   kernel<<<…>>>(heap.ref());
///   print(counts(heap));
///
///   block of the upstream   | size | - | user bytes …… |     a header of 16 bytes, if it can free
///   metadata                live, peak, freed, failed, and a count for each power of two
///
/// Counting is warp-aggregated: one lane adds the bytes of all active lanes to `live` and raises
/// `peak` to the result; each size class is counted once for all its lanes.
///
/// Bytes are requested bytes, without headers and rounding. `peak` is exact: `live` is one word,
/// only additions raise it, and every sum is compared with `peak`. A block counts from some time
/// inside its malloc to some time inside its free. Two blocks never count together if one was freed
/// before the other was requested, and they always count together if their lifetimes overlap.
///
/// Cost: 16 bytes per block. Per warp, malloc adds one dependent atomic, one atomic on `peak`, one
/// atomic per size class among the lanes, and one store per lane; free adds two atomics, and one
/// load per lane. All warps share these words.
///
/// Ordering: relaxed. The active lanes leave malloc after a sync_warp, so the addition precedes
/// every event that can lead to a free of these blocks. free calls the upstream after a sync_warp,
/// so the subtraction precedes the next use of the memory. Therefore `live` never becomes negative,
/// and `peak` never counts memory twice.
/// Progress: that of the upstream.

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

/// The counts of a heap since its construction or its last reset.
struct allocation_counts {
  std::uint64_t served = 0;       // successful calls of malloc
  std::uint64_t failed = 0;       // calls of malloc that returned nullptr, including malloc(0)
  std::uint64_t freed = 0;        // calls of free, except for nullptr
  std::uint64_t live_blocks = 0;  // served - freed
  std::uint64_t live_bytes = 0;   // as requested
  std::uint64_t peak_bytes = 0;   // the maximum of live_bytes
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
      : upstream_(pool, metadata), counters_(metadata.take<counters>("counts", 1)) {}

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
      word(counters_->live).sub(sum, simt::relaxed);
      word(counters_->freed).add(simt::popc(group), simt::relaxed);
    }
    simt::sync_warp(group);
    upstream_.free(block);
  }

  /// Returns the requested size. The upstream may have rounded it up; the excess is not usable, so
  /// that the counts stay exact.
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

  // On the host. Requires quiescence.
  allocation_counts counts() const {
    allocation_counts c;
    c.failed = counters_->failed;
    c.freed = counters_->freed;
    c.live_bytes = counters_->live;
    c.peak_bytes = counters_->peak;
    for (std::size_t i = 0; i < c.sizes.size(); ++i) c.served += c.sizes[i] = counters_->sizes[i];
    c.live_blocks = c.served - c.freed;
    return c;
  }
  std::string check_invariants() const {
    const allocation_counts c = counts();
    if (c.freed > c.served)
      return std::to_string(c.freed) + " blocks were freed, but only " + std::to_string(c.served) +
             " were allocated";
    if (c.live_bytes > c.peak_bytes) return "the live bytes exceed the peak";
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
  struct counters {
    alignas(128) std::uint64_t live;
    std::uint64_t peak;  // in the cache line of live, since malloc updates both
    alignas(128) std::uint64_t failed;
    std::uint64_t freed;
    alignas(128) std::uint64_t sizes[65];
  };

  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> size_of(void* block) {
    return word(*static_cast<std::uint64_t*>(block));
  }

  /// Counts a call of malloc.
  QUARRY_DEVICE void count(std::uint64_t n, bool served) const {
    const simt::lane_mask active = simt::active_mask();
    const simt::lane_mask group = simt::ballot(active, served);
    if (!served) {
      if (simt::lane_id() == simt::lowest_bit(active & ~group))
        word(counters_->failed).add(simt::popc(active & ~group), simt::relaxed);
      return;
    }
    const std::uint64_t sum = simt::reduce_add(group, n);
    const std::uint32_t size = log2_ceil(n);
    const simt::lane_mask equal = simt::match_any(group, size);
    if (simt::lane_id() == simt::lowest_bit(equal))
      word(counters_->sizes[size]).add(simt::popc(equal), simt::relaxed);
    if (simt::lane_id() == simt::lowest_bit(group)) {
      const std::uint64_t before = word(counters_->live).fetch_add(sum, simt::relaxed);
      word(counters_->peak).fetch_max(before + sum, simt::relaxed);
    }
    simt::sync_warp(group);
  }

  Upstream upstream_;
  counters* counters_;
};

/// Returns the counts of a heap whose allocator is counted.
template <class Heap>
  requires requires(const typename Heap::allocator_type a) { a.counts(); }
allocation_counts counts(const Heap& heap) {
  return heap.on_host([](const auto& a) { return a.counts(); });
}

/// Returns calls and bytes as text, with one line per size class.
inline std::string to_text(const allocation_counts& c) {
  std::string text = "malloc: " + std::to_string(c.served) + " served, " +
                     std::to_string(c.failed) + " failed; free: " + std::to_string(c.freed) + "\n";
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

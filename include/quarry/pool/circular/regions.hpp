// SPDX-License-Identifier: Apache-2.0
#pragma once
/// circular_regions: an exhaustive search that skips regions in which an earlier search failed.
///
///   pool      | region 0 | region 1 | … |             2^k granules each, at most 1024 regions
///   regions   | failure, freed | failure, freed | … |
///
///   freed     The number of chunks that became free and start in the region, including the initial
///             chunks. A chunk is counted after it was published. 0: no chunk ever started in the
///             region, which is the interior of a large chunk.
///   failure   {freed, size}: a scan of the region found no run of free chunks that starts there
///             and has `size` granules. The record is valid while the counters of this region and
///             of the next one, where such a run may end, are unchanged. The scan saw all chunks
///             that were counted before it, and a free that publishes a later chunk counts it
///             before it returns.
///
/// A scan reads the headers of a region from its front. After a used chunk it continues at the end
/// of the chunk; at a tombstone or an unwritten header it continues at the next granule; at a busy
/// chunk it waits. A tombstone where a chunk should start means that the list has changed during
/// the scan, and then the scan records no failure.
///
/// A search scans from some region to the end of the pool, and then from the front to the end. The
/// start depends on the thread block, so concurrent searches share the work, and later searches use
/// the recorded failures.
///
/// Two counters are sufficient. A free at granule p extends a run that starts at or before p. If
/// the run starts two regions earlier, it already contained a whole region, and failures are
/// recorded only for sizes up to one region: max_recorded_size(). Counters only grow. A lane that
/// loads the failure first and the counters second reads counters no smaller than the scan did.
/// Equal sums therefore imply equal counters.
///
/// A malloc that splits a chunk frees its remainder. If the remainder starts in the region of the
/// block, it needs no count: a scan has waited until it was published. Otherwise malloc counts it
/// before the block is used, so that a scan that comes from the block's region finds the failure
/// outdated.
///
/// Progress: at most two passes over the pool. A search waits only for busy chunks, and a chunk is
/// busy for a bounded number of its owner's steps.
/// Requires: no lane is suspended while 2^32 chunks of one region become free.

#include <quarry/core/bits.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/pool/circular/header.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>
#include <quarry/simt/ids.hpp>

#include <algorithm>
#include <cstdint>

namespace quarry {

class circular_regions {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  circular_regions() = default;
  circular_regions(carve& metadata, std::uint32_t granules)
      : granules_(granules),
        shift_(std::max(log2_ceil(granules), 14u) - 10),
        count_(((granules - 1) >> shift_) + 1),
        regions_(metadata.take<region>("regions", count_ + 2)) {}

  /// Returns the start of a run of `size` free granules, or none.
  template <class Header>
  QUARRY_DEVICE std::uint32_t search(const Header& headers, std::uint32_t size) const;

  /// Returns whether the region of this granule has a valid record of a failure for `size`.
  QUARRY_DEVICE bool is_known_to_fail(std::uint32_t at, std::uint32_t size) const {
    std::uint32_t freed;
    return is_known_to_fail(at >> shift_, size, freed);
  }
  /// Counts a chunk at this granule that has become free.
  QUARRY_DEVICE void count_free(std::uint32_t at) const {
    counter(at >> shift_).add(1, simt::release);
  }
  /// Counts the free remainder of a split chunk. Requires that the block before it is not yet used.
  QUARRY_DEVICE void count_remainder(std::uint32_t block, std::uint32_t remainder) const {
    if ((block ^ remainder) >> shift_ == 0) return;
    count_free(remainder);
    simt::fence_stores();
  }

 private:
  struct region {
    std::uint64_t failure;
    std::uint32_t freed;
    std::uint32_t unused;
  };
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> counter(std::uint32_t number) const {
    return simt::atomic_ref<std::uint32_t>(regions_[number].freed);
  }

  /// The largest size for which failures are recorded.
  QUARRY_DEVICE std::uint32_t max_recorded_size() const { return std::uint32_t{1} << shift_; }
  QUARRY_DEVICE std::uint32_t front(std::uint32_t number) const { return number << shift_; }
  QUARRY_DEVICE std::uint32_t end(std::uint32_t number) const {
    return front(number + 1) < granules_ ? front(number + 1) : granules_;
  }
  /// The number of regions that a search scans. Searches for more than one region make one pass
  /// only, since the interior of a large chunk has many headers to read.
  QUARRY_DEVICE std::uint32_t scan_count(std::uint32_t size) const {
    if (size > max_recorded_size()) return count_;
    return count_ + static_cast<std::uint32_t>(
                        static_cast<std::uint64_t>(simt::block_id() * 0x9e3779b9u) * count_ >> 32);
  }
  /// The region to scan when `left` scans remain, including this one.
  QUARRY_DEVICE std::uint32_t region_at(std::uint32_t left) const {
    return (left > count_ ? 2 * count_ : count_) - left;
  }

  /// Returns whether the recorded failure is valid for `size`. Sets `freed` for a new record.
  QUARRY_DEVICE bool is_known_to_fail(std::uint32_t number, std::uint32_t size,
                                      std::uint32_t& freed) const {
    const std::uint64_t failure =
        simt::atomic_ref<std::uint64_t>(regions_[number].failure).load(simt::acquire);
    const std::uint32_t own = counter(number).load(simt::acquire);
    freed = own + counter(number + 1).load(simt::acquire);
    return own == 0 || (failure >> 32 == freed && static_cast<std::uint32_t>(failure) <= size);
  }
  QUARRY_DEVICE void record_failure(std::uint32_t number, std::uint32_t size,
                                    std::uint32_t freed) const {
    if (size > max_recorded_size()) --freed;  // a record that is never valid
    simt::atomic_ref<std::uint64_t>(regions_[number].failure)
        .store(std::uint64_t{freed} << 32 | size, simt::release);
  }

  std::uint32_t granules_;
  std::uint32_t shift_;
  std::uint32_t count_;
  region* regions_;
};

template <class Header>
QUARRY_DEVICE std::uint32_t circular_regions::search(const Header& headers,
                                                     std::uint32_t size) const {
  std::uint32_t run = 0;  // start of the current run of free chunks
  for (std::uint32_t left = scan_count(size); left != 0; --left) {
    const std::uint32_t number = region_at(left);
    if (left == count_) run = 0;
    if (run >= end(number)) continue;  // inside a used chunk
    run = front(number);
    std::uint32_t freed;
    if (is_known_to_fail(number, size, freed)) {
      run = end(number);
      continue;
    }
    std::uint32_t at = none;  // end of the run; none: find a chunk from `run` on
    do {
      std::uint32_t next;
      const chunk_state state = headers.load(at == none ? run : at, next);
      if (state == chunk_state::free) {
        at = next;
        if (at - run >= size) return run;
      } else if (state == chunk_state::used) {
        at = run = next != 0 ? next : granules_;  // 0: the end marker
      } else if (state == chunk_state::busy) {
        at = run;
        simt::spin();
      } else {
        if (at == none)
          ++run;
        else
          --freed;
        at = none;
      }
    } while (run < end(number));
    record_failure(number, size, freed);
  }
  return none;
}

}  // namespace quarry

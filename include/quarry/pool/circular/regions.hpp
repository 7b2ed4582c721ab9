// SPDX-License-Identifier: Apache-2.0
#pragma once
/// circular_regions: a search through all of a circular that does not look where others have looked in vain.
///
///   pool      | region 0 | region 1 | … |        2^k granules each, 1024 regions at most
///   regions   | note, freed | note, freed | … |
///
/// freed   how often a chunk became free that starts there, counted after the fact, those of the new pool too. 0: none
///         ever started there, so there is nothing to read in the midst of a large one
/// note    {freed, size}: a walk through the region found no run of free chunks that starts there and has `size`
///         granules. That holds as long as nothing is counted, there and in the next region, where such a run may end:
///         what was counted by then, the walk saw; what came about since has not ended yet, or it would be counted.
///
/// The walk reads every place of a region from its front on. Where a chunk is in use it goes on at its end; where
/// none starts (a tombstone, an unwritten place) at the next granule; for a busy one it waits. A tombstone where a
/// chunk ought to start means that something has changed under way: then nothing is noted.
/// A search walks from some region to the end of the pool, and then from front to end. Blocks of threads start
/// at different regions, so that they share the work; whoever comes later passes over the notes.
///
/// Why two regions are enough. A free at granule p makes a run longer that starts at p or before. If it starts two
/// regions before, it had a whole region in it already, and notes are about sizes up to that only: `longest`.
/// (Counters only grow. Who reads the note first and the counters then, sees none smaller than the walk did; so if
/// the sums are equal, the counters are.)
/// A malloc leaves a rest behind. In its block's region that need not be counted: a walk waited until it was there. In
/// another one it is, before the block is in use: a walk that comes from there finds the note outdated.
///
/// Bound: two walks through the pool; a chunk is busy for a bounded number of its owner's steps.
/// Assumed: nobody sleeps while 2^32 blocks of a region are freed.

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
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

  circular_regions() = default;
  circular_regions(carve& metadata, std::uint32_t granules)
      : granules_(granules),
        shift_(std::max(log2_ceil(granules), 14u) - 10),
        count_(((granules - 1) >> shift_) + 1),
        regions_(metadata.take<region>("regions", count_ + 2)) {}

  /// Where a run of `size` free granules starts, or nowhere.
  template <class Header>
  QUARRY_DEVICE std::uint32_t search(const Header& headers, std::uint32_t size) const;

  /// Whether a search has found no room in the region of this granule.
  QUARRY_DEVICE bool hopeless(std::uint32_t at, std::uint32_t size) const {
    std::uint32_t freed;
    return hopeless(at >> shift_, size, freed);
  }
  /// A chunk at this granule has become free.
  QUARRY_DEVICE void count_free(std::uint32_t at) const {
    counter(at >> shift_).add(1, simt::release);
  }
  /// What remains of a chunk has become free; the block in front of it is not in use yet.
  QUARRY_DEVICE void count_rest(std::uint32_t block, std::uint32_t rest) const {
    if ((block ^ rest) >> shift_ == 0) return;
    count_free(rest);
    simt::fence_stores();
  }

 private:
  struct region {
    std::uint64_t note;
    std::uint32_t freed;
    std::uint32_t unused;
  };
  QUARRY_DEVICE simt::atomic_ref<std::uint32_t> counter(std::uint32_t number) const {
    return simt::atomic_ref<std::uint32_t>(regions_[number].freed);
  }

  /// The largest size that notes are made of.
  QUARRY_DEVICE std::uint32_t longest() const { return std::uint32_t{1} << shift_; }
  QUARRY_DEVICE std::uint32_t front(std::uint32_t number) const { return number << shift_; }
  QUARRY_DEVICE std::uint32_t end(std::uint32_t number) const {
    return front(number + 1) < granules_ ? front(number + 1) : granules_;
  }
  /// Regions to visit. Larger requests go round once: in the midst of a large chunk there is much to read.
  QUARRY_DEVICE std::uint32_t visits(std::uint32_t size) const {
    if (size > longest()) return count_;
    return count_ +
           static_cast<std::uint32_t>(std::uint64_t{simt::block_id() * 0x9e3779b9u} * count_ >> 32);
  }
  /// The region to visit when so many are left, this one among them.
  QUARRY_DEVICE std::uint32_t visited(std::uint32_t left) const {
    return (left > count_ ? 2 * count_ : count_) - left;
  }

  /// Whether the note says that this size does not fit. `freed` is for a new one.
  QUARRY_DEVICE bool hopeless(std::uint32_t number, std::uint32_t size,
                              std::uint32_t& freed) const {
    const std::uint64_t note =
        simt::atomic_ref<std::uint64_t>(regions_[number].note).load(simt::acquire);
    const std::uint32_t own = counter(number).load(simt::acquire);
    freed = own + counter(number + 1).load(simt::acquire);
    return own == 0 || (note >> 32 == freed && static_cast<std::uint32_t>(note) <= size);
  }
  QUARRY_DEVICE void note(std::uint32_t number, std::uint32_t size, std::uint32_t freed) const {
    if (size > longest()) --freed;  // a note that never holds
    simt::atomic_ref<std::uint64_t>(regions_[number].note)
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
  std::uint32_t run = 0;  // where a run of free chunks starts, or would
  for (std::uint32_t left = visits(size); left != 0; --left) {
    const std::uint32_t number = visited(left);
    if (left == count_) run = 0;
    if (run >= end(number)) continue;  // inside a chunk that is in use
    run = front(number);
    std::uint32_t freed;
    if (hopeless(number, size, freed)) {
      run = end(number);
      continue;
    }
    std::uint32_t at =
        nowhere;  // the end of the run, a chunk's start; nowhere: look for one from `run` on
    do {
      std::uint32_t next;
      const chunk_state state = headers.look(at == nowhere ? run : at, next);
      if (state == chunk_state::free) {
        at = next;
        if (at - run >= size) return run;
      } else if (state == chunk_state::used) {
        at = run = next != 0 ? next : granules_;  // 0: the end marker
      } else if (state == chunk_state::busy) {
        at = run;
        simt::spin();
      } else {
        if (at == nowhere)
          ++run;
        else
          --freed;
        at = nowhere;
      }
    } while (run < end(number));
    note(number, size, freed);
  }
  return nowhere;
}

}  // namespace quarry

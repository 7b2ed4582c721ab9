// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the kernels of the benchmark request and write. Everything is a function of the index of
/// the calling lane (`caller`), so that host and device agree without storing it.
///
///   bench_selection   which lanes act in a round
///   bench_sizes       the size that a lane requests in a round
///   bench_block       the content of a block
///   bench_checker     counts failed allocations, and corrupt or misaligned blocks

#include "common/parse.hpp"

#include <quarry/core/allocator.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/random.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry::tool {

/// Selects the lanes that act in a round. In round 0 all lanes act, unless `kind` is rank_range.
struct bench_selection {
  enum kind : std::uint8_t {
    all_lanes,
    half,       // a random half of the lanes
    lifetimes,  // a quarter of the lanes each: every round, every 2nd, 8th, 32nd on average
    rank_range  // lanes whose random rank, 0 ... 9999, lies in [from, to)
  };
  kind lanes = half;
  std::uint32_t from = 0;  // rank_range only
  std::uint32_t to = 0;

  QUARRY_DEVICE bool operator()(std::uint64_t caller, std::uint32_t round) const {
    const std::uint32_t random = simt::scramble(static_cast<std::uint32_t>(caller) * 64 + round);
    if (lanes == rank_range) {
      const std::uint32_t rank = simt::scramble(static_cast<std::uint32_t>(caller)) % 10'000;
      return rank >= from && rank < to;
    }
    if (round == 0 || lanes == all_lanes) return true;
    if (lanes == half) return (random & 1) != 0;
    const std::uint32_t lifetime_class = caller % 4;
    return (random & (lifetime_class == 0 ? 0u : (1u << (2 * lifetime_class - 1)) - 1)) == 0;
  }
};

/// Sizes are uniform in [least, least + span). A lane requests a new size in every round in which
/// it is selected. With a cycle, sizes drift: the span grows from an eighth to the whole in the
/// first half of the cycle, and shrinks in the second half.
struct bench_sizes {
  std::uint64_t least;
  std::uint32_t span;
  std::uint32_t cycle = 0;  // rounds; 0: sizes do not drift
  bench_selection selected{};

  explicit bench_sizes(const size_range& r)
      : least(r.least), span(static_cast<std::uint32_t>(r.most - r.least + 1)) {}

  QUARRY_DEVICE std::uint64_t in_round(std::uint64_t caller, std::uint32_t round) const {
    if (span == 1) return least;
    return least + simt::lane_random(caller | std::uint64_t{round} << 40).below(span_in(round));
  }
  /// Returns the size of the block that a caller holds after `round`.
  QUARRY_DEVICE std::uint64_t held(std::uint64_t caller, std::uint32_t round) const {
    while (!selected(caller, round)) --round;
    return in_round(caller, round);
  }

 private:
  QUARRY_DEVICE std::uint32_t span_in(std::uint32_t round) const {
    if (cycle == 0) return span;
    const std::uint32_t at = round % cycle;
    const std::uint32_t up = at < cycle / 2 ? at : cycle - at;
    const std::uint32_t low = (span + 7) / 8;
    return low + static_cast<std::uint32_t>(std::uint64_t{span - low} * up / (cycle - cycle / 2));
  }
};

/// A block and its expected content. Reads are volatile: on a GPU they bypass the L1 cache, so that
/// they see writes of other multiprocessors.
struct bench_block {
  void* memory;  // aligned to 4 at least
  std::uint64_t number;
  std::uint64_t size;

  /// Part `part` of `parts`.
  QUARRY_DEVICE void write(std::uint32_t part = 0, std::uint32_t parts = 1) const {
    auto* words = static_cast<std::uint32_t*>(memory);
    for (std::uint64_t i = part; i < size / 4; i += parts) words[i] = word(i);
    auto* last = static_cast<std::uint8_t*>(memory);
    for (std::uint64_t i = size / 4 * 4 + part; i < size; i += parts) last[i] = byte(i);
  }
  QUARRY_DEVICE bool intact(std::uint32_t part = 0, std::uint32_t parts = 1) const {
    const auto* words = static_cast<const volatile std::uint32_t*>(memory);
    for (std::uint64_t i = part; i < size / 4; i += parts)
      if (words[i] != word(i)) return false;
    const auto* last = static_cast<const volatile std::uint8_t*>(memory);
    for (std::uint64_t i = size / 4 * 4 + part; i < size; i += parts)
      if (last[i] != byte(i)) return false;
    return true;
  }

 private:
  QUARRY_DEVICE std::uint32_t word(std::uint64_t i) const {
    const std::uint64_t mixed = number * 0x9e3779b97f4a7c15u + i;
    return simt::scramble(static_cast<std::uint32_t>(mixed) ^
                          static_cast<std::uint32_t>(mixed >> 32));
  }
  QUARRY_DEVICE std::uint8_t byte(std::uint64_t i) const {
    return static_cast<std::uint8_t>(word(~i));
  }
};

/// Counts failed allocations and damaged blocks. A block that must not be accessed is counted, and
/// not touched.
struct bench_checker {
  enum count : std::uint8_t { failures, corrupt, misaligned, kinds };

  std::uintptr_t begin;  // of the pool; 0 ... ~0 if the allocator does not own its pool
  std::uintptr_t end;
  std::uint64_t* counts;

  /// Returns true if the block may be accessed.
  QUARRY_DEVICE bool usable(const void* block, std::uint64_t size) const {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    return block != nullptr && address % 4 == 0 && inside(address, size);
  }
  /// Inspects the result of a malloc and counts what is wrong. Returns true if the block may be
  /// accessed.
  QUARRY_DEVICE bool accept(const void* block, std::uint64_t size) const {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    if (block == nullptr) {
      add(failures);
      return false;
    }
    if (address % block_alignment != 0) add(misaligned);
    if (!inside(address, size)) add(corrupt);
    return usable(block, size);
  }
  QUARRY_DEVICE void count_corrupt() const { add(corrupt); }

 private:
  QUARRY_DEVICE bool inside(std::uintptr_t address, std::uint64_t size) const {
    return address >= begin && address <= end && size <= end - address;
  }
  QUARRY_DEVICE void add(count kind) const {
    simt::atomic_ref<std::uint64_t>(counts[kind]).add(1, simt::relaxed);
  }
};

}  // namespace quarry::tool

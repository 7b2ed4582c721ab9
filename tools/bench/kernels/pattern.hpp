// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the benchmark asks for and what it writes: sizes that follow from a worker's number, a pattern that
/// follows from a block's, and the judge who counts what is wrong.

#include "common/parse.hpp"

#include <quarry/core/allocator.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/random.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry::tool {

/// Which workers act in a round. In round 0 everybody does, but for `layer`.
struct bench_draw {
  enum kind : std::uint8_t {
    everybody,
    half,       // a random one
    lifetimes,  // a quarter of the workers each: always, every second time, every 8th, every 32nd
    layer       // those whose rank, 0 … 9999 at random, lies between two marks
  };
  kind who = half;
  std::uint32_t from = 0;  // of the layer
  std::uint32_t to = 0;

  QUARRY_DEVICE bool operator()(std::uint64_t worker, std::uint32_t round) const {
    const std::uint32_t random = simt::scramble(static_cast<std::uint32_t>(worker) * 64 + round);
    if (who == layer) {
      const std::uint32_t rank = simt::scramble(static_cast<std::uint32_t>(worker)) % 10'000;
      return rank >= from && rank < to;
    }
    if (round == 0 || who == everybody) return true;
    if (who == half) return (random & 1) != 0;
    const std::uint32_t kind_of_life = worker % 4;
    return (random & (kind_of_life == 0 ? 0u : (1u << (2 * kind_of_life - 1)) - 1)) == 0;
  }
};

/// Uniform in [least, least + span); a new size in every round in which a worker is drawn. Where there is a
/// cycle, sizes drift: the span grows from an eighth to the whole in half a cycle, and back in the other.
struct bench_sizes {
  std::uint64_t least;
  std::uint32_t span;
  std::uint32_t cycle = 0;  // rounds; 0: nothing drifts
  bench_draw drawn{};

  explicit bench_sizes(const size_range& r)
      : least(r.least), span(static_cast<std::uint32_t>(r.most - r.least + 1)) {}

  QUARRY_DEVICE std::uint64_t in_round(std::uint64_t worker, std::uint32_t round) const {
    if (span == 1) return least;
    return least + simt::lane_random(worker | std::uint64_t{round} << 40).below(span_in(round));
  }
  /// Of the block that a worker has after `round`.
  QUARRY_DEVICE std::uint64_t held(std::uint64_t worker, std::uint32_t round) const {
    while (!drawn(worker, round)) --round;
    return in_round(worker, round);
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

/// A block and its pattern. Reads are volatile: on a GPU they go past the multiprocessor's own cache and see
/// what others wrote meanwhile.
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

/// Counts what malloc gave. A block that can not be touched is counted and left alone.
struct bench_judge {
  enum count : std::uint8_t { failures, corrupt, misaligned, kinds };

  std::uintptr_t begin;  // of the pool; 0 … ~0 where blocks lie elsewhere
  std::uintptr_t end;
  std::uint64_t* counts;

  QUARRY_DEVICE bool usable(const void* block, std::uint64_t size) const {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    return block != nullptr && address % 4 == 0 && inside(address, size);
  }
  /// The first look at a block: counts, and says whether it is usable.
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

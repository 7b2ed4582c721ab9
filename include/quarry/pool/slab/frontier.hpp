// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which segments of a slab heap nobody used yet: those from the frontier to the end of the pool. They are in no list and
/// have no class; who needs new ones moves the frontier.
///
///   segments   | 0 ………… | first() ………… | end() ………… |
///                 used      new            withheld (slab_resize.hpp)
///
/// A word holds both: the first new segment in its lower half, the end in its upper one. Within a kernel the frontier
/// only goes up and the end stays. Those who want few segments add what they want: one step, however many are at it;
/// so the frontier may be beyond the end, and then there are none. Who saw it there adds nothing more: the lower half has
/// room for 2^26 lanes that had not seen it yet.
///
/// Ordering: relaxed. A new segment has no past, and what its class is, others learn by the entry that leads to it.
/// Progress: lock-free.

#include <quarry/concurrent/index_set.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/core/config.hpp>
#include <quarry/simt/atomic.hpp>

#include <cstdint>

namespace quarry {

class slab_frontier {
 public:
  struct view {
    std::uint64_t word;

    QUARRY_DEVICE constexpr std::uint32_t first() const { return static_cast<std::uint32_t>(word); }
    QUARRY_DEVICE constexpr std::uint32_t end() const {
      return static_cast<std::uint32_t>(word >> 32);
    }
    QUARRY_DEVICE constexpr bool any_new() const { return first() < end(); }
    /// Segments before the frontier and the end.
    QUARRY_DEVICE constexpr std::uint32_t used() const { return any_new() ? first() : end(); }
  };

  slab_frontier() = default;
  explicit slab_frontier(carve& metadata) : word_(metadata.take<std::uint64_t>("frontier", 1)) {}

  /// Between kernels, or before the first one.
  QUARRY_DEVICE void set(std::uint32_t first, std::uint32_t end) const {
    word().store(pack(first, end), simt::relaxed);
  }
  QUARRY_DEVICE view look() const { return {word().load(simt::relaxed)}; }
  /// Where it was a while ago will do: as a rule that takes no round trip to memory.
  QUARRY_DEVICE view glance() const { return {word().load_cached()}; }

  /// Moves it by so many: new are those from first() on that lie before end(); maybe fewer, or none.
  QUARRY_DEVICE view pass(std::uint32_t segments) const {
    const view seen = look();
    return seen.any_new() ? view{word().fetch_add(segments, simt::relaxed)} : seen;
  }
  /// All of so many, and the first is returned; index_set::none: there are fewer, and the frontier stays.
  QUARRY_DEVICE std::uint32_t take(std::uint32_t segments) const {
    view seen = look();
    do {
      if (seen.first() + std::uint64_t{segments} > seen.end()) return index_set::none;
    } while (!word().compare_exchange(seen.word, seen.word + segments, simt::relaxed));
    return seen.first();
  }
  /// All that are left: those from first() on, if there are any_new().
  QUARRY_DEVICE view take_rest() const {
    view seen = look();
    while (seen.any_new() &&
           !word().compare_exchange(seen.word, pack(seen.end(), seen.end()), simt::relaxed)) {
    }
    return seen;
  }

 private:
  QUARRY_DEVICE static constexpr std::uint64_t pack(std::uint32_t first, std::uint32_t end) {
    return std::uint64_t{end} << 32 | first;
  }
  QUARRY_DEVICE simt::atomic_ref<std::uint64_t> word() const {
    return simt::atomic_ref<std::uint64_t>(*word_);
  }

  std::uint64_t* word_;
};

}  // namespace quarry

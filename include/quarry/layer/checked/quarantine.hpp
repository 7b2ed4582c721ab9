// SPDX-License-Identifier: Apache-2.0
#pragma once
/// quarantine: freed blocks, as slots of the registry, wait in FIFOs before the upstream gets them.
///
/// Several FIFOs, chosen by a hash, lest all lanes meet at one head and one tail. A lane that finds its
/// FIFO full lets the oldest go and tries once more; then its own block goes.
/// Ordering: that of bounded_fifo: what was done to a block before it was put away is seen by who takes
/// it out. Bound: put takes at most two out, empty at most what fits in.

#include <quarry/concurrent/bounded_fifo.hpp>
#include <quarry/core/carve.hpp>
#include <quarry/layer/checked/registry.hpp>
#include <quarry/simt/ids.hpp>
#include <quarry/simt/random.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace quarry {

template <std::uint32_t Fifos, std::uint32_t Capacity>
class quarantine {
 public:
  quarantine() = default;
  explicit quarantine(carve& metadata)
      : fifos_(metadata.take<typename fifo::storage>("quarantine", Fifos)) {}

  QUARRY_DEVICE void initialise(std::uint64_t lane, std::uint64_t lanes) const {
    for (std::uint64_t i = lane; i < Fifos; i += lanes) fifo(fifos_ + i).initialise(0, 1);
  }

  /// let_go(slot) for each that has waited long enough, or had no room.
  template <class LetGo>
  QUARRY_DEVICE void put(std::uint32_t slot, LetGo let_go) const {
    const fifo mine(fifos_ +
                    simt::scramble(simt::thread_id() ^ simt::block_id() << 10 ^ simt::clock()) %
                        Fifos);
    for (int tries = 0; tries < 2; ++tries) {
      if (mine.enqueue(slot)) return;
      std::uint32_t oldest = 0;
      if (mine.dequeue(oldest)) let_go(oldest);
    }
    let_go(slot);
  }

  /// let_go(slot) for all.
  template <class LetGo>
  QUARRY_DEVICE void empty(LetGo let_go) const {
    for (std::uint32_t i = 0; i < Fifos; ++i) {
      std::uint32_t slot = 0;
      for (std::uint32_t left = Capacity; left != 0 && fifo(fifos_ + i).dequeue(slot); --left)
        let_go(slot);
    }
  }

  /// Between kernels. Empty: what waits here and what waits by the registry is the same.
  std::string check_invariants(const block_registry& registry) const {
    std::vector<bool> here(registry.slots());
    std::string problem;
    for (std::uint32_t i = 0; i < Fifos; ++i) {
      if (problem = fifo(fifos_ + i).check_invariants(); !problem.empty()) return problem;
      fifo(fifos_ + i).visit([&](std::uint32_t slot) {
        if (slot < here.size() && !here[slot])
          here[slot] = true;
        else
          problem =
              "the quarantine holds slot " + std::to_string(slot) + " twice, or it does not exist";
      });
    }
    for (std::uint32_t slot = 0; slot < here.size() && problem.empty(); ++slot)
      if ((registry.at(slot).now == block_registry::waiting) != here[slot])
        problem = "the block of slot " + std::to_string(slot) +
                  (here[slot] ? " is in the quarantine, but does not wait"
                              : " waits, but not in the quarantine");
    return problem;
  }

 private:
  using fifo = bounded_fifo<Capacity>;

  typename fifo::storage* fifos_;
};

/// Nothing waits.
template <std::uint32_t Capacity>
class quarantine<0, Capacity> {
 public:
  quarantine() = default;
  explicit quarantine(carve&) {}
  QUARRY_DEVICE void initialise(std::uint64_t, std::uint64_t) const {}
  template <class LetGo>
  QUARRY_DEVICE void put(std::uint32_t slot, LetGo let_go) const {
    let_go(slot);
  }
  template <class LetGo>
  QUARRY_DEVICE void empty(LetGo) const {}
  std::string check_invariants(const block_registry&) const { return {}; }
};

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// quarantine: FIFOs of freed blocks, stored as slots of the registry, that delay their release to
/// the upstream.
///
/// A hash chooses one of several FIFOs, to reduce contention for head and tail. If the FIFO is
/// full, insert() evicts its oldest block and tries once more; if the FIFO is full again, insert()
/// evicts its own block.
/// Ordering: that of bounded_fifo: accesses to a block before insert() happen before its eviction.
/// Progress: insert() evicts at most two blocks, evict_all() at most the capacity.

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

  /// Inserts a slot. Calls evict(slot) for each evicted slot.
  template <class Evict>
  QUARRY_DEVICE void insert(std::uint32_t slot, Evict evict) const {
    const fifo mine(fifos_ +
                    simt::scramble(simt::thread_id() ^ simt::block_id() << 10 ^ simt::clock()) %
                        Fifos);
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (mine.enqueue(slot)) return;
      std::uint32_t oldest = 0;
      if (mine.dequeue(oldest)) evict(oldest);
    }
    evict(slot);
  }

  /// Calls evict(slot) for all slots, and removes them.
  template <class Evict>
  QUARRY_DEVICE void evict_all(Evict evict) const {
    for (std::uint32_t i = 0; i < Fifos; ++i) {
      std::uint32_t slot = 0;
      for (std::uint32_t left = Capacity; left != 0 && fifo(fifos_ + i).dequeue(slot); --left)
        evict(slot);
    }
  }

  /// Checks that the slots in the FIFOs are those in state `quarantined`, each once. Requires
  /// quiescence. Returns the violation, or "".
  std::string check_invariants(const block_registry& registry) const {
    std::vector<bool> present(registry.slots());
    std::string problem;
    for (std::uint32_t i = 0; i < Fifos; ++i) {
      if (problem = fifo(fifos_ + i).check_invariants(); !problem.empty()) return problem;
      fifo(fifos_ + i).visit([&](std::uint32_t slot) {
        if (slot < present.size() && !present[slot])
          present[slot] = true;
        else
          problem = "the quarantine holds slot " + std::to_string(slot) +
                    " twice, or the slot does not exist";
      });
    }
    for (std::uint32_t slot = 0; slot < present.size() && problem.empty(); ++slot)
      if ((registry.at(slot).status == block_registry::quarantined) != present[slot])
        problem = "the block of slot " + std::to_string(slot) +
                  (present[slot] ? " is in the quarantine, but its state is another one"
                                 : " has the state quarantined, but is not in the quarantine");
    return problem;
  }

 private:
  using fifo = bounded_fifo<Capacity>;

  typename fifo::storage* fifos_;
};

/// Without a quarantine: every slot is evicted at once.
template <std::uint32_t Capacity>
class quarantine<0, Capacity> {
 public:
  quarantine() = default;
  explicit quarantine(carve&) {}
  QUARRY_DEVICE void initialise(std::uint64_t, std::uint64_t) const {}
  template <class Evict>
  QUARRY_DEVICE void insert(std::uint32_t slot, Evict evict) const {
    evict(slot);
  }
  template <class Evict>
  QUARRY_DEVICE void evict_all(Evict) const {}
  std::string check_invariants(const block_registry&) const { return {}; }
};

}  // namespace quarry

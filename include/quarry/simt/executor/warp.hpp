// SPDX-License-Identifier: Apache-2.0
#pragma once
/// lane and warp: what the executor knows of each.
///
/// A lane is ready, running, spinning, waiting (in a collective, for company, at the barrier) or gone.
///   ready, spinning, alive, at_barrier    one bit per lane
///   pending                               the collectives some lanes wait in; never two alike
/// Invariant: alive = ready + spinning + at_barrier + the lanes of pending, disjoint, plus the lane
/// that runs when it is not counted as ready (explore mode).

#include <quarry/simt/bits.hpp>
#include <quarry/simt/executor/fiber.hpp>

#include <array>
#include <cstdint>

namespace quarry::simt::exec {

struct warp;

struct lane {
  fiber thread;
  warp* home = nullptr;
  std::uint32_t index = 0;  // in the warp
  std::uint32_t thread_in_block = 0;
  std::uint32_t block = 0;
  std::int32_t quantum = 0;         // atomics left before the lane must give way
  std::uint64_t value = 0;          // brought to a collective
  std::uint64_t result = 0;         // taken from it
  std::uint64_t second_result = 0;  // scans have two
  std::uint32_t source = 0;         // shuffle: the lane to read from
  std::uint64_t depth = 0;          // memory round trips on the longest path to here
  std::uint64_t priority = 0;       // explore mode, PCT
};

/// A warp-wide operation: what the last lane to arrive does for all of them.
struct collective_kind {
  const char* name;
  void (*finish)(lane* lanes, lane_mask present);
};

/// Lanes that wait in one operation. Masked collectives match on kind and mask; a request for
/// company (coalesced) matches on the place in the source.
struct rendezvous {
  const collective_kind* kind = nullptr;
  lane_mask mask = 0;
  lane_mask arrived = 0;
  const char* file = nullptr;
  unsigned line = 0;
};

struct warp {
  warp() : memory(warp_size) {}

  stacks memory;
  std::array<lane, warp_size> lanes;
  warp* first_of_block = nullptr;
  lane_mask ready = 0;
  lane_mask spinning = 0;
  lane_mask alive = 0;
  lane_mask at_barrier = 0;
  lane* turn = nullptr;  // explore mode, lockstep: who runs until it waits
  unsigned pending_count = 0;
  std::array<rendezvous, warp_size> pending;

  rendezvous* find(const rendezvous& like) {
    for (unsigned k = 0; k < pending_count; ++k) {
      rendezvous& r = pending[k];
      if (r.kind == like.kind && r.mask == like.mask && r.line == like.line && r.file == like.file)
        return &r;
    }
    return nullptr;
  }
  rendezvous& find_or_add(const rendezvous& like) {
    if (rendezvous* r = find(like)) return *r;
    return pending[pending_count++] = like;
  }
  void remove(rendezvous& r) { r = pending[--pending_count]; }
};

template <class Visit>
void for_each_lane(lane_mask mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(lowest_bit(mask));
}

}  // namespace quarry::simt::exec

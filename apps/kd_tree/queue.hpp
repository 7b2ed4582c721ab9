// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_queue: the tasks of a kernel whose warps stay until all is done.
///
///   slots    | task | task | task | 0 | task | 0 | 0 | …      never used twice
///                            ^head         ^tail
///
/// A warp takes a ticket, head + 1, and waits at the slot of that number until a task is there, or
/// there will be none. Whoever has tasks takes as many numbers from tail and writes them there, so
/// it never waits for a taker.
///
/// The end: a task counts as finished after it has pushed what follows from it, so finished = tail
/// means that nothing is left and nothing will come. `finished` is read first: both only grow, and
/// finished <= tail. A failure ends all waiting: nobody takes a task any more, whatever is in the
/// slots.
///
/// Progress: one waits for a warp that has a task and waits for nobody, so a warp that does not
/// run, or a block that has not begun, holds up nobody else. Bound: as many tasks as slots; one
/// more is a failure. Ordering: the store to a slot releases, the load from it acquires.

#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>

#include <cstdint>

namespace quarry::apps {

enum class kd_failure : std::uint32_t {
  none,
  no_memory,  // the heap had no room for a list
  no_nodes,   // more nodes than there is room for
  no_slots,   // more tasks than slots
  corrupt     // a list does not hold what was written to it
};

/// What warps count together; a line of memory each, since all of them change them.
struct kd_counters {
  alignas(128) std::uint64_t head = 0;
  alignas(128) std::uint64_t tail = 0;
  alignas(128) std::uint64_t finished = 0;
  alignas(128) std::uint32_t failure = 0;
  std::uint32_t failed_at = 0;  // triangles of the node where it was
  alignas(128) std::uint32_t nodes = 0;
  std::uint32_t teams = 0;

  /// The first failure is kept.
  QUARRY_DEVICE void fail(kd_failure why, std::uint32_t triangles) {
    std::uint32_t none = 0;
    if (simt::atomic_ref<std::uint32_t>(failure).compare_exchange(
            none, static_cast<std::uint32_t>(why), simt::relaxed))
      failed_at = triangles;
  }
  QUARRY_DEVICE bool failed() {
    return simt::atomic_ref<std::uint32_t>(failure).load(simt::relaxed) != 0;
  }
};

enum class kd_step : std::uint32_t {
  none,
  node,   // a node, by one warp, or opening a team
  count,  // a part of a team's triangles: which bins they are in
  share   // a part of a team's triangles: to the children
};

struct kd_task {
  kd_step step = kd_step::none;
  std::uint32_t part = 0;
  std::uint32_t node = 0;

  QUARRY_DEVICE constexpr std::uint64_t packed() const {
    return static_cast<std::uint64_t>(step) << 62 | std::uint64_t{part} << 32 | node;
  }
  QUARRY_DEVICE static constexpr kd_task unpack(std::uint64_t word) {
    return {static_cast<kd_step>(word >> 62), static_cast<std::uint32_t>(word >> 32 & 0x3fffffff),
            static_cast<std::uint32_t>(word)};
  }
};

struct kd_queue {
  std::uint64_t* slots;  // zero at first
  std::uint64_t capacity;
  kd_counters* counters;

  /// One lane of a warp: the next task, or 0 at the end.
  QUARRY_DEVICE std::uint64_t take() const {
    const std::uint64_t ticket = word(counters->head).fetch_add(1, simt::relaxed);
    for (std::uint32_t tries = 0;; ++tries) {
      if (ticket < capacity)
        if (const std::uint64_t task = word(slots[ticket]).load(simt::acquire); task != 0)
          return counters->failed() ? 0 : task;
      if (tries % 8 == 0 && (at_end() || counters->failed())) return 0;
      simt::spin();
    }
  }
  /// One lane: its warp has done what take() gave it.
  QUARRY_DEVICE void finish() const { word(counters->finished).add(1, simt::release); }

  /// One lane.
  QUARRY_DEVICE void push(kd_task task) const {
    const std::uint64_t at = claim(1);
    if (at < capacity) word(slots[at]).store(task.packed(), simt::release);
  }
  /// All lanes of a warp: `task` for each of the parts. What they wrote before is there for the
  /// takers.
  QUARRY_DEVICE void push_parts(kd_task task, std::uint32_t parts) const {
    simt::sync_warp(simt::full_warp);
    std::uint64_t at = 0;
    if (simt::lane_id() == 0) at = claim(parts);
    at = simt::shuffle(simt::full_warp, at, 0);
    if (at >= capacity) return;
    for (task.part = simt::lane_id(); task.part < parts; task.part += simt::warp_size)
      word(slots[at + task.part]).store(task.packed(), simt::release);
  }

 private:
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  QUARRY_DEVICE bool at_end() const {
    const std::uint64_t done = word(counters->finished).load(simt::acquire);
    return done == word(counters->tail).load(simt::relaxed);
  }
  /// The first of n numbers, or one beyond the slots.
  QUARRY_DEVICE std::uint64_t claim(std::uint64_t n) const {
    const std::uint64_t at = word(counters->tail).fetch_add(n, simt::relaxed);
    if (at + n <= capacity) return at;
    counters->fail(kd_failure::no_slots, 0);
    return capacity;
  }
};

}  // namespace quarry::apps

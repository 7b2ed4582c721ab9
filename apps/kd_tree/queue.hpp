// SPDX-License-Identifier: Apache-2.0
#pragma once
/// kd_queue: the task queue of a persistent kernel.
///
///   slots    | task | task | task | 0 | task | 0 | 0 | …      each slot is used once
///                            ^head         ^tail
///
/// A consumer draws a ticket from `head` and polls the slot with that number until a task appears
/// or the build has ended. A producer reserves slots by advancing `tail` and stores its tasks
/// there; it never waits for a consumer.
///
/// Termination: a task is counted as finished after it has pushed its successors. Hence finished =
/// tail implies that no task is left and none will be pushed. at_end() loads `finished` before
/// `tail`: both only grow, and finished <= tail. After a failure take() returns no more tasks.
///
/// Progress: a consumer waits only for warps that hold a task, and these do not wait. A warp that
/// is not scheduled, or a block that has not started, does not delay other warps.
/// Capacity: one task per slot; one more is a failure.
/// Memory ordering: the store to a slot releases, the load of the slot acquires.

#include <quarry/simt/atomic.hpp>
#include <quarry/simt/collective.hpp>

#include <cstdint>

namespace quarry::apps {

enum class kd_failure : std::uint32_t {
  none,
  no_memory,  // malloc returned nullptr
  no_nodes,   // more nodes than the node array holds
  no_slots,   // more tasks than slots
  corrupt     // the contents of a list changed after they were written
};

/// Counters shared by all warps. Frequently updated counters have a cache line each, to avoid false
/// sharing.
struct kd_counters {
  alignas(128) std::uint64_t head = 0;
  alignas(128) std::uint64_t tail = 0;
  alignas(128) std::uint64_t finished = 0;
  alignas(128) std::uint32_t failure = 0;
  std::uint32_t failed_node_size = 0;  // triangles of the node that failed
  alignas(128) std::uint32_t nodes = 0;
  std::uint32_t cooperative_splits = 0;

  /// Records a failure. Only the first one is kept.
  QUARRY_DEVICE void fail(kd_failure why, std::uint32_t triangles) {
    std::uint32_t none = 0;
    if (simt::atomic_ref<std::uint32_t>(failure).compare_exchange(
            none, static_cast<std::uint32_t>(why), simt::relaxed))
      failed_node_size = triangles;
  }
  QUARRY_DEVICE bool failed() {
    return simt::atomic_ref<std::uint32_t>(failure).load(simt::relaxed) != 0;
  }
};

enum class kd_step : std::uint32_t {
  none,
  split,      // split a node by one warp, or begin a cooperative split
  histogram,  // add the histogram of one chunk of a cooperative split
  partition   // partition one chunk of a cooperative split
};

struct kd_task {
  kd_step step = kd_step::none;
  std::uint32_t chunk = 0;
  std::uint32_t node = 0;

  QUARRY_DEVICE constexpr std::uint64_t packed() const {
    return static_cast<std::uint64_t>(step) << 62 | std::uint64_t{chunk} << 32 | node;
  }
  QUARRY_DEVICE static constexpr kd_task unpack(std::uint64_t word) {
    return {static_cast<kd_step>(word >> 62), static_cast<std::uint32_t>(word >> 32 & 0x3fffffff),
            static_cast<std::uint32_t>(word)};
  }
};

struct kd_queue {
  std::uint64_t* slots;  // initially zero
  std::uint64_t capacity;
  kd_counters* counters;

  /// Returns the next task, packed, or 0 at the end. Called by one lane of a warp.
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
  /// Counts the task from take() as finished. Called by one lane of a warp.
  QUARRY_DEVICE void finish() const { word(counters->finished).add(1, simt::release); }

  /// Appends a task. Called by one lane.
  QUARRY_DEVICE void push(kd_task task) const {
    const std::uint64_t at = claim(1);
    if (at < capacity) word(slots[at]).store(task.packed(), simt::release);
  }
  /// Appends `task` once per chunk. Collective: all lanes of a warp, whose earlier writes are
  /// visible to the warps that take these tasks.
  QUARRY_DEVICE void push_chunks(kd_task task, std::uint32_t chunks) const {
    simt::sync_warp(simt::full_warp);
    std::uint64_t at = 0;
    if (simt::lane_id() == 0) at = claim(chunks);
    at = simt::shuffle(simt::full_warp, at, 0);
    if (at >= capacity) return;
    for (task.chunk = simt::lane_id(); task.chunk < chunks; task.chunk += simt::warp_size)
      word(slots[at + task.chunk]).store(task.packed(), simt::release);
  }

 private:
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  QUARRY_DEVICE bool at_end() const {
    const std::uint64_t done = word(counters->finished).load(simt::acquire);
    return done == word(counters->tail).load(simt::relaxed);
  }
  /// Reserves n consecutive slots. Returns the first one, or `capacity` if there is no room.
  QUARRY_DEVICE std::uint64_t claim(std::uint64_t n) const {
    const std::uint64_t at = word(counters->tail).fetch_add(n, simt::relaxed);
    if (at + n <= capacity) return at;
    counters->fail(kd_failure::no_slots, 0);
    return capacity;
  }
};

}  // namespace quarry::apps

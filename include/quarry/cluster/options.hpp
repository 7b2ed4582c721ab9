// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Options of schedulers and workers, and what they count.

#include <quarry/cluster/detail/fault.hpp>
#include <quarry/core/config.hpp>

#include <cstddef>
#include <cstdint>

namespace quarry::cluster {

// Sanitizers occupy the addresses that all processes of a cluster agree on; simulations use others.
#if QUARRY_TSAN
inline constexpr std::uint64_t default_base = 0x5500'0000'0000;
#elif QUARRY_ASAN
inline constexpr std::uint64_t default_base = 0x2000'0000'0000;
#else
inline constexpr std::uint64_t default_base = 0x1000'0000'0000;
#endif
inline constexpr std::uint64_t default_capacity = std::uint64_t{64} << 40;

/// When a scheduler sends messages that no worker waits for.
struct scheduler_tuning {
  /// The high watermark: the number of free pages that a scheduler obtains at the start and after
  /// that whenever it requests pages, for itself and for each scheduler in its subtree.
  std::uint64_t reserve_pages = 64;
  /// The low watermark, counted in the same way: a scheduler that has fewer free pages requests
  /// more before an allocation needs them. 0: it requests pages only when an allocation waits.
  std::uint64_t low_pages = 32;
  /// A scheduler reports the number of its regions to its parent when the last report is wrong by
  /// at least this number of regions and by this fraction of the last report.
  std::uint64_t load_change = 4;
  double load_fraction = 0.125;
};

struct scheduler_options {
  std::uint64_t base = default_base;          // of the address space, equal in all processes
  std::uint64_t capacity = default_capacity;  // bytes of the address space
  scheduler_tuning tuning = {};
  detail::fault fault = detail::fault::none;  // for tests
};

struct scheduler_statistics {
  std::uint64_t messages = 0;         // received, including those forwarded
  std::uint64_t forwarded = 0;        // messages to other nodes
  std::uint64_t served = 0;           // requests of workers answered here
  std::uint64_t page_requests = 0;    // to the parent
  std::uint64_t waits_for_pages = 0;  // requests that waited for pages of another scheduler
  std::uint64_t pages_returned = 0;
  std::uint64_t malformed = 0;  // messages that could not be decoded
  std::uint64_t regions = 0;    // owned now
};

struct worker_options {
  bool leases = true;    // false: every call sends a message
  bool reports = false;  // sends a progress_report to the top scheduler every second
  detail::fault fault = detail::fault::none;  // for tests
};

struct worker_statistics {
  std::uint64_t calls = 0;           // of regions and objects: create_region to usable_size
  std::uint64_t messages = 0;        // sent to and received from schedulers
  std::uint64_t allocations = 0;     // objects
  std::uint64_t from_leases = 0;     // allocations without a message
  std::uint64_t bytes_sent = 0;      // to other workers
  double waited_for_schedulers = 0;  // seconds
  double waited_for_workers = 0;     // seconds
};

/// The regions and objects that still exist when all workers have finished.
struct leaks {
  std::uint64_t regions = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
};

}  // namespace quarry::cluster

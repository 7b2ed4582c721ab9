// SPDX-License-Identifier: Apache-2.0
#pragma once
/// cost_ledger: the cost of malloc and free of an allocator as exact counts, without times.
///
/// There are three cases. Before each, the pool serves one round of requests:
///   lone    a lone lane, 64 bytes
///   equal   a full warp, 64 bytes per lane
///   mixed   a full warp, 16 to 1024 bytes: the seven powers of two in turn
/// All lanes call malloc together, then all call free, if the allocator supports it. The kernels
/// run in the executor's fast mode on the calling thread, so that the counts are reproducible.
///
/// A round trip is an access to shared memory whose result the lane waits for. The longest chain of
/// dependent round trips bounds the latency of a call from below. The chain may lead through other
/// lanes: a lane that waits for the leader of its group waits for the leader's round trips.

#include <quarry/check/sandbox.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace quarry {

/// The sum over `calls` calls.
struct call_costs {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;  // calls of malloc that returned nullptr
  std::uint64_t atomics = 0;
  std::uint64_t loads = 0;
  std::uint64_t stores = 0;
  std::uint64_t collectives = 0;  // counted once per participating lane
  std::uint64_t round_trips = 0;
  std::uint64_t longest = 0;  // the maximum of a call

  friend bool operator==(const call_costs&, const call_costs&) = default;
};

struct cost_case {
  const char* name = "";
  std::uint32_t lanes = 0;
  call_costs malloc;
  call_costs free;  // 0 calls if the allocator does not support free
};

struct cost_ledger {
  std::array<cost_case, 3> cases;  // lone, equal, mixed
};

/// Returns: total / calls as a fraction: "2", "33/32"; "-" if there are no calls.
std::string per_call(std::uint64_t total, std::uint64_t calls);

/// Requires: the pool can serve nine rounds of 32 requests of at most 1 KiB.
cost_ledger measure_costs(const sandbox& subject);

/// Returns: the costs of A. The default pool fulfils the requirement.
template <allocator A>
cost_ledger measure_costs(std::uint64_t pool_bytes = std::uint64_t{1} << 20) {
  return measure_costs(allocator_sandbox<A>(std::max<std::uint64_t>(pool_bytes, A::can.min_pool)));
}

}  // namespace quarry

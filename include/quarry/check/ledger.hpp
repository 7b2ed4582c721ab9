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
#include <quarry/simt/explore.hpp>
#include <quarry/simt/launch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
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
inline std::string per_call(std::uint64_t total, std::uint64_t calls) {
  if (calls == 0) return "-";
  const std::uint64_t common = std::gcd(total, calls);
  const std::string over = std::to_string(total / common);
  return calls == common ? over : over + "/" + std::to_string(calls / common);
}

namespace detail {

inline constexpr std::uint32_t ledger_lanes = 32;

struct ledger_lane {
  void* block = nullptr;
  std::uint64_t size = 0;
  std::uint64_t round_trips = 0;
};
using ledger_warp = std::array<ledger_lane, ledger_lanes>;

template <allocator A>
struct ledger_malloc {
  A heap;
  ledger_warp* warp;
  void operator()() const {
    ledger_lane& lane = (*warp)[simt::thread_id()];
    const std::uint64_t before = simt::round_trips();
    lane.block = heap.malloc(lane.size);
    lane.round_trips = simt::round_trips() - before;
  }
};

template <freeing_allocator A>
struct ledger_free {
  A heap;
  ledger_warp* warp;
  void operator()() const {
    ledger_lane& lane = (*warp)[simt::thread_id()];
    const std::uint64_t before = simt::round_trips();
    heap.free(lane.block);
    lane.round_trips = simt::round_trips() - before;
  }
};

// Runs one call in each lane and adds its costs.
template <class Kernel>
void add_costs(call_costs& costs, std::uint32_t lanes, const ledger_warp& warp,
               const Kernel& kernel) {
  const simt::cost_counts before = simt::counts_of_this_thread();
  launch<cpu>({1, lanes, 1, 0}, kernel);
  const simt::cost_counts after = simt::counts_of_this_thread();
  costs.calls += lanes;
  costs.atomics += after.atomics - before.atomics;
  costs.loads += after.loads - before.loads;
  costs.stores += after.stores - before.stores;
  costs.collectives += after.collectives - before.collectives;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    costs.round_trips += warp[i].round_trips;
    costs.longest = std::max(costs.longest, warp[i].round_trips);
    costs.failed += warp[i].block == nullptr;
  }
}

}  // namespace detail

/// Requires: the pool can serve nine rounds of 32 requests of at most 1 KiB, as the default can.
template <allocator A>
cost_ledger measure_costs(std::uint64_t pool_bytes = std::uint64_t{1} << 20) {
  constexpr unsigned rounds = 8;
  const allocator_sandbox<A> sandbox(std::max<std::uint64_t>(pool_bytes, A::can.min_pool));
  cost_ledger ledger{{cost_case{"lone", 1, {}, {}}, cost_case{"equal", 32, {}, {}},
                      cost_case{"mixed", 32, {}, {}}}};
  for (cost_case& c : ledger.cases) {
    sandbox.reset();
    detail::ledger_warp warp;
    for (std::uint32_t i = 0; i < detail::ledger_lanes; ++i)
      warp[i].size = &c == &ledger.cases[2] ? std::uint64_t{16} << (i % 7) : 64;
    for (unsigned round = 0; round <= rounds; ++round) {
      if (round == 1) c.malloc = c.free = {};  // the first round is the warm-up
      detail::add_costs(c.malloc, c.lanes, warp, detail::ledger_malloc<A>{sandbox.heap(), &warp});
      if constexpr (A::can.frees_one)
        detail::add_costs(c.free, c.lanes, warp, detail::ledger_free<A>{sandbox.heap(), &warp});
    }
    c.free.failed = 0;
    if constexpr (requires { sandbox.heap().drain(); }) sandbox.heap().drain();
  }
  return ledger;
}

}  // namespace quarry

// SPDX-License-Identifier: Apache-2.0
#include <quarry/check/ledger.hpp>
#include <quarry/simt/explore.hpp>
#include <quarry/simt/launch.hpp>

#include <algorithm>
#include <numeric>

namespace quarry {
namespace {

constexpr std::uint32_t ledger_lanes = 32;

struct ledger_lane {
  void* block = nullptr;
  std::uint64_t size = 0;
  std::uint64_t round_trips = 0;
};
using ledger_warp = std::array<ledger_lane, ledger_lanes>;

struct ledger_malloc {
  const sandbox* heap;
  ledger_warp* warp;
  void operator()() const {
    ledger_lane& lane = (*warp)[simt::thread_id()];
    const std::uint64_t before = simt::round_trips();
    lane.block = heap->malloc(lane.size);
    lane.round_trips = simt::round_trips() - before;
  }
};

struct ledger_free {
  const sandbox* heap;
  ledger_warp* warp;
  void operator()() const {
    ledger_lane& lane = (*warp)[simt::thread_id()];
    const std::uint64_t before = simt::round_trips();
    heap->free(lane.block);
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

}  // namespace

std::string per_call(std::uint64_t total, std::uint64_t calls) {
  if (calls == 0) return "-";
  const std::uint64_t common = std::gcd(total, calls);
  const std::string over = std::to_string(total / common);
  return calls == common ? over : over + "/" + std::to_string(calls / common);
}

cost_ledger measure_costs(const sandbox& subject) {
  constexpr unsigned rounds = 8;
  cost_ledger ledger{{cost_case{"lone", 1, {}, {}}, cost_case{"equal", 32, {}, {}},
                      cost_case{"mixed", 32, {}, {}}}};
  for (cost_case& c : ledger.cases) {
    subject.reset();
    ledger_warp warp;
    for (std::uint32_t i = 0; i < ledger_lanes; ++i)
      warp[i].size = &c == &ledger.cases[2] ? std::uint64_t{16} << (i % 7) : 64;
    for (unsigned round = 0; round <= rounds; ++round) {
      if (round == 1) c.malloc = c.free = {};  // the first round is the warm-up
      add_costs(c.malloc, c.lanes, warp, ledger_malloc{&subject, &warp});
      if (subject.can().frees_one) add_costs(c.free, c.lanes, warp, ledger_free{&subject, &warp});
    }
    c.free.failed = 0;
    subject.drain();
  }
  return ledger;
}

}  // namespace quarry

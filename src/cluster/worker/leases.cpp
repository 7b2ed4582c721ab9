// SPDX-License-Identifier: Apache-2.0
// worker: leases. Requested ahead of need, returned when they are not needed.
#include "cluster/worker/state.hpp"

namespace quarry::cluster {

using namespace detail;

/// Waits for a lease. Returns false if the size class has had too few allocations for one.
bool worker::state::obtain_lease(rid region, unsigned units) {
  if (!leases_.is_pending(region, units) && !request_lease(region, units)) return false;
  wait_until(&worker_statistics::waited_for_schedulers,
             [&] { return !leases_.is_pending(region, units); });
  return true;
}

/// Requests a lease without waiting for it: the program uses its last slots in the meantime.
bool worker::state::request_lease(rid region, unsigned units) {
  const node_id owner = scheduler_of(region);
  if (!is_scheduler(owner)) return false;
  const std::uint64_t slots = leases_.next_lease_slots(region, units);
  if (slots == 0) return false;
  serve();
  const std::uint64_t ticket = next_ticket_++;
  pending_leases_[ticket] = {region, units};
  leases_.set_pending(region, units, true);
  post(make_message(owner, lease_request{region, units * default_geometry.slot, slots}, ticket));
  return true;
}

void worker::state::on_lease(const message& m) {
  const auto it = pending_leases_.find(m.ticket);
  if (it == pending_leases_.end()) return;
  const auto [region, units] = it->second;
  pending_leases_.erase(it);
  leases_.set_pending(region, units, false);
  const auto lease = body_of<lease_reply>(m);
  if (!lease) return;
  for (const slab_slots& s : lease->slabs) {
    leases_.add(region, units, s.base, s.mask);
    // The last slot may extend into the next slab.
    link.enable_access({static_cast<std::byte*>(pointer(s.base)),
                        default_geometry.slab + units * default_geometry.slot});
  }
}

/// Returns free slots to the owners of their regions. False: there were none.
bool worker::state::return_leases(const lease_table::select_region& selected, std::uint64_t keep) {
  std::unordered_map<rid, lease_return> returned;
  leases_.return_free_slots(selected, keep,
                            [&](rid region, std::uint64_t base, std::uint64_t mask) {
                              returned[region].slabs.push_back({base, mask});
                            });
  for (auto& [region, slots] : returned) {
    slots.region = region;
    post(make_message(scheduler_of(region), slots));
  }
  return !returned.empty();
}

/// As return_leases, for all regions, after pending leases have arrived.
bool worker::state::return_all_leases() {
  wait_until(&worker_statistics::waited_for_schedulers, [&] { return pending_leases_.empty(); });
  return return_leases([](rid) { return true; }, 0);
}

/// The live leased objects of the region become ordinary objects.
void worker::state::release_objects(rid region) {
  lease_release released{region, {}};
  leases_.release_objects(region, [&](std::uint64_t base, std::uint64_t mask) {
    released.slabs.push_back({base, mask});
  });
  if (!released.slabs.empty()) post(make_message(scheduler_of(region), released));
}

/// Returns all memory that this worker holds and does not use. False: there was none.
bool worker::state::return_unused_memory() {
  if (!options.leases) return false;
  const bool had_frees = !frees_.empty() || unacknowledged_frees_ != 0;
  wait_for_frees();
  return return_all_leases() || had_frees;
}

}  // namespace quarry::cluster

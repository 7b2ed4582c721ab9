// SPDX-License-Identifier: Apache-2.0
// scheduler: leases. Slots lent to workers, their return and their revocation.
#include "cluster/scheduler/state.hpp"

#include <algorithm>
#include <bit>

namespace quarry::cluster::detail {

scheduler::slot scheduler::slot_of(const void* p) const {
  const std::uintptr_t offset = regions_->table().offset_of(p);
  return {slab_table_view<>::slab_at(offset),
          std::uint64_t{1} << offset / default_geometry.slot % default_geometry.units_in_slab()};
}

/// Leases at least one slot, and at most as many as requested.
void scheduler::on(const envelope& e, const lease_request& r, unsigned attempts) {
  auto* region = find(r.region);
  if (region == nullptr) return fail(e, region_status::stale_region);
  if (r.slot_size == 0 || r.slot_size > default_geometry.slab || r.max_slots == 0)
    return fail(e, region_status::too_large);
  const slab_table_view<>& table = regions_->table();
  region_links& links = links_[region->id().number()];
  lease_reply result;
  const auto record = [&](slab_number slab, std::uint64_t mask) {
    result.slabs.push_back({address_of(table.address(slab)), mask});
    if (has(fault::omit_lease_record)) return;
    std::vector<lease_record>& records = links.leases[slab];
    const auto own = std::find_if(records.begin(), records.end(),
                                  [&](const lease_record& l) { return l.holder == e.from; });
    if (own == records.end())
      records.push_back({e.from, mask});
    else
      own->mask |= mask;
  };
  if (region->it->pool.allocate_slots(r.slot_size, r.max_slots, record) == 0)
    return obtain_pages({e, r, 1, 1, own_window(), attempts});
  ++statistics_.served;
  reply(e, result);
}

void scheduler::on(const envelope& e, const lease_return& r) {
  end_leases(e.from, r.region, r.slabs, true);
}

void scheduler::on(const envelope& e, const lease_release& r) {
  end_leases(e.from, r.region, r.slabs, has(fault::free_released_objects));
}

/// Ends the leases on the slots. free_slots: they hold no object, and are freed.
void scheduler::end_leases(node_id holder, rid id, const std::vector<slab_slots>& slabs,
                           bool free_slots) {
  auto* region = find(id);
  region_links* links = region == nullptr ? nullptr : links_of(region->id());
  if (links == nullptr) return;
  const slab_table_view<>& table = regions_->table();
  for (const slab_slots& s : slabs) {
    const slab_number slab = slab_table_view<>::slab_at(table.offset_of(pointer(s.base)));
    const auto it = links->leases.find(slab);
    if (it == links->leases.end()) continue;
    for (lease_record& l : it->second) {
      if (l.holder != holder) continue;
      std::uint64_t ended = l.mask & s.mask;
      l.mask &= ~ended;
      for (; free_slots && ended != 0; ended &= ended - 1)
        regions_->deallocate(table.address(slab) + static_cast<unsigned>(std::countr_zero(ended)) *
                                                       default_geometry.slot);
    }
    std::erase_if(it->second, [](const lease_record& l) { return l.mask == 0 && l.revoking == 0; });
    if (it->second.empty()) links->leases.erase(it);
  }
  return_surplus();
}

/// Tells the holders that other workers have freed leased objects.
void scheduler::revoke(objects_by_holder&& revoked) {
  for (auto& [holder, objects] : revoked) {
    const std::uint64_t ticket = next_ticket_++;
    const lease_revocation notice{std::move(objects)};
    send_to(holder, notice, ticket);
    revocations_[ticket] = {holder, notice.objects};
  }
}

/// The holder has acknowledged: the slots may be reused. The region still exists, since its
/// destruction waits for the same holder, which replies in order.
void scheduler::finish_revocation(const pending_revocation& p) {
  for (const address a : p.objects) {
    revoking_.erase(a);
    const region_result<region_id> id = regions_->region_of(pointer(a));
    if (region_links* links = id ? links_of(*id) : nullptr)
      for (lease_record& l : links->leases[slot_of(pointer(a)).slab])
        if (l.holder == p.holder) --l.revoking;
    regions_->deallocate(pointer(a));
  }
  return_surplus();
}

}  // namespace quarry::cluster::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scheduler: objects: asked for, freed, resized, lent. Part of scheduler.hpp.

#include <quarry/cluster/scheduler.hpp>

namespace quarry::cluster {

// ---- asking -------------------------------------------------------------------------------------

inline void scheduler::on_alloc(message m, unsigned tries) {
  if (m.b == 0) return answer(m, region_status::zero_size);
  if (m.b > options_.room) return answer(m, region_status::too_large);
  if (!std::has_single_bit(m.c) || m.c > page_bytes) return answer(m, region_status::bad_alignment);
  auto* region = find(m.a);
  if (region == nullptr) return answer(m, region_status::stale_region);
  const region_result<void*> got = regions_->allocate(region->id(), m.b, m.c);
  if (got.status == region_status::out_of_memory) {
    const std::uint64_t aligned = m.b + (m.c > default_geometry.slab ? m.c : 0);
    const std::uint64_t pages = ceil_div(aligned, page_bytes);
    return starve({std::move(m), pages, pages, my_window(), tries});
  }
  message a = answer_to(m, got.status);
  a.a = detail::word(got.value);
  ++statistics_.served;
  send(std::move(a));
}

inline void scheduler::on_alloc_bulk(message m, unsigned tries) {
  if (m.b == 0) return answer(m, region_status::zero_size);
  if (m.b > options_.room) return answer(m, region_status::too_large);
  auto* region = find(m.a);
  if (region == nullptr) return answer(m, region_status::stale_region);
  const std::uint64_t each = align_up(m.b, default_geometry.slot);
  if (m.c > options_.room / each) return answer(m, region_status::out_of_memory);
  std::vector<void*> got(m.c);
  const region_status s = regions_->allocate_bulk(region->id(), m.b, got);
  if (s == region_status::out_of_memory)
    return starve(
        {m, ceil_div(m.b, page_bytes), ceil_div(m.c * each, page_bytes) + 1, my_window(), tries});
  message a = answer_to(m, s);
  a.words.reserve(got.size());
  for (const void* p : got) a.words.push_back(detail::word(p));
  ++statistics_.served;
  send(std::move(a));
}

/// As many objects as asked for, or fewer, but one.
inline void scheduler::on_lease(message m, unsigned tries) {
  auto* region = find(m.a);
  if (region == nullptr) return answer(m, region_status::stale_region);
  if (m.b == 0 || m.b > default_geometry.slab || m.c == 0)
    return answer(m, region_status::too_large);
  const slab_table_view<>& table = regions_->table();
  annex& x = annexes_[region->id().number()];
  message a = answer_to(m, region_status::ok);
  a.a = region->it->pool.allocate_slots(m.b, m.c, [&](slab_number slab, std::uint64_t mask) {
    std::vector<loan>& loans = x.loans[slab];
    const auto mine =
        std::find_if(loans.begin(), loans.end(), [&](const loan& l) { return l.holder == m.from; });
    if (has(detail::fault::omit_lease_record))
      loans.clear();
    else if (mine == loans.end())
      loans.push_back({m.from, mask});
    else
      mine->mask |= mask;
    a.words.push_back(detail::word(table.address(slab)));
    a.words.push_back(mask);
  });
  if (a.a == 0) return starve({std::move(m), 1, 1, my_window(), tries});
  ++statistics_.served;
  send(std::move(a));
}

/// A request that was given pages.
inline void scheduler::serve(hungry h) {
  const unsigned tries = h.tries + 1;
  switch (h.request.what) {
    case verb::alloc: return on_alloc(std::move(h.request), tries);
    case verb::alloc_bulk: return on_alloc_bulk(std::move(h.request), tries);
    case verb::lease: return on_lease(std::move(h.request), tries);
    default: return;
  }
}

// ---- freeing ------------------------------------------------------------------------------------

inline region_result<region_id> scheduler::living_object(std::uint64_t address) const {
  const region_result<region_id> id = regions_->region_of(detail::pointer(address));
  if (!id || dying_.contains(id.value.value())) return region_status::not_ours;
  if (regions_->usable_size(detail::pointer(address)) == 0 || revoking_.contains(address))
    return region_status::not_an_object;
  return *id;
}

inline void scheduler::on_free_objects(message m) {
  message a = answer_to(m, region_status::ok);
  std::unordered_map<node, message> elsewhere;
  std::unordered_map<node, std::vector<std::uint64_t>> of_holders;
  const auto refuse_one = [&](std::uint64_t address, region_status s) {
    a.words.push_back(address);
    a.words.push_back(static_cast<std::uint64_t>(s));
  };
  for (const std::uint64_t address : m.words) {
    const node next = m.hops >= most_hops ? no_node : way_to(address);
    if (next == self_) {
      if (const region_status s = free_one(address, of_holders); s == region_status::ok)
        ++a.a;
      else
        refuse_one(address, s);
    } else if (next == no_node) {
      refuse_one(address, region_status::not_ours);
    } else {
      message& part = elsewhere[next];
      part.words.push_back(address);
    }
  }
  for (auto& [holder, addresses] : of_holders) {
    message revoke;
    revoke.what = verb::freed_leased;
    revoke.to = holder;
    revoke.ticket = next_ticket_++;
    revoke.words = addresses;
    revokes_[revoke.ticket] = {holder, std::move(addresses)};
    send(std::move(revoke));
  }
  for (auto& [next, part] : elsewhere) {
    part.what = verb::free_objects;
    part.from = m.from;
    part.to = next;
    part.ticket = m.ticket;
    part.hops = static_cast<std::uint8_t>(m.hops + 1);
    send(std::move(part));
  }
  if (a.a != 0 || !a.words.empty()) {
    ++statistics_.served;
    send(std::move(a));
  }
  return_surplus();
}

/// Objects on loan are only marked, and added to those of which the holder is to be told.
inline region_status scheduler::free_one(
    std::uint64_t address, std::unordered_map<node, std::vector<std::uint64_t>>& of_holders) {
  const region_result<region_id> id = living_object(address);
  if (!id) return id.status;
  if (annex* x = annex_of(*id)) {
    const slot at = slot_of(detail::pointer(address));
    if (const auto it = x->loans.find(at.slab); it != x->loans.end())
      for (loan& l : it->second) {
        if ((l.mask & at.bit) == 0) continue;
        l.mask ^= at.bit;
        if (has(detail::fault::reuse_slot_before_revocation)) break;
        ++l.revoking;
        revoking_.insert(address);
        of_holders[l.holder].push_back(address);
        return region_status::ok;
      }
  }
  return regions_->deallocate(detail::pointer(address));
}

/// The holder of the lease knows that the objects are gone: their slots may be used. A region can not
/// end before that: its holders answer in order, and the end waits for them.
inline void scheduler::revoked(const revoke_wait& wait) {
  for (const std::uint64_t address : wait.addresses) {
    revoking_.erase(address);
    void* p = detail::pointer(address);
    const region_result<region_id> id = regions_->region_of(p);
    annex* x = id ? annex_of(*id) : nullptr;
    if (x != nullptr)
      for (loan& l : x->loans[slot_of(p).slab])
        if (l.holder == wait.holder) --l.revoking;
    regions_->deallocate(p);
  }
  return_surplus();
}

/// Slots that are not on loan any more: free ones are freed here, living objects live on.

inline void scheduler::on_return_leases(const message& m) {
  auto* region = find(m.a);
  annex* x = region == nullptr ? nullptr : annex_of(region->id());
  if (x == nullptr) return;
  const slab_table_view<>& table = regions_->table();
  for (std::size_t i = 0; i + 1 < m.words.size(); i += 2) {
    const slab_number slab = table.slab_at(table.offset_of(detail::pointer(m.words[i])));
    const auto it = x->loans.find(slab);
    if (it == x->loans.end()) continue;
    for (loan& l : it->second) {
      if (l.holder != m.from) continue;
      std::uint64_t back = l.mask & m.words[i + 1];
      l.mask &= ~back;
      if (m.what == verb::release_leases && !has(detail::fault::free_released_objects)) continue;
      for (; back != 0; back &= back - 1)
        regions_->deallocate(table.address(slab) +
                             static_cast<unsigned>(std::countr_zero(back)) * default_geometry.slot);
    }
    std::erase_if(it->second, [](const loan& l) { return l.mask == 0 && l.revoking == 0; });
    if (it->second.empty()) x->loans.erase(it);
  }
  return_surplus();
}

// ---- looking ------------------------------------------------------------------------------------

inline void scheduler::on_resize(message m) {
  if (!is_here(m, m.a)) return;
  const region_result<region_id> id = living_object(m.a);
  message a = answer_to(m, id.status);
  if (id) {
    auto* region = regions_->find(*id);
    a.b = regions_->usable_size(detail::pointer(m.a));
    a.a = name_of(*id) == m.c && region->it->pool.resize(detail::pointer(m.a), m.b) ? 1 : 0;
  }
  ++statistics_.served;
  send(std::move(a));
}

inline void scheduler::on_size_of(message m) {
  if (!is_here(m, m.a)) return;
  const region_result<region_id> id = living_object(m.a);
  message a = answer_to(m, id.status);
  if (id) a.a = regions_->usable_size(detail::pointer(m.a));
  ++statistics_.served;
  send(std::move(a));
}

}  // namespace quarry::cluster

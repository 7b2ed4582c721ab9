// SPDX-License-Identifier: Apache-2.0
// scheduler: objects. Allocation, deallocation, sizes.
#include "cluster/scheduler/state.hpp"

#include <bit>

namespace quarry::cluster::detail {

void scheduler::on(const envelope& e, const allocate_request& r, unsigned attempts) {
  if (r.size == 0) return fail(e, region_status::zero_size);
  if (r.size > options_.capacity) return fail(e, region_status::too_large);
  if (!std::has_single_bit(r.alignment) || r.alignment > page_bytes)
    return fail(e, region_status::bad_alignment);
  auto* region = find(r.region);
  if (region == nullptr) return fail(e, region_status::stale_region);
  const region_result<void*> got = regions_->allocate(region->id(), r.size, r.alignment);
  if (got.status == region_status::out_of_memory) {
    const std::uint64_t slack = r.alignment > default_geometry.slab ? r.alignment : 0;
    const std::uint64_t pages = ceil_div(r.size + slack, page_bytes);
    return obtain_pages({e, r, pages, pages, own_window(), attempts});
  }
  ++statistics_.served;
  if (!got) return fail(e, got.status);
  reply(e, allocate_reply{address_of(*got)});
}

void scheduler::on(const envelope& e, const allocate_bulk_request& r, unsigned attempts) {
  if (r.size == 0) return fail(e, region_status::zero_size);
  if (r.size > options_.capacity) return fail(e, region_status::too_large);
  auto* region = find(r.region);
  if (region == nullptr) return fail(e, region_status::stale_region);
  const std::uint64_t each = align_up(r.size, default_geometry.slot);
  if (r.count > options_.capacity / each) return fail(e, region_status::out_of_memory);
  std::vector<void*> got(r.count);
  const region_status s = regions_->allocate_bulk(region->id(), r.size, got);
  if (s == region_status::out_of_memory)
    return obtain_pages({e, r, ceil_div(r.size, page_bytes),
                         ceil_div(r.count * each, page_bytes) + 1, own_window(), attempts});
  ++statistics_.served;
  if (s != region_status::ok) return fail(e, s);
  allocate_bulk_reply answer;
  answer.objects.reserve(got.size());
  for (const void* p : got) answer.objects.push_back(address_of(p));
  reply(e, answer);
}

/// Serves a request again that has received pages.
void scheduler::serve_again(blocked_request b) {
  const unsigned attempts = b.attempts + 1;
  std::visit(
      [&](const auto& r) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(r)>, page_request>)
          this->on(b.sender, r, attempts);
      },
      b.request);
}

// ---- deallocation -------------------------------------------------------------------------------

region_result<region_id> scheduler::region_of_object(address a) const {
  const region_result<region_id> id = regions_->region_of(pointer(a));
  if (!id || dying_.contains(id->value())) return region_status::not_ours;
  if (regions_->usable_size(pointer(a)) == 0 || revoking_.contains(a))
    return region_status::not_an_object;
  return *id;
}

/// Frees the objects whose pages are here and forwards the others, one message per next hop.
void scheduler::on(const envelope& e, const free_request& r) {
  free_reply result;
  std::unordered_map<node_id, free_request> elsewhere;
  objects_by_holder revoked;
  for (const address a : r.objects) {
    const node_id next = e.hops >= max_hops ? no_node : next_hop_to(a);
    if (next == self_) {
      if (const region_status s = free_object(a, revoked); s == region_status::ok)
        ++result.freed;
      else
        result.failures.push_back({a, s});
    } else if (next == no_node) {
      result.failures.push_back({a, region_status::not_ours});
    } else {
      elsewhere[next].objects.push_back(a);
    }
  }
  revoke(std::move(revoked));
  for (const auto& [next, part] : elsewhere) {
    message forwarded = make_message(next, part, e.ticket);
    forwarded.from = e.from;
    forwarded.hops = static_cast<std::uint8_t>(e.hops + 1);
    send(std::move(forwarded));
  }
  if (result.freed != 0 || !result.failures.empty()) {
    ++statistics_.served;
    reply(e, result);
  }
  return_surplus();
}

/// Frees one object. The slot of a leased object is only marked and added to `revoked`: it is freed
/// when the holder has acknowledged the revocation.
region_status scheduler::free_object(address a, objects_by_holder& revoked) {
  const region_result<region_id> id = region_of_object(a);
  if (!id) return id.status;
  if (region_links* links = links_of(*id)) {
    const slot at = slot_of(pointer(a));
    if (const auto it = links->leases.find(at.slab); it != links->leases.end())
      for (lease_record& l : it->second) {
        if ((l.mask & at.bit) == 0) continue;
        l.mask ^= at.bit;
        if (has(fault::reuse_slot_before_revocation)) break;
        ++l.revoking;
        revoking_.insert(a);
        revoked[l.holder].push_back(a);
        return region_status::ok;
      }
  }
  return regions_->deallocate(pointer(a));
}

// ---- sizes --------------------------------------------------------------------------------------

void scheduler::on(const envelope& e, const resize_request& r) {
  if (!is_local(e, r, r.object)) return;
  const region_result<region_id> id = region_of_object(r.object);
  ++statistics_.served;
  if (!id) return fail(e, id.status);
  void* const p = pointer(r.object);
  resize_reply result;
  result.old_size = regions_->usable_size(p);
  result.in_place = global_id(*id) == r.region && regions_->find(*id)->it->pool.resize(p, r.size);
  reply(e, result);
}

void scheduler::on(const envelope& e, const size_request& r) {
  if (!is_local(e, r, r.object)) return;
  const region_result<region_id> id = region_of_object(r.object);
  ++statistics_.served;
  if (!id) return fail(e, id.status);
  reply(e, size_reply{regions_->usable_size(pointer(r.object))});
}

}  // namespace quarry::cluster::detail

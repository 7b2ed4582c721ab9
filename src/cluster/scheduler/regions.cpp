// SPDX-License-Identifier: Apache-2.0
// scheduler: regions. Placement, creation, destruction, packing, load reports.
#include "cluster/scheduler/state.hpp"

#include <algorithm>

namespace quarry::cluster::detail {

region_tree::node_type* scheduler::find(rid id) const {
  const region_id local = local_id(id);
  if (scheduler_of(id) != self_ || (local.number() == 0 && self_ != 0)) return nullptr;
  if (dying_.contains(local.value())) return nullptr;
  return regions_->find(local);
}

scheduler::region_links* scheduler::links_of(region_id id) {
  const auto it = links_.find(id.number());
  return it == links_.end() ? nullptr : &it->second;
}

const std::vector<rid>& scheduler::remote_children_of(region_id id) const {
  static const std::vector<rid> none;
  const auto it = links_.find(id.number());
  return it == links_.end() ? none : it->second.remote_children;
}

// ---- creation -----------------------------------------------------------------------------------

unsigned scheduler::target_level(std::int64_t hint) const {
  const unsigned lowest = shape_.levels() - 1;
  return hint < 0 || hint > lowest ? lowest : static_cast<unsigned>(hint);
}

std::uint64_t scheduler::load_of(node_id child) const {
  const auto it = loads_.find(child);
  return it == loads_.end() ? 0 : it->second;
}

/// The child with the fewest regions, or the child on the requester's side if its load is at most a
/// quarter and 8 regions higher.
node_id scheduler::choose_child(node_id requester) const {
  node_id best = children_.front();
  for (const node_id c : children_)
    if (load_of(c) < load_of(best)) best = c;
  if (requester == self_ || requester >= shape_.nodes()) return best;
  const node_id near = shape_.next_hop(self_, requester);
  const bool is_below = near != shape_.parent(self_);
  return is_below && load_of(near) <= load_of(best) + load_of(best) / 4 + 8 ? near : best;
}

void scheduler::on(const envelope& e, const create_region_request& r) {
  auto* parent = find(r.parent);
  if (parent == nullptr) return fail(e, region_status::stale_region);
  if (level_ < target_level(r.level_hint)) {
    const std::uint64_t ticket = next_ticket_++;
    creates_[ticket] = {e, r.parent};
    return send_to(choose_child(e.from), create_remote_request{r.parent, r.level_hint, e.from},
                   ticket);
  }
  const region_result<region_id> created = regions_->create_region(parent->id());
  ++statistics_.served;
  if (created)
    reply(e, create_region_reply{global_id(*created)});
  else
    fail(e, created.status);
  report_load();
}

void scheduler::on(const envelope& e, const create_remote_request& r) {
  if (level_ < target_level(r.level_hint)) {
    message down = make_message(choose_child(r.requester), r, e.ticket);
    down.from = e.from;
    return send(std::move(down));
  }
  const region_result<region_id> created = regions_->create_region(root_region);
  if (!created) return fail(e, created.status);
  region_links& links = links_[created->number()];
  links = {};
  links.remote_parent = r.parent;
  links.has_remote_parent = true;
  reply(e, create_region_reply{global_id(*created)});
  report_load();
}

void scheduler::on(const envelope& e, const create_region_reply& r) {
  const auto it = creates_.find(e.ticket);
  if (it == creates_.end()) return;
  const pending_create p = it->second;
  creates_.erase(it);
  finish_create(p, e.status, r.region);
}

/// A child at another scheduler has been created, or could not be.
void scheduler::finish_create(const pending_create& p, region_status s, rid child) {
  ++statistics_.served;
  if (s != region_status::ok) return fail(p.sender, s);
  if (auto* parent = find(p.parent)) {
    links_[parent->id().number()].remote_children.push_back(child);
    return reply(p.sender, create_region_reply{child});
  }
  // The parent was destroyed in the meantime. Ticket 0: no reply to the destruction of the child.
  if (!has(fault::keep_child_of_dead_parent))
    send_to(scheduler_of(child), destroy_region_request{child, true});
  fail(p.sender, region_status::stale_region);
}

// ---- destruction --------------------------------------------------------------------------------

void scheduler::on(const envelope& e, const destroy_region_request& r) {
  if (r.region == root) return fail(e, region_status::is_root);
  auto* top = find(r.region);
  if (top == nullptr) return fail(e, region_status::stale_region);
  const std::uint64_t ticket = next_ticket_++;
  pending_destroy p{e, r, top->id(), {}, 0};
  std::unordered_map<node_id, std::vector<rid>> recalls;
  regions_->for_each_below(*top, [&](region_tree::node_type& n) {
    p.dying.push_back(n.id());
    for (const rid child : remote_children_of(n.id())) {
      ++p.replies;
      send_to(scheduler_of(child), destroy_region_request{child, true}, ticket);
    }
    const region_links* links = links_of(n.id());
    if (links == nullptr || has(fault::omit_lease_recall)) return;
    const rid id = global_id(n.id());
    for (const auto& [slab, records] : links->leases)
      for (const lease_record& l : records) {
        std::vector<rid>& of_holder = recalls[l.holder];
        if (of_holder.empty() || of_holder.back() != id) of_holder.push_back(id);
      }
  });
  if (!has(fault::serve_dying_region))
    for (const region_id id : p.dying) dying_.insert(id.value());
  for (auto& [holder, regions] : recalls) {
    ++p.replies;
    send_to(holder, lease_recall{std::move(regions)}, ticket);
  }
  ++p.replies;  // balanced by the call below
  destroys_[ticket] = std::move(p);
  count_destroyed(ticket);
}

/// One reply fewer is outstanding; after the last one, the region is destroyed.
void scheduler::count_destroyed(std::uint64_t ticket) {
  const auto it = destroys_.find(ticket);
  if (--it->second.replies != 0) return;
  const pending_destroy p = std::move(it->second);
  destroys_.erase(it);
  const region_links* links = links_of(p.top);
  if (links != nullptr && links->has_remote_parent && !p.request.by_parent) {
    const remote_child_destroyed notice{p.request.region, links->remote_parent};
    const node_id owner = scheduler_of(links->remote_parent);
    if (owner == self_)
      on(p.sender, notice);
    else
      send_to(owner, notice);
  }
  for (const region_id id : p.dying) {
    dying_.erase(id.value());
    links_.erase(id.number());
  }
  const region_status s = regions_->destroy_region(p.top);
  ++statistics_.served;
  if (p.sender.ticket != 0) fail(p.sender, s);
  report_load();
  return_surplus();
}

void scheduler::on(const envelope&, const remote_child_destroyed& r) {
  if (scheduler_of(r.parent) != self_ || regions_->find(local_id(r.parent)) == nullptr) return;
  if (region_links* links = links_of(local_id(r.parent)))
    std::erase(links->remote_children, r.child);
}

// ---- packing ------------------------------------------------------------------------------------

/// Collects the ranges of the region and its descendants here, and of its remote descendants.
void scheduler::on(const envelope& e, const pack_request& r) {
  auto* top = find(r.region);
  if (top == nullptr) return fail(e, region_status::stale_region);
  const std::uint64_t ticket = next_ticket_++;
  pending_pack p{e, {}, 1};
  regions_->for_each_below(*top, [&](region_tree::node_type& n) {
    const packed_region packed = pack_one(*regions_, n);
    p.reply.live_bytes += packed.live_bytes;
    p.reply.regions.push_back(global_id(n.id()));
    for (const packed_range& range : packed.ranges)
      p.reply.ranges.push_back({address_of(range.address), range.size});
    if (has(fault::omit_remote_packing)) return;
    for (const rid child : remote_children_of(n.id())) {
      ++p.replies;
      send_to(scheduler_of(child), pack_request{child}, ticket);
    }
  });
  packs_[ticket] = std::move(p);
  count_packed(ticket, {});
}

void scheduler::on(const envelope& e, const pack_reply& r) {
  if (packs_.contains(e.ticket)) count_packed(e.ticket, r);
}

/// `part` is empty if the remote child was destroyed in the meantime.
void scheduler::count_packed(std::uint64_t ticket, const pack_reply& part) {
  const auto it = packs_.find(ticket);
  pending_pack& p = it->second;
  p.reply.live_bytes += part.live_bytes;
  p.reply.regions.insert(p.reply.regions.end(), part.regions.begin(), part.regions.end());
  p.reply.ranges.insert(p.reply.ranges.end(), part.ranges.begin(), part.ranges.end());
  if (--p.replies != 0) return;
  ++statistics_.served;
  reply(p.sender, p.reply);
  packs_.erase(it);
}

// ---- load ---------------------------------------------------------------------------------------

std::uint64_t scheduler::load() const {
  std::uint64_t sum = regions_->regions() - 1;
  for (const auto& [child, regions] : loads_) sum += regions;
  return sum;
}

/// Reports to the parent when the last report is wrong by the threshold of the options.
void scheduler::report_load() {
  if (self_ == 0) return;
  const std::uint64_t now = load();
  const std::uint64_t error = now > reported_load_ ? now - reported_load_ : reported_load_ - now;
  if (error == 0 || error < options_.tuning.load_change) return;
  const auto last = static_cast<double>(reported_load_);
  if (static_cast<double>(error) < options_.tuning.load_fraction * last) return;
  reported_load_ = now;
  send_to(shape_.parent(self_), load_report{now});
}

}  // namespace quarry::cluster::detail

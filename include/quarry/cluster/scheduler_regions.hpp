// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scheduler: regions: where they are made, how they end, what they pack into. Part of scheduler.hpp.

#include <quarry/cluster/scheduler.hpp>

namespace quarry::cluster {

inline region_tree::node_type* scheduler::find(rid id) const {
  const region_id local = local_id(id);
  if (scheduler_of(id) != self_ || (local.number() == 0 && self_ != 0)) return nullptr;
  if (dying_.contains(local.value())) return nullptr;
  return regions_->find(local);
}

// ---- making -------------------------------------------------------------------------------------

inline unsigned scheduler::target_level(std::uint64_t hint) const {
  const unsigned bottom = shape_.levels() - 1;
  const auto level = static_cast<std::int64_t>(hint);
  return level < 0 || level > bottom ? bottom : static_cast<unsigned>(level);
}

/// The child with the fewest regions, or the one on the asking worker's side if it has few more.
inline node scheduler::choose_child(node asking) const {
  node best = children_.front();
  for (const node c : children_)
    if (load_of(c) < load_of(best)) best = c;
  const node near = shape_.next_hop(self_, asking);
  const bool is_below = near != shape_.parent(self_);
  return is_below && load_of(near) <= load_of(best) + load_of(best) / 4 + 8 ? near : best;
}

inline void scheduler::on_create(message m) {
  auto* parent = find(m.a);
  if (parent == nullptr) return answer(m, region_status::stale_region);
  if (level_ < target_level(m.b)) {
    message down;
    down.what = verb::adopt;
    down.to = choose_child(m.from);
    down.ticket = next_ticket_++;
    down.a = m.a;
    down.b = m.b;
    down.c = m.from;
    creates_[down.ticket] = {std::move(m)};
    return send(std::move(down));
  }
  const region_result<region_id> made = regions_->create_region(parent->id());
  message a = answer_to(m, made.status);
  if (made) a.a = name_of(*made);
  ++statistics_.served;
  send(std::move(a));
  report_load();
}

inline void scheduler::on_adopt(message m) {
  if (level_ < target_level(m.b)) {
    m.to = choose_child(static_cast<node>(m.c));
    return send(std::move(m));
  }
  const region_result<region_id> made = regions_->create_region(root_region);
  message a = answer_to(m, made.status);
  if (made) {
    annex& x = annexes_[made.value.number()];
    x = {};
    x.remote_parent = m.a;
    x.has_remote_parent = true;
    a.a = name_of(*made);
  }
  send(std::move(a));
  report_load();
}

inline void scheduler::created(create_wait wait, const message& a) {
  message reply = answer_to(wait.request, a.status);
  if (a.status == region_status::ok) {
    if (auto* parent = find(wait.request.a)) {
      annexes_[parent->id().number()].remote_children.push_back(a.a);
      reply.a = a.a;
    } else {  // freed meanwhile
      reply.status = region_status::stale_region;
      if (has(detail::fault::keep_child_of_dead_parent)) return send(std::move(reply));
      message undo;
      undo.what = verb::free_region;
      undo.to = scheduler_of(a.a);
      undo.a = a.a;
      undo.b = 1;
      send(std::move(undo));
    }
  }
  ++statistics_.served;
  send(std::move(reply));
}

// ---- ending -------------------------------------------------------------------------------------

inline unsigned scheduler::ask_remote_children(region_id parent, verb what, std::uint64_t ticket) {
  const annex* x = annex_of(parent);
  if (x == nullptr) return 0;
  for (const rid child : x->remote_children) {
    message down;
    down.what = what;
    down.to = scheduler_of(child);
    down.ticket = ticket;
    down.a = child;
    down.b = 1;  // for free_region: the owner of the parent asks
    send(std::move(down));
  }
  return static_cast<unsigned>(x->remote_children.size());
}

inline void scheduler::on_free_region(message m) {
  if (m.a == root) return answer(m, region_status::is_root);
  auto* top = find(m.a);
  if (top == nullptr) return answer(m, region_status::stale_region);
  const std::uint64_t ticket = next_ticket_++;
  free_wait wait;
  wait.top = top->id();
  std::unordered_map<node, std::vector<std::uint64_t>> recalls;
  regions_->for_each_below(*top, [&](region_tree::node_type& n) {
    wait.dying.push_back(n.id());
    wait.answers += ask_remote_children(n.id(), verb::free_region, ticket);
    const annex* x = annex_of(n.id());
    if (x == nullptr || has(detail::fault::omit_lease_recall)) return;
    for (const auto& [slab, loans] : x->loans)
      for (const loan& l : loans) {
        auto& of_holder = recalls[l.holder];
        if (of_holder.empty() || of_holder.back() != name_of(n.id()))
          of_holder.push_back(name_of(n.id()));
      }
  });
  if (!has(detail::fault::serve_dying_region))
    for (const region_id id : wait.dying) dying_.insert(id.value());
  for (auto& [holder, regions] : recalls) {
    message recall;
    recall.what = verb::recall_leases;
    recall.to = holder;
    recall.ticket = ticket;
    recall.words = std::move(regions);
    ++wait.answers;
    send(std::move(recall));
  }
  wait.request = std::move(m);
  ++wait.answers;
  frees_[ticket] = std::move(wait);
  one_freed(ticket);
}

inline void scheduler::one_freed(std::uint64_t ticket) {
  const auto it = frees_.find(ticket);
  if (--it->second.answers != 0) return;
  free_wait wait = std::move(it->second);
  frees_.erase(it);
  const annex* x = annex_of(wait.top);
  if (x != nullptr && x->has_remote_parent && wait.request.b == 0) {
    message up;
    up.what = verb::disown;
    up.to = scheduler_of(x->remote_parent);
    up.a = wait.request.a;
    up.b = x->remote_parent;
    if (up.to == self_)
      on_disown(up);
    else
      send(std::move(up));
  }
  for (const region_id id : wait.dying) {
    dying_.erase(id.value());
    annexes_.erase(id.number());
  }
  const region_status s = regions_->destroy_region(wait.top);
  ++statistics_.served;
  // One that nobody waits for was made for a parent that had died.
  if (wait.request.ticket != 0) answer(wait.request, s);
  report_load();
  return_surplus();
}

inline void scheduler::on_disown(const message& m) {
  if (scheduler_of(m.b) != self_ || regions_->find(local_id(m.b)) == nullptr) return;
  if (annex* x = annex_of(local_id(m.b))) std::erase(x->remote_children, m.a);
}

// ---- packing ------------------------------------------------------------------------------------

/// The ranges of each region here, then what the owners of remote descendants say.
inline void scheduler::on_pack(message m) {
  auto* top = find(m.a);
  if (top == nullptr) return answer(m, region_status::stale_region);
  const std::uint64_t ticket = next_ticket_++;
  pack_wait wait;
  wait.reply = answer_to(m, region_status::ok);
  regions_->for_each_below(*top, [&](region_tree::node_type& n) {
    const packed_region packed = pack_one(*regions_, n);
    wait.reply.a += packed.live_bytes;
    for (const packed_range& r : packed.ranges) {
      wait.reply.words.push_back(detail::word(r.address));
      wait.reply.words.push_back(r.size);
    }
    wait.reply.words.insert(wait.reply.words.end(), {name_of(n.id()), 0});
    if (!has(detail::fault::omit_remote_packing))
      wait.answers += ask_remote_children(n.id(), verb::pack, ticket);
  });
  wait.request = std::move(m);
  ++wait.answers;
  packs_[ticket] = std::move(wait);
  one_packed(ticket, {});
}

inline void scheduler::one_packed(std::uint64_t ticket, const message& a) {
  const auto it = packs_.find(ticket);
  message& reply = it->second.reply;
  if (a.status == region_status::ok) {  // else the child was freed meanwhile
    reply.a += a.a;
    reply.words.insert(reply.words.end(), a.words.begin(), a.words.end());
  }
  if (--it->second.answers != 0) return;
  ++statistics_.served;
  send(std::move(reply));
  packs_.erase(it);
}

inline void scheduler::on_describe(const message& m) {
  auto* n = find(m.a);
  if (n == nullptr) return answer(m, region_status::stale_region);
  const region_statistics s = regions_->statistics(n->id()).value;
  message reply = answer_to(m, region_status::ok);
  reply.a = s.pool.objects;
  reply.b = s.pool.live_bytes;
  reply.c = s.held_slabs * default_geometry.slab;
  ++statistics_.served;
  send(std::move(reply));
}

// ---- load ---------------------------------------------------------------------------------------

inline std::uint64_t scheduler::load() const {
  std::uint64_t sum = regions_->regions() - 1;
  for (const auto& [child, regions] : loads_) sum += regions;
  return sum;
}

/// The parent is told when it is wrong by more than an eighth.
inline void scheduler::report_load() {
  if (self_ == 0) return;
  const std::uint64_t now = load();
  const std::uint64_t off = now > reported_load_ ? now - reported_load_ : reported_load_ - now;
  if (off < 4 || off * 8 < reported_load_) return;
  reported_load_ = now;
  message up;
  up.what = verb::load;
  up.to = shape_.parent(self_);
  up.a = now;
  send(std::move(up));
}

}  // namespace quarry::cluster

// SPDX-License-Identifier: Apache-2.0
// scheduler: construction, dispatch of messages, routing by address, invariants.
#include "cluster/scheduler/state.hpp"

#include <algorithm>

namespace quarry::cluster::detail {

scheduler::scheduler(const shape& tree, node_id self, const scheduler_options& options)
    : shape_(tree),
      self_(self),
      options_(options),
      children_(tree.children(self)),
      level_(tree.level(self)) {
  if (tree.schedulers() > max_schedulers)
    throw error("a cluster has at most " + std::to_string(max_schedulers) + " schedulers, not " +
                std::to_string(tree.schedulers()));
  if (options.capacity == 0 || options.capacity % page_bytes != 0 || options.base % page_bytes != 0)
    throw error("the address space of a cluster consists of whole pages of " +
                std::to_string(page_bytes) + " bytes");
  const std::uint64_t window = std::min(options.capacity, window_bytes);
  windows_ = options.capacity / window;
  tree_options local;
  local.range = window;
  local.metadata = std::max(window / 64, std::uint64_t{1} << 28);  // regions need metadata, too
  local.where = pointer(options.base + own_window() * window);
  local.threads = sharing::one_thread;
  local.addresses_only = true;
  local.most_generations = max_generations;
  regions_ = std::make_unique<region_tree>(local);
  if (self == 0) pages_.add({0, options.capacity / page_bytes});
  for (node_id s = 0; s < tree.schedulers(); ++s) {
    node_id above = s;
    while (above > self) above = tree.parent(above);
    if (above != self) continue;
    reserve* r = reserve_of(s % windows_);
    if (r == nullptr) r = &reserves_.emplace_back(reserve{s % windows_});
    r->pages += options.tuning.reserve_pages;
    r->low += std::min(options.tuning.low_pages, options.tuning.reserve_pages);
  }
}

scheduler_statistics scheduler::statistics() const {
  scheduler_statistics s = statistics_;
  s.regions = regions_->regions() - (self_ == 0 ? 0 : 1);  // one local root is the cluster's root
  return s;
}

std::uint64_t scheduler::remote_children() const {
  std::uint64_t sum = 0;
  for (const auto& [number, links] : links_) sum += links.remote_children.size();
  return sum;
}

std::uint64_t scheduler::regions_with_remote_parent() const {
  std::uint64_t sum = 0;
  for (const auto& [number, links] : links_) sum += links.has_remote_parent ? 1 : 0;
  return sum;
}

bool scheduler::is_quiescent() const {
  return creates_.empty() && destroys_.empty() && page_waits_.empty() && recalls_.empty() &&
         packs_.empty() && revoking_.empty();
}

std::string scheduler::check_invariants() const {
  const std::string name = "scheduler " + std::to_string(self_) + ": ";
  if (std::string broken = pages_.check_invariants(); !broken.empty()) return name + broken;
  if (std::string broken = regions_->check_invariants(); !broken.empty()) return name + broken;
  if (!is_quiescent()) return name + "an operation still waits for a reply";
  if (!dying_.empty()) return name + "a region is still being destroyed";
  return {};
}

// ---- dispatch -----------------------------------------------------------------------------------

void scheduler::send(message m) {
  if (m.from == no_node) m.from = self_;
  out_->push_back(std::move(m));
}

void scheduler::on_malformed(const envelope& e) {
  ++statistics_.malformed;
  fail(e, region_status::malformed_message);
}

template <class Body>
void scheduler::dispatch(const message& m) {
  if (const std::optional<Body> body = body_of<Body>(m))
    on(m, *body);
  else
    on_malformed(m);
}

void scheduler::receive(message m, std::vector<message>& out) {
  out_ = &out;
  ++statistics_.messages;
  if (m.to != self_) {
    ++statistics_.forwarded;
    return send(std::move(m));
  }
  switch (m.kind) {
    case message_kind::acknowledgement: return on_acknowledgement(m);
    case message_kind::create_region_request: return dispatch<create_region_request>(m);
    case message_kind::create_region_reply: return dispatch<create_region_reply>(m);
    case message_kind::destroy_region_request: return dispatch<destroy_region_request>(m);
    case message_kind::allocate_request: return dispatch<allocate_request>(m);
    case message_kind::allocate_bulk_request: return dispatch<allocate_bulk_request>(m);
    case message_kind::free_request: return dispatch<free_request>(m);
    case message_kind::resize_request: return dispatch<resize_request>(m);
    case message_kind::size_request: return dispatch<size_request>(m);
    case message_kind::pack_request: return dispatch<pack_request>(m);
    case message_kind::pack_reply: return dispatch<pack_reply>(m);
    case message_kind::barrier_request: return dispatch<barrier_request>(m);
    case message_kind::finish_request: return dispatch<finish_request>(m);
    case message_kind::finish_reply: return dispatch<finish_reply>(m);
    case message_kind::create_remote_request: return dispatch<create_remote_request>(m);
    case message_kind::remote_child_destroyed: return dispatch<remote_child_destroyed>(m);
    case message_kind::page_request: return dispatch<page_request>(m);
    case message_kind::page_grant: return dispatch<page_grant>(m);
    case message_kind::page_return: return dispatch<page_return>(m);
    case message_kind::page_recall: return dispatch<page_recall>(m);
    case message_kind::load_report: return dispatch<load_report>(m);
    case message_kind::progress_report: return dispatch<progress_report>(m);
    case message_kind::lease_request: return dispatch<lease_request>(m);
    case message_kind::lease_return: return dispatch<lease_return>(m);
    case message_kind::lease_release: return dispatch<lease_release>(m);
    // Replies and messages for workers only.
    case message_kind::allocate_reply:
    case message_kind::allocate_bulk_reply:
    case message_kind::free_reply:
    case message_kind::resize_reply:
    case message_kind::size_reply:
    case message_kind::lease_reply:
    case message_kind::lease_recall:
    case message_kind::lease_revocation:
    case message_kind::transfer_offer:
    case message_kind::transfer_reply:
    case message_kind::page_exchange: break;
  }
  ++statistics_.malformed;
}

void scheduler::on_acknowledgement(const message& m) {
  const std::uint64_t t = m.ticket;
  if (const auto c = creates_.find(t); c != creates_.end()) {
    const pending_create p = c->second;
    creates_.erase(c);
    const bool failed = m.status != region_status::ok;
    return finish_create(p, failed ? m.status : region_status::malformed_message, root);
  }
  if (destroys_.contains(t)) return count_destroyed(t);
  if (packs_.contains(t)) return count_packed(t, {});
  if (page_waits_.contains(t) || recalls_.contains(t)) return count_recalled(t);
  if (const auto r = revocations_.find(t); r != revocations_.end()) {
    const pending_revocation p = std::move(r->second);
    revocations_.erase(r);
    return finish_revocation(p);
  }
  if (t == collective_ticket && m.from == shape_.parent(self_)) end_barrier();
}

// ---- routing by address -------------------------------------------------------------------------

node_id scheduler::next_hop_to(address a) const {
  if (a < options_.base || a - options_.base >= options_.capacity) return no_node;
  const page_table::lookup_result page = pages_.find((a - options_.base) / page_bytes);
  if (page.known) return page.holder;
  return self_ == 0 ? no_node : shape_.parent(self_);
}

template <class Body>
bool scheduler::is_local(const envelope& e, const Body& body, address a) {
  const node_id next = e.hops >= max_hops ? no_node : next_hop_to(a);
  if (next == self_) return true;
  if (next == no_node) {
    fail(e, region_status::not_ours);
  } else {
    message forwarded = make_message(next, body, e.ticket);
    forwarded.from = e.from;
    forwarded.hops = static_cast<std::uint8_t>(e.hops + 1);
    send(std::move(forwarded));
  }
  return false;
}
template bool scheduler::is_local(const envelope&, const resize_request&, address);
template bool scheduler::is_local(const envelope&, const size_request&, address);

}  // namespace quarry::cluster::detail

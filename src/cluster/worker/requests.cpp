// SPDX-License-Identifier: Apache-2.0
// worker: the public calls, requests and replies, regions, collective calls.
#include "cluster/worker/state.hpp"

namespace quarry::cluster {

using namespace detail;

// ---- public calls -------------------------------------------------------------------------------

worker::worker(detail::link& l, worker_options options)
    : state_(std::make_unique<state>(l, options)), local_offset_(l.local_offset()) {}
worker::~worker() = default;

unsigned worker::number() const { return state_->link.tree().worker_number(state_->link.self()); }
unsigned worker::count() const { return state_->link.tree().workers(); }
const shape& worker::tree() const { return state_->link.tree(); }

region_result<rid> worker::create_region(rid parent, int level_hint) {
  return state_->create_region(parent, level_hint);
}
region_status worker::destroy_region(rid id) { return state_->destroy_region(id); }

region_result<packed_region> worker::pack(rid region) {
  const region_result<pack_reply> reply = state_->pack(region);
  if (!reply) return reply.status;
  packed_region packed;
  for (const address_run& r : reply->ranges)
    packed.ranges.push_back({static_cast<std::byte*>(pointer(r.base)), r.size});
  join_ranges(packed);
  packed.live_bytes = reply->live_bytes;
  return packed;
}

region_status worker::discard(rid region) {
  const region_result<packed_region> packed = pack(region);
  if (!packed) return packed.status;
  for (const packed_range& r : packed->ranges) state_->link.discard(r);
  return region_status::ok;
}

region_status worker::send(unsigned peer, std::span<const rid> regions,
                           std::span<void* const> objects) {
  return state_->send(peer, regions, objects, false);
}
region_status worker::receive(unsigned peer, std::span<rid> regions, std::span<void*> objects) {
  return state_->receive(peer, regions, objects, false);
}
region_status worker::exchange(unsigned peer, std::span<const rid> outgoing,
                               std::span<rid> incoming) {
  return state_->exchange(peer, outgoing, incoming);
}
region_status worker::hand_over(unsigned peer, std::span<const rid> regions) {
  state_->return_all_leases();  // The memory of the free slots moves to the peer.
  return state_->send(peer, regions, {}, true);
}
region_status worker::take_over(unsigned peer, std::span<rid> regions) {
  return state_->receive(peer, regions, {}, true);
}

void worker::barrier() { state_->barrier(); }
leaks worker::finish() { return state_->finish(); }
void worker::serve() { state_->serve(); }
region_status worker::flush() { return state_->flush(); }

bool worker::shares_memory_with(unsigned peer) const {
  return state_->link.shares_memory_with(tree().worker(peer));
}
double worker::now() const { return state_->link.now(); }
void worker::advance_time(double seconds) { state_->link.advance_time(seconds); }
const worker_statistics& worker::statistics() const { return state_->statistics; }

// ---- requests and replies -----------------------------------------------------------------------

void worker::state::serve() {
  message m;
  while (link.try_receive(m)) handle(std::move(m));
}

void worker::state::post(message m) {
  ++statistics.messages;
  m.from = link.self();
  link.post(std::move(m));
}

/// Sends a request and returns its reply.
message worker::state::exchange_messages(message m) {
  serve();
  if (options.reports) report_progress();
  m.ticket = awaited_ticket_ = next_ticket_++;
  post(std::move(m));
  wait_until(&worker_statistics::waited_for_schedulers, [&] { return awaited_ticket_ == 0; });
  return std::move(reply_);
}

/// Sends a report at most once a second.
void worker::state::report_progress() {
  const double now = link.now();
  if (now - last_report_ < 1) return;
  last_report_ = now;
  post(make_message(0, progress_report{statistics.allocations - reported_.allocations,
                                       statistics.calls - reported_.calls,
                                       statistics.messages - reported_.messages}));
  reported_ = statistics;
}

void worker::state::handle(message m) {
  switch (m.kind) {
    case message_kind::transfer_offer: return offers_.push_back(std::move(m));
    case message_kind::transfer_reply: return replies_.push_back(std::move(m));
    default: break;
  }
  ++statistics.messages;
  switch (m.kind) {
    case message_kind::lease_recall: {
      const auto recall = body_of<lease_recall>(m);
      if (recall && options.fault != fault::ignore_lease_recall)
        for (const rid region : recall->regions) leases_.drop_region(region);
      const region_status s = recall ? region_status::ok : region_status::malformed_message;
      return post(make_reply(link.self(), m, s, acknowledgement{}));
    }
    case message_kind::lease_revocation: {
      const auto revocation = body_of<lease_revocation>(m);
      if (revocation)
        for (const address a : revocation->objects) leases_.revoke(pointer(a));
      const region_status s = revocation ? region_status::ok : region_status::malformed_message;
      return post(make_reply(link.self(), m, s, acknowledgement{}));
    }
    default: break;
  }
  if (m.ticket == frees_ticket) return on_frees(m);
  if (m.ticket == awaited_ticket_) {
    reply_ = std::move(m);
    awaited_ticket_ = 0;
  } else {
    on_lease(m);
  }
}

// ---- regions ------------------------------------------------------------------------------------

region_result<rid> worker::state::create_region(rid parent, int level_hint) {
  ++statistics.calls;
  const auto reply = request_owner(parent, create_region_request{parent, level_hint});
  if (!reply) return reply.status;
  return reply->region;
}

region_status worker::state::destroy_region(rid id) {
  ++statistics.calls;
  wait_for_frees();
  return request_owner(id, destroy_region_request{id}).status;
}

region_result<pack_reply> worker::state::pack(rid region) {
  ++statistics.calls;
  return request_owner(region, pack_request{region});
}

// ---- collective calls ---------------------------------------------------------------------------

void worker::state::barrier() {
  wait_for_frees();
  (void)request(parent(), barrier_request{});
}

leaks worker::state::finish() {
  wait_for_frees();
  return_all_leases();
  barrier();
  const auto left = request(parent(), finish_request{});
  return {left->regions, left->objects, left->bytes};
}

}  // namespace quarry::cluster

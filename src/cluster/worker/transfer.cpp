// SPDX-License-Identifier: Apache-2.0
// worker: transfers to other workers.
//
// A sender offers a transfer: regions, objects and their address ranges. The receiver compares the
// offer with what it expects, prepares its memory, and accepts or rejects; both sides return the
// same status. The ticket of an offer is a checksum of its body. The sender then sends the bytes,
// unless the receiver has them by shared memory. A sender that cannot pack its regions offers the
// status of that failure, so that the receiver does not wait for ever.
#include "cluster/worker/state.hpp"

#include <algorithm>

namespace quarry::cluster {

using namespace detail;

namespace {

lease_table::select_region is_one_of(std::span<const rid> regions) {
  return [regions](rid r) { return std::find(regions.begin(), regions.end(), r) != regions.end(); };
}

/// FNV-1a over words. Detects an offer that was damaged; it is no protection against forgery.
std::uint64_t checksum(std::span<const std::uint64_t> words) {
  std::uint64_t h = 0xcbf2'9ce4'8422'2325u;
  for (const std::uint64_t w : words) h = (h ^ w) * 0x0000'0100'0000'01b3u;
  return h;
}

packed_region joined(const std::vector<address_run>& runs) {
  packed_region all;
  for (const address_run& r : runs)
    if (r.size != 0) all.ranges.push_back({static_cast<std::byte*>(pointer(r.base)), r.size});
  join_ranges(all);
  return all;
}

}  // namespace

bool worker::state::is_peer(unsigned peer) const {
  return peer < link.tree().workers() && link.tree().worker(peer) != link.self();
}

region_result<worker::state::outgoing> worker::state::gather(std::span<const rid> regions,
                                                             std::span<void* const> objects) {
  outgoing all;
  all.regions.assign(regions.begin(), regions.end());
  for (const rid region : regions) {
    const region_result<pack_reply> packed = pack(region);
    if (!packed) return packed.status;
    all.ranges.insert(all.ranges.end(), packed->ranges.begin(), packed->ranges.end());
    // Objects that are sent away are likely to be freed by other workers.
    for (const rid inside : packed->regions) release_objects(inside);
  }
  for (const void* object : objects) {
    const region_result<std::size_t> size = usable_size(object);
    if (!size) return size.status;
    all.objects.push_back(address_of(object));
    all.ranges.push_back({address_of(object), *size});
  }
  return all;
}

void worker::state::post_offer(node_id peer, const region_result<outgoing>& gathered,
                               bool hand_over) {
  transfer_offer offer;
  if (gathered) {
    offer.regions = gathered->regions;
    offer.objects = gathered->objects;
    offer.ranges = gathered->ranges;
  }
  offer.hand_over = hand_over;
  if (gathered && link.shares_memory_with(peer))
    if (auto files = link.export_ranges(joined(offer.ranges).ranges)) {
      offer.shares_memory = true;
      offer.files = *std::move(files);
    }
  message m = make_message(peer, offer);
  m.status = gathered.status;
  m.ticket = checksum(m.body);
  m.from = link.self();
  link.post(std::move(m));
}

/// Removes the first message of the peer from the queue and returns it.
std::optional<message> worker::state::extract(std::deque<message>& queue, node_id peer) {
  const auto it =
      std::find_if(queue.begin(), queue.end(), [&](const message& q) { return q.from == peer; });
  if (it == queue.end()) return {};
  message m = std::move(*it);
  queue.erase(it);
  return m;
}

/// Compares an offer with what this worker expects, fills in open entries, and replies.
worker::state::incoming worker::state::examine_offer(const message& m, std::span<rid> regions,
                                                     std::span<void*> objects, bool hand_over) {
  incoming in;
  in.status = m.status;
  const std::optional<transfer_offer> offer = body_of<transfer_offer>(m);
  if (in.status == region_status::ok) {
    if (!offer || m.ticket != checksum(m.body))
      in.status = region_status::malformed_message;
    else if (offer->regions.size() != regions.size() || offer->objects.size() != objects.size() ||
             offer->hand_over != hand_over)
      in.status = region_status::mismatch;
  }
  for (std::size_t i = 0; in.status == region_status::ok && i < regions.size(); ++i)
    if (regions[i] != root && regions[i] != offer->regions[i]) in.status = region_status::mismatch;
  for (std::size_t i = 0; in.status == region_status::ok && i < objects.size(); ++i)
    if (objects[i] != nullptr && address_of(objects[i]) != offer->objects[i])
      in.status = region_status::mismatch;
  if (in.status == region_status::ok) {
    std::copy(offer->regions.begin(), offer->regions.end(), regions.begin());
    std::transform(offer->objects.begin(), offer->objects.end(), objects.begin(), pointer);
    in.ranges = joined(offer->ranges).ranges;
    if (offer->shares_memory)
      in.in_place = hand_over ? link.map_shared(m.from, offer->files, in.ranges)
                              : link.copy_shared(offer->files, in.ranges);
    if (!in.in_place && !in.ranges.empty()) in.bytes = link.receive_bytes(m.from, in.ranges);
  }
  link.post(make_reply(link.self(), m, in.status, transfer_reply{in.in_place}));
  return in;
}

region_status worker::state::send(unsigned peer, std::span<const rid> regions,
                                  std::span<void* const> objects, bool hand_over) {
  if (!is_peer(peer)) return region_status::no_such_worker;
  if (options.fault != fault::defer_frees) wait_for_frees();
  return_leases(is_one_of(regions), 0);  // Otherwise free slots would be packed as well.
  const node_id to = link.tree().worker(peer);
  const region_result<outgoing> gathered = gather(regions, objects);
  post_offer(to, gathered, hand_over);
  std::optional<message> m;
  wait_until(&worker_statistics::waited_for_workers,
             [&] { return (m = extract(replies_, to)).has_value(); });
  if (m->status != region_status::ok) return m->status;
  if (!gathered) return gathered.status;
  const auto reply = body_of<transfer_reply>(*m);
  if (!reply) return region_status::malformed_message;
  const packed_region packed = joined(gathered->ranges);
  statistics.bytes_sent += packed.packed_bytes;
  if (!reply->in_place && !packed.ranges.empty()) {
    const auto bytes = link.send_bytes(to, packed.ranges);
    wait_until(&worker_statistics::waited_for_workers, [&] { return bytes->finished(); });
  }
  if (hand_over) link.give_up(packed.ranges, reply->in_place);
  return region_status::ok;
}

region_status worker::state::receive(unsigned peer, std::span<rid> regions,
                                     std::span<void*> objects, bool hand_over) {
  if (!is_peer(peer)) return region_status::no_such_worker;
  const node_id from = link.tree().worker(peer);
  std::optional<message> m;
  wait_until(&worker_statistics::waited_for_workers,
             [&] { return (m = extract(offers_, from)).has_value(); });
  const incoming in = examine_offer(*m, regions, objects, hand_over);
  if (in.bytes)
    wait_until(&worker_statistics::waited_for_workers, [&] { return in.bytes->finished(); });
  return in.status;
}

region_status worker::state::exchange(unsigned peer, std::span<const rid> out_regions,
                                      std::span<rid> in_regions) {
  if (!is_peer(peer)) return region_status::no_such_worker;
  wait_for_frees();
  return_leases(is_one_of(out_regions), 0);
  const node_id other = link.tree().worker(peer);
  const region_result<outgoing> gathered = gather(out_regions, {});
  post_offer(other, gathered, false);
  const packed_region packed = gathered ? joined(gathered->ranges) : packed_region{};
  std::optional<message> offer, reply;
  incoming in;
  std::unique_ptr<transfer> out;
  region_status status = region_status::ok;  // of the outgoing part
  wait_until(&worker_statistics::waited_for_workers, [&] {
    if (!offer && (offer = extract(offers_, other)))
      in = examine_offer(*offer, in_regions, {}, false);
    if (!reply && (reply = extract(replies_, other))) {
      const auto body = body_of<transfer_reply>(*reply);
      status = reply->status != region_status::ok || body ? reply->status
                                                          : region_status::malformed_message;
      if (status == region_status::ok) {
        statistics.bytes_sent += packed.packed_bytes;
        if (!body->in_place && !packed.ranges.empty()) out = link.send_bytes(other, packed.ranges);
      }
    }
    // finished() is called on both transfers: each call makes progress.
    const bool received = !in.bytes || in.bytes->finished();
    const bool sent = !out || out->finished();
    return offer && reply && received && sent;
  });
  return status != region_status::ok ? status : in.status;
}

}  // namespace quarry::cluster

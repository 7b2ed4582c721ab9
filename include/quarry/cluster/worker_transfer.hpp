// SPDX-License-Identifier: Apache-2.0
#pragma once
/// worker: sends, receives and hand-overs. Part of worker.hpp.
///
/// A transfer is offered first: ids, objects, their ranges, a sum over all of it. The receiver
/// compares it with what it expects, makes ready, and accepts or refuses; both sides return the same
/// status. Then the bytes go from place to place. A sender whose regions can not be packed offers
/// that status, so that the receiver does not wait for ever.
///
///   offer   [regions, objects, 1: a hand-over; ids, addresses, n, n * (address, size), and
///           what the link needs to share memory, if it can]; the ticket is the sum
///   accept  [1: the bytes are there already]; status

#include <quarry/cluster/worker.hpp>

namespace quarry::cluster {

namespace detail {

/// FNV-1a over words: finds an offer that was damaged or misread, not an enemy.
inline std::uint64_t sum_of(std::span<const std::uint64_t> words) {
  std::uint64_t h = 0xcbf2'9ce4'8422'2325u;
  for (const std::uint64_t w : words) h = (h ^ w) * 0x0000'0100'0000'01b3u;
  return h;
}

inline auto named(std::span<const rid> regions) {
  return [regions](rid r) { return std::find(regions.begin(), regions.end(), r) != regions.end(); };
}

}  // namespace detail

inline region_result<std::vector<std::uint64_t>> worker::gather(std::span<const rid> regions,
                                                                std::span<void* const> objects) {
  std::vector<std::uint64_t> all;
  for (const rid region : regions) {
    const message one = ask_to_pack(region);
    if (one.status != region_status::ok) return one.status;
    all.insert(all.end(), one.words.begin(), one.words.end());
    // What is sent is likely to be freed elsewhere.
    for (std::size_t i = 0; i + 1 < one.words.size(); i += 2)
      if (one.words[i + 1] == 0) release_objects(one.words[i]);
  }
  for (const void* object : objects) {
    const region_result<std::size_t> size = usable_size(object);
    if (!size) return size.status;
    all.insert(all.end(), {reinterpret_cast<std::uint64_t>(object), *size});
  }
  return all;
}

inline void worker::offer(node peer, std::span<const rid> regions, std::span<void* const> objects,
                          region_status status, std::span<const std::uint64_t> ranges,
                          bool gives_away) {
  message m;
  m.what = verb::offer;
  m.to = peer;
  m.status = status;
  m.a = regions.size();
  m.b = objects.size();
  m.c = gives_away ? 1 : 0;
  m.words.assign(regions.begin(), regions.end());
  for (const void* p : objects) m.words.push_back(reinterpret_cast<std::uint64_t>(p));
  m.words.push_back(ranges.size() / 2);
  m.words.insert(m.words.end(), ranges.begin(), ranges.end());
  if (status == region_status::ok && link_->shares_memory_with(peer)) {
    const std::vector<std::uint64_t> token = link_->lend(detail::joined(ranges).ranges);
    m.words.insert(m.words.end(), token.begin(), token.end());
  }
  m.ticket = detail::sum_of(m.words);
  m.from = link_->self();
  link_->post(std::move(m));
}

/// The first message of the peer in the queue, taken out. False: there is none.
inline bool worker::pull(std::deque<message>& queue, node peer, message& m) {
  const auto it =
      std::find_if(queue.begin(), queue.end(), [&](const message& q) { return q.from == peer; });
  if (it == queue.end()) return false;
  m = std::move(*it);
  queue.erase(it);
  return true;
}

/// Compares an offer with what is expected here, fills in what is open, and answers.
inline worker::incoming worker::examine(const message& m, std::span<rid> regions,
                                        std::span<void*> objects, bool takes_over) {
  incoming in;
  in.status = m.status;
  const std::size_t named = m.a + m.b;
  if (in.status == region_status::ok &&
      (m.a != regions.size() || m.b != objects.size() || (m.c == 1) != takes_over ||
       m.words.size() <= named || (m.words.size() - named - 1) / 2 < m.words[named] ||
       m.ticket != detail::sum_of(m.words)))
    in.status = region_status::mismatch;
  for (std::size_t i = 0; in.status == region_status::ok && i < m.a; ++i)
    if (regions[i] != root && regions[i] != m.words[i]) in.status = region_status::mismatch;
  for (std::size_t i = 0; in.status == region_status::ok && i < m.b; ++i)
    if (objects[i] != nullptr && reinterpret_cast<std::uint64_t>(objects[i]) != m.words[m.a + i])
      in.status = region_status::mismatch;
  if (in.status == region_status::ok) {
    for (std::size_t i = 0; i < m.a; ++i) regions[i] = m.words[i];
    for (std::size_t i = 0; i < m.b; ++i)
      objects[i] = reinterpret_cast<void*>(m.words[m.a + i]);  // NOLINT
    const std::span<const std::uint64_t> rest(m.words.data() + named + 1,
                                              m.words.size() - named - 1);
    const std::span<const std::uint64_t> ranges = rest.first(2 * m.words[named]);
    in.ranges = detail::joined(ranges).ranges;
    const std::span<const std::uint64_t> token = rest.subspan(ranges.size());
    if (!token.empty())
      in.here = takes_over ? link_->adopt(m.from, token, in.ranges)
                           : link_->copy(m.from, token, in.ranges);
    if (!in.here && !in.ranges.empty()) in.bytes = link_->receive_bytes(m.from, in.ranges);
  }
  message reply;
  reply.what = verb::accept;
  reply.from = link_->self();
  reply.to = m.from;
  reply.status = in.status;
  reply.a = in.here ? 1 : 0;
  link_->post(std::move(reply));
  return in;
}

inline bool worker::is_peer(unsigned peer) const { return peer < count() && peer != number(); }

inline region_status worker::send(unsigned peer, std::span<const rid> regions,
                                  std::span<void* const> objects) {
  return give(peer, regions, objects, false);
}

inline region_status worker::hand_over(unsigned peer, std::span<const rid> regions) {
  return_all_leases();  // free slots lie in memory that will be another's
  return give(peer, regions, {}, true);
}

inline region_status worker::give(unsigned peer, std::span<const rid> regions,
                                  std::span<void* const> objects, bool gives_away) {
  if (!is_peer(peer)) return region_status::no_such_worker;
  if (options_.fault != detail::fault::defer_frees) wait_for_frees();
  return_leases(detail::named(regions), 0);  // or free slots would be packed as well
  const node to = link_->tree().worker(peer);
  const auto gathered = gather(regions, objects);
  offer(to, regions, objects, gathered.status, gathered.value, gives_away);
  message reply;
  wait_until(&worker_statistics::waited_for_workers, [&] { return pull(accepts_, to, reply); });
  if (reply.status != region_status::ok) return reply.status;
  const packed_region packed = detail::joined(gathered.value);
  const std::vector<packed_range>& ranges = packed.ranges;
  statistics_.bytes_sent += packed.packed_bytes;
  if (reply.a == 0 && !ranges.empty()) {
    const auto bytes = link_->send_bytes(to, ranges);
    wait_until(&worker_statistics::waited_for_workers, [&] { return bytes->finished(); });
  }
  if (gives_away) link_->let_go(ranges, reply.a != 0);
  return region_status::ok;
}

inline region_status worker::receive(unsigned peer, std::span<rid> regions,
                                     std::span<void*> objects) {
  return take(peer, regions, objects, false);
}

inline region_status worker::take_over(unsigned peer, std::span<rid> regions) {
  return take(peer, regions, {}, true);
}

inline region_status worker::take(unsigned peer, std::span<rid> regions, std::span<void*> objects,
                                  bool takes_over) {
  if (!is_peer(peer)) return region_status::no_such_worker;
  message m;
  const node from = link_->tree().worker(peer);
  wait_until(&worker_statistics::waited_for_workers, [&] { return pull(offers_, from, m); });
  const incoming in = examine(m, regions, objects, takes_over);
  if (in.bytes)
    wait_until(&worker_statistics::waited_for_workers, [&] { return in.bytes->finished(); });
  return in.status;
}

inline region_status worker::exchange(unsigned peer, std::span<const rid> give,
                                      std::span<rid> take) {
  if (!is_peer(peer)) return region_status::no_such_worker;
  wait_for_frees();
  return_leases(detail::named(give), 0);
  const node other = link_->tree().worker(peer);
  const auto gathered = gather(give, {});
  offer(other, give, {}, gathered.status, gathered.value, false);
  const packed_region packed = detail::joined(gathered.value);
  message theirs, reply;
  incoming in;
  std::unique_ptr<transfer> out;
  bool examined = false, replied = false;
  wait_until(&worker_statistics::waited_for_workers, [&] {
    if (!examined && pull(offers_, other, theirs)) {
      in = examine(theirs, take, {}, false);
      examined = true;
    }
    if (!replied && pull(accepts_, other, reply)) {
      replied = true;
      if (reply.status == region_status::ok) {
        statistics_.bytes_sent += packed.packed_bytes;
        if (reply.a == 0 && !packed.ranges.empty()) out = link_->send_bytes(other, packed.ranges);
      }
    }
    const bool received = !in.bytes || in.bytes->finished();  // each is asked: that moves it on
    const bool sent = !out || out->finished();
    return examined && replied && received && sent;
  });
  return reply.status != region_status::ok ? reply.status : in.status;
}

}  // namespace quarry::cluster

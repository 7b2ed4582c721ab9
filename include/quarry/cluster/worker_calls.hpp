// SPDX-License-Identifier: Apache-2.0
#pragma once
/// worker: the calls that schedulers carry out. Part of worker.hpp.

#include <quarry/cluster/worker.hpp>

#include <cstring>

namespace quarry::cluster {

inline worker::worker(cluster::link& l, worker_options options)
    : link_(&l), options_(options), leases_(options.fault) {}

// ---- asking -------------------------------------------------------------------------------------

template <class Done>
void worker::wait_until(double worker_statistics::*account, Done done) {
  if (done()) return;
  const double start = link_->now();
  while (!done()) {
    message m;
    if (link_->take(m))
      handle(std::move(m));
    else
      link_->idle();
  }
  statistics_.*account += link_->now() - start;
}

inline void worker::serve() {
  message m;
  while (link_->take(m)) handle(std::move(m));
}

inline void worker::post(message m) {
  ++statistics_.messages;
  m.from = link_->self();
  link_->post(std::move(m));
}

/// Requests about regions go to the owner, others to the scheduler above, which knows the way.
inline message worker::ask(message request) {
  serve();
  if (options_.reports) report();
  if (request.to == no_node) request.to = link_->tree().parent(link_->self());
  request.ticket = waiting_for_ = next_ticket_++;
  post(std::move(request));
  wait_until(&worker_statistics::waited_for_schedulers, [&] { return waiting_for_ == 0; });
  return std::move(answer_);
}

/// Once a second, when something is asked anyway.
inline void worker::report() {
  const double now = link_->now();
  if (now - last_report_ < 1) return;
  last_report_ = now;
  message m;
  m.what = verb::report;
  m.to = 0;
  m.a = statistics_.allocations - reported_.allocations;
  m.b = statistics_.calls - reported_.calls;
  m.c = statistics_.messages - reported_.messages;
  reported_ = statistics_;
  post(std::move(m));
}

inline message worker::ask_owner(rid region, message request) {
  const node owner = scheduler_of(region);
  if (owner >= link_->tree().schedulers()) {
    message none;
    none.status = region_status::stale_region;
    return none;
  }
  request.to = owner;
  request.a = region;
  return ask(std::move(request));
}

inline void worker::handle(message m) {
  const bool from_worker = m.what == verb::offer || m.what == verb::accept;
  if (!from_worker) ++statistics_.messages;
  switch (m.what) {
    case verb::answer:
      if (m.ticket == frees_ticket) {
        frees_sent_ -= m.a + m.words.size() / 2;
        if (first_refused_ == region_status::ok && m.words.size() > 1)
          first_refused_ = static_cast<region_status>(m.words[1]);
      } else if (m.ticket == waiting_for_) {
        answer_ = std::move(m);
        waiting_for_ = 0;
      } else {
        lease_came(m);
      }
      return;
    case verb::recall_leases:
      if (options_.fault != detail::fault::ignore_lease_recall)
        for (const rid region : m.words) leases_.drop(region);
      return post(m.answered());
    case verb::freed_leased:
      for (const std::uint64_t address : m.words)
        leases_.lose(reinterpret_cast<void*>(address));  // NOLINT
      return post(m.answered());
    case verb::offer: return offers_.push_back(std::move(m));
    case verb::accept: return accepts_.push_back(std::move(m));
    default: return;  // nothing that a worker is told
  }
}

// ---- regions ------------------------------------------------------------------------------------

inline region_result<rid> worker::create_region(rid parent, int level_hint) {
  ++statistics_.calls;
  message m;
  m.what = verb::create;
  m.b = static_cast<std::uint64_t>(std::int64_t{level_hint});
  const message a = ask_owner(parent, std::move(m));
  if (a.status != region_status::ok) return a.status;
  return a.a;
}

inline region_status worker::destroy_region(rid id) {
  ++statistics_.calls;
  wait_for_frees();
  message m;
  m.what = verb::free_region;
  return ask_owner(id, std::move(m)).status;
}

inline message worker::ask_to_pack(rid region) {
  ++statistics_.calls;
  message m;
  m.what = verb::pack;
  return ask_owner(region, std::move(m));
}

inline region_result<packed_region> worker::pack(rid region) {
  const message a = ask_to_pack(region);
  if (a.status != region_status::ok) return a.status;
  packed_region packed = detail::joined(a.words);
  packed.live_bytes = a.a;
  return packed;
}

// ---- objects ------------------------------------------------------------------------------------

inline region_result<void*> worker::allocate(rid region, std::size_t size, std::size_t alignment) {
  ++statistics_.calls;
  ++statistics_.allocations;
  const bool may_lease = options_.leases && size - 1 < lease_book::largest &&
                         alignment <= default_geometry.slot && std::has_single_bit(alignment);
  if (may_lease) {
    const unsigned units = lease_book::units_of(size);
    void* p = leases_.take(region, units);
    if (p == nullptr && borrow(region, units)) p = leases_.take(region, units);
    if (p != nullptr) {
      if (leases_.runs_low(region, units)) ask_for_lease(region, units);
      return ++statistics_.from_leases, p;
    }
  }
  message m;
  m.what = verb::alloc;
  m.b = size;
  m.c = alignment;
  message a = ask_owner(region, m);
  if (a.status == region_status::out_of_memory && make_room()) a = ask_owner(region, std::move(m));
  if (a.status != region_status::ok) return a.status;
  link_->ready({reinterpret_cast<std::byte*>(a.a), size});  // NOLINT
  return reinterpret_cast<void*>(a.a);                      // NOLINT
}

/// Waits for a lease. False: the program has not shown that it wants one.
inline bool worker::borrow(rid region, unsigned units) {
  if (!leases_.is_awaited(region, units) && !ask_for_lease(region, units)) return false;
  wait_until(&worker_statistics::waited_for_schedulers,
             [&] { return !leases_.is_awaited(region, units); });
  return true;
}

/// Asks, without waiting: while the last slots are used, more are on their way.
inline bool worker::ask_for_lease(rid region, unsigned units) {
  if (scheduler_of(region) >= link_->tree().schedulers()) return false;
  const std::uint64_t objects = leases_.wish(region, units);
  if (objects == 0) return false;
  serve();
  message m;
  m.what = verb::lease;
  m.to = scheduler_of(region);
  m.ticket = next_ticket_++;
  m.a = region;
  m.b = std::uint64_t{units} * default_geometry.slot;
  m.c = objects;
  awaited_leases_[m.ticket] = {region, units};
  leases_.await(region, units, true);
  post(std::move(m));
  return true;
}

inline void worker::lease_came(const message& a) {
  const auto it = awaited_leases_.find(a.ticket);
  if (it == awaited_leases_.end()) return;
  const auto [region, units] = it->second;
  awaited_leases_.erase(it);
  leases_.await(region, units, false);
  if (a.status != region_status::ok) return;
  for (std::size_t i = 0; i + 1 < a.words.size(); i += 2) {
    leases_.add(region, units, a.words[i], a.words[i + 1]);
    // The last slot may reach into the next slab.
    link_->ready({reinterpret_cast<std::byte*>(a.words[i]),  // NOLINT
                  default_geometry.slab + units * default_geometry.slot});
  }
}

/// Whatever this worker has that others could use goes back. False: there was nothing.
inline bool worker::make_room() {
  if (!options_.leases) return false;
  bool any = !frees_.empty() || frees_sent_ != 0;
  wait_for_frees();
  return return_all_leases() || any;
}

/// Those on their way, too.
inline bool worker::return_all_leases() {
  wait_until(&worker_statistics::waited_for_schedulers, [&] { return awaited_leases_.empty(); });
  return return_leases([](rid) { return true; }, 0);
}

/// Free slots go back to their owners. False: there were none.
template <class Which>
bool worker::return_leases(Which which, std::uint64_t leave) {
  std::unordered_map<rid, message> back;
  leases_.give_back(which, leave, [&](rid region, std::uint64_t base, std::uint64_t mask) {
    message& m = back[region];
    m.words.push_back(base);
    m.words.push_back(mask);
  });
  for (auto& [region, m] : back) {
    m.what = verb::return_leases;
    m.to = scheduler_of(region);
    m.a = region;
    post(std::move(m));
  }
  return !back.empty();
}

/// What lives in the region is not on loan any more.
inline void worker::release_objects(rid region) {
  message m;
  leases_.release(region, [&](std::uint64_t base, std::uint64_t mask) {
    m.words.push_back(base);
    m.words.push_back(mask);
  });
  if (m.words.empty()) return;
  m.what = verb::release_leases;
  m.to = scheduler_of(region);
  m.a = region;
  post(std::move(m));
}

inline region_status worker::deallocate(void* p) {
  ++statistics_.calls;
  if (p == nullptr) return region_status::ok;
  if (options_.leases) {
    switch (leases_.put(p)) {
      case lease_book::put_result::freed_already: return region_status::not_an_object;
      case lease_book::put_result::done:
        if (leases_.has_too_many(p)) {
          const rid region = leases_.region_of(p);
          return_leases([region](rid r) { return r == region; }, lease_book::surplus / 2);
        }
        return region_status::ok;
      case lease_book::put_result::not_ours: break;
    }
  }
  frees_.push_back(reinterpret_cast<std::uint64_t>(p));
  if (!options_.leases) return flush();
  if (frees_.size() >= frees_in_batch) send_frees();
  return region_status::ok;
}

inline void worker::send_frees() {
  if (frees_.empty()) return;
  serve();
  message m;
  m.what = verb::free_objects;
  m.to = link_->tree().parent(link_->self());
  m.ticket = frees_ticket;
  frees_sent_ += frees_.size();
  m.words.swap(frees_);
  post(std::move(m));
}

inline void worker::wait_for_frees() {
  send_frees();
  wait_until(&worker_statistics::waited_for_schedulers, [&] { return frees_sent_ == 0; });
}

inline region_status worker::flush() {
  wait_for_frees();
  return std::exchange(first_refused_, region_status::ok);
}

inline region_result<void*> worker::reallocate(void* p, std::size_t n, rid region) {
  if (p == nullptr) return allocate(region, n);
  if (n == 0) {
    if (const region_status s = deallocate(p); s != region_status::ok) return s;
    return static_cast<void*>(nullptr);
  }
  ++statistics_.calls;
  std::size_t had = leases_.size_of(p);
  if (had != 0) {
    if (leases_.region_of(p) == region && n <= had && (n > had / 2 || had == default_geometry.slot))
      return p;
  } else {
    message m;
    m.what = verb::resize;
    m.a = reinterpret_cast<std::uint64_t>(p);
    m.b = n;
    m.c = region;
    const message a = ask(std::move(m));
    if (a.status != region_status::ok) return a.status;
    if (a.a != 0) {
      link_->ready({static_cast<std::byte*>(p), n});
      return p;
    }
    had = a.b;
  }
  const region_result<void*> fresh = allocate(region, n);
  if (!fresh) return fresh;
  std::memcpy(link_->local(*fresh), link_->local(p), std::min(had, n));
  if (const region_status s = deallocate(p); s != region_status::ok) {
    deallocate(*fresh);  // somebody else freed p meanwhile
    return s;
  }
  return fresh;
}

inline region_status worker::allocate_bulk(rid region, std::size_t size, std::span<void*> out) {
  ++statistics_.calls;
  statistics_.allocations += out.size();
  message m;
  m.what = verb::alloc_bulk;
  m.b = size;
  m.c = out.size();
  message a = ask_owner(region, m);
  if (a.status == region_status::out_of_memory && make_room()) a = ask_owner(region, std::move(m));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = i < a.words.size() ? reinterpret_cast<void*>(a.words[i]) : nullptr;  // NOLINT
  for (const std::uint64_t address : a.words)
    link_->ready({reinterpret_cast<std::byte*>(address), size});  // NOLINT
  return a.status;
}

inline region_result<std::size_t> worker::usable_size(const void* p) {
  ++statistics_.calls;
  if (const std::size_t size = leases_.size_of(p)) return size;
  message m;
  m.what = verb::size_of;
  m.a = reinterpret_cast<std::uint64_t>(p);
  const message a = ask(std::move(m));
  if (a.status != region_status::ok) return a.status;
  return std::size_t{a.a};
}

inline region_status worker::discard(rid region) {
  const region_result<packed_region> packed = pack(region);
  if (!packed) return packed.status;
  for (const packed_range& r : packed.value.ranges) link_->discard(r);
  return region_status::ok;
}

// ---- together -----------------------------------------------------------------------------------

inline void worker::barrier() {
  wait_for_frees();
  message m;
  m.what = verb::barrier;
  ask(std::move(m));
}

inline leaks worker::finish() {
  wait_for_frees();
  return_all_leases();
  barrier();
  message m;
  m.what = verb::goodbye;
  const message a = ask(std::move(m));
  return {a.a, a.b, a.c};
}

}  // namespace quarry::cluster

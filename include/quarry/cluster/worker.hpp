// SPDX-License-Identifier: Apache-2.0
#pragma once
/// worker: the calls of Figure 1 of Lyberis et al. (2012), and what was added to them.
///
/// Every call is carried out by the scheduler that owns the region or the address; the worker asks
/// its own scheduler and waits. Addresses are the same in all workers. What a worker writes is its
/// own copy until it is sent: plain sends copy, a hand-over moves.
///
/// Leases: after a few small objects of one size in one region the worker is lent a batch of slots of
/// that size and allocates from them without a message; it frees them the same way. Frees of other
/// memory are collected and sent in batches: what was wrong with one of them is told by flush().
/// A batch is out and answered before anything that others could learn from: sends, barriers, frees
/// of regions. So it is a race to free an object and its region from two workers without one of
/// these between: as it is without batches, only that the free may come later.
/// With options.leases == false every call asks.
///
/// While it waits, and at the start of every call that asks, a worker answers others: schedulers that
/// recall leases, workers that offer transfers. A worker that computes for long without a call makes
/// only those wait who free regions in which it holds leases.
///
/// Not thread-safe: a worker is one thread.

#include <quarry/cluster/detail/fault.hpp>
#include <quarry/cluster/id.hpp>
#include <quarry/cluster/lease.hpp>
#include <quarry/cluster/link.hpp>
#include <quarry/region/status.hpp>

#include <bit>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quarry::cluster {

namespace detail {

/// Of (address, size) ...: in order, joined. Pairs without a size name regions.
inline packed_region joined(std::span<const std::uint64_t> pairs) {
  packed_region all;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (pairs[i + 1] != 0)
      all.ranges.push_back({reinterpret_cast<std::byte*>(pairs[i]), pairs[i + 1]});  // NOLINT
  join_ranges(all);
  return all;
}

}  // namespace detail

struct worker_options {
  bool leases = true;
  bool reports = false;  // tells the top every second what was done (scheduler::progress)
  detail::fault fault = detail::fault::none;  // for tests
};

/// What a worker did and how often it had to ask.
struct worker_statistics {
  std::uint64_t calls = 0;     // of the allocator: create to size_of
  std::uint64_t messages = 0;  // sent to and received from schedulers
  std::uint64_t allocations = 0;
  std::uint64_t from_leases = 0;     // allocations without a message
  std::uint64_t bytes_sent = 0;      // to other workers
  double waited_for_schedulers = 0;  // seconds
  double waited_for_workers = 0;
};

/// What is left when all workers have ended.
struct leaks {
  std::uint64_t regions = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
};

class worker {
 public:
  worker(link& l, worker_options options = {});
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  unsigned number() const { return link_->tree().worker_number(link_->self()); }
  unsigned count() const { return link_->tree().workers(); }

  // ---- regions and objects ----
  /// level_hint: how deep in the region tree this one lies, 0 for children of the root; -1: unknown.
  region_result<rid> create_region(rid parent, int level_hint = -1);
  region_status destroy_region(rid id);
  region_result<void*> allocate(rid region, std::size_t size, std::size_t alignment = 64);
  region_status deallocate(void* p);
  /// n bytes at p, or elsewhere in `region`; p == nullptr allocates, n == 0 frees.
  region_result<void*> reallocate(void* p, std::size_t n, rid region);
  /// All of out, or nothing.
  region_status allocate_bulk(rid region, std::size_t size, std::span<void*> out);
  region_result<std::size_t> usable_size(const void* p);
  /// The ranges that hold the region and its descendants.
  region_result<packed_region> pack(rid region);

  // ---- between workers ----
  /// Returns when the peer has received, or refused: other regions or objects were expected there.
  region_status send(unsigned peer, std::span<const rid> regions,
                     std::span<void* const> objects = {});
  /// What is 0 or nullptr is filled in; the rest must be what the peer sends, in that order.
  region_status receive(unsigned peer, std::span<rid> regions, std::span<void*> objects = {});
  /// Both at once, in any order on the two sides.
  region_status exchange(unsigned peer, std::span<const rid> give, std::span<rid> take);
  /// As send and receive, but the giver's copy ends: reading it afterwards is an error.
  region_status hand_over(unsigned peer, std::span<const rid> regions);
  region_status take_over(unsigned peer, std::span<rid> regions);
  void barrier();

  // ---- the rest ----
  /// Sends the collected frees. The status of the first that was refused since the last flush.
  region_status flush();
  /// This worker's copy of the region's objects is not needed any more; its memory goes back.
  region_status discard(rid region);
  /// Where the bytes of an address are (link.hpp): the address itself, but in isolated simulations.
  template <class T>
  T* local(T* p) const {
    return reinterpret_cast<T*>(link_->local(const_cast<std::remove_const_t<T>*>(p)));
  }
  /// Collective: gives leases back and waits for all. No call but this one may follow.
  leaks finish();

  const worker_statistics& statistics() const { return statistics_; }
  cluster::link& connection() { return *link_; }
  /// Answers whoever waits for this worker, without waiting itself.
  void serve();

 private:
  static constexpr std::uint64_t frees_ticket = 0;  // of every batch of frees
  static constexpr std::size_t frees_in_batch = 256;

  // ---- worker_calls.hpp ----
  void post(message m);
  message ask(message request);
  message ask_owner(rid region, message request);
  message ask_to_pack(rid region);
  void handle(message m);
  void report();
  template <class Done>
  void wait_until(double worker_statistics::*account, Done done);
  bool borrow(rid region, unsigned units);
  bool ask_for_lease(rid region, unsigned units);
  void lease_came(const message& a);
  template <class Which>
  bool return_leases(Which which, std::uint64_t leave);
  bool make_room();
  bool return_all_leases();
  void release_objects(rid region);
  void send_frees();
  void wait_for_frees();

  // ---- worker_transfer.hpp ----
  /// A transfer to here, as far as it has come.
  struct incoming {
    region_status status = region_status::ok;
    bool here = false;  // no bytes follow: they were copied, or the giver's memory is mapped
    std::vector<packed_range> ranges;
    std::unique_ptr<transfer> bytes;
  };
  bool is_peer(unsigned peer) const;
  /// (address, size) of everything named.
  region_result<std::vector<std::uint64_t>> gather(std::span<const rid> regions,
                                                   std::span<void* const> objects);
  void offer(node peer, std::span<const rid> regions, std::span<void* const> objects,
             region_status status, std::span<const std::uint64_t> ranges, bool gives_away);
  static bool pull(std::deque<message>& queue, node peer, message& m);
  incoming examine(const message& m, std::span<rid> regions, std::span<void*> objects,
                   bool takes_over);
  region_status give(unsigned peer, std::span<const rid> regions, std::span<void* const> objects,
                     bool gives_away);
  region_status take(unsigned peer, std::span<rid> regions, std::span<void*> objects,
                     bool takes_over);

  link* link_;
  worker_options options_;
  worker_statistics statistics_;
  std::uint64_t next_ticket_ = 1;
  double last_report_ = 0;
  worker_statistics reported_;
  std::uint64_t waiting_for_ = 0;  // ticket; 0: answer_ is there
  message answer_;
  std::deque<message> offers_;   // transfers that others offer, not yet received
  std::deque<message> accepts_;  // and what became of ours
  lease_book leases_;
  std::unordered_map<std::uint64_t, std::pair<rid, unsigned>> awaited_leases_;  // by ticket
  std::vector<std::uint64_t> frees_;  // addresses, not yet sent
  std::uint64_t frees_sent_ = 0;      // addresses, not yet answered
  region_status first_refused_ = region_status::ok;
};

}  // namespace quarry::cluster

#include <quarry/cluster/worker_calls.hpp>
#include <quarry/cluster/worker_transfer.hpp>

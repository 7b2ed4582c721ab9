// SPDX-License-Identifier: Apache-2.0
#pragma once
/// worker::state: the members of a worker, and the steps of its calls.

#include "cluster/worker/lease_table.hpp"
#include "cluster/worker/link.hpp"

#include <quarry/cluster/worker.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quarry::cluster {

class worker::state {
 public:
  state(detail::link& l, worker_options o) : link(l), options(o), leases_(o.fault) {}

  detail::link& link;
  worker_options options;
  worker_statistics statistics;

  // ---- requests.cpp ----
  void serve();
  region_result<rid> create_region(rid parent, int level_hint);
  region_status destroy_region(rid id);
  region_result<detail::pack_reply> pack(rid region);
  void barrier();
  leaks finish();

  // ---- objects.cpp ----
  region_result<void*> allocate(rid region, std::size_t size, std::size_t alignment);
  region_status allocate_bulk(rid region, std::size_t size, std::span<void*> out);
  region_status deallocate(void* p);
  region_result<void*> reallocate(void* p, std::size_t n, rid region);
  region_result<std::size_t> usable_size(const void* p);
  region_status flush();

  // ---- transfer.cpp ----
  region_status send(unsigned peer, std::span<const rid> regions, std::span<void* const> objects,
                     bool hand_over);
  region_status receive(unsigned peer, std::span<rid> regions, std::span<void*> objects,
                        bool hand_over);
  region_status exchange(unsigned peer, std::span<const rid> out_regions,
                         std::span<rid> in_regions);
  bool return_all_leases();

 private:
  static constexpr std::uint64_t frees_ticket = 0;  // of every batch of deallocations
  static constexpr std::size_t frees_in_batch = 256;

  // ---- requests.cpp ----
  void post(detail::message m);
  void handle(detail::message m);
  void report_progress();
  template <class Done>
  void wait_until(double worker_statistics::*account, Done done) {
    if (done()) return;
    const double start = link.now();
    while (!done()) {
      detail::message m;
      if (link.try_receive(m))
        handle(std::move(m));
      else
        link.idle();
    }
    statistics.*account += link.now() - start;
  }
  bool is_scheduler(node_id n) const { return n < link.tree().schedulers(); }
  /// Sends a request and waits for its reply.
  template <class Request>
  region_result<typename Request::reply> request(node_id to, const Request& r) {
    const detail::message m = exchange_messages(detail::make_message(to, r));
    if (m.status != region_status::ok) return m.status;
    if (auto body = detail::body_of<typename Request::reply>(m)) return *std::move(body);
    return region_status::malformed_message;
  }
  /// As request, to the owner of the region.
  template <class Request>
  region_result<typename Request::reply> request_owner(rid region, const Request& r) {
    const node_id owner = scheduler_of(region);
    if (!is_scheduler(owner)) return region_status::stale_region;
    return request(owner, r);
  }
  detail::message exchange_messages(detail::message m);
  /// The scheduler of this worker, which routes requests by address.
  node_id parent() const { return link.tree().parent(link.self()); }

  // ---- leases.cpp ----
  bool obtain_lease(rid region, unsigned units);
  bool request_lease(rid region, unsigned units);
  void on_lease(const detail::message& m);
  bool return_leases(const detail::lease_table::select_region& selected, std::uint64_t keep);
  void release_objects(rid region);
  bool return_unused_memory();

  // ---- objects.cpp ----
  void on_frees(const detail::message& m);
  void send_frees();
  void wait_for_frees();

  // ---- transfer.cpp ----
  /// What this worker sends.
  struct outgoing {
    std::vector<rid> regions;
    std::vector<detail::address> objects;
    std::vector<detail::address_run> ranges;
  };
  /// What this worker receives, as far as it has arrived.
  struct incoming {
    region_status status = region_status::ok;
    bool in_place = false;  // copied or mapped by shared memory: no bytes follow
    std::vector<packed_range> ranges;
    std::unique_ptr<detail::transfer> bytes;
  };
  bool is_peer(unsigned peer) const;
  region_result<outgoing> gather(std::span<const rid> regions, std::span<void* const> objects);
  void post_offer(node_id peer, const region_result<outgoing>& gathered, bool hand_over);
  incoming examine_offer(const detail::message& m, std::span<rid> regions, std::span<void*> objects,
                         bool hand_over);
  static std::optional<detail::message> extract(std::deque<detail::message>& queue, node_id peer);

  std::uint64_t next_ticket_ = 1;
  double last_report_ = 0;
  worker_statistics reported_;
  std::uint64_t awaited_ticket_ = 0;  // 0: reply_ has arrived
  detail::message reply_;
  std::deque<detail::message> offers_;   // transfers that peers offer, not yet received
  std::deque<detail::message> replies_;  // replies to this worker's offers
  detail::lease_table leases_;
  std::unordered_map<std::uint64_t, std::pair<rid, unsigned>> pending_leases_;  // by ticket
  std::vector<detail::address> frees_;                                          // not yet sent
  std::uint64_t unacknowledged_frees_ = 0;
  region_status first_failed_free_ = region_status::ok;
};

}  // namespace quarry::cluster

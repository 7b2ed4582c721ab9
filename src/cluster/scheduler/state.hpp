// SPDX-License-Identifier: Apache-2.0
#pragma once
/// scheduler: owns regions and pages and serves workers; Lyberis et al. (2012), section 5.
///
/// A scheduler is a state machine: receive() consumes one message and produces messages to send. It
/// never blocks: an operation that needs other nodes is recorded (pending_create, pending_destroy,
/// pending_pages, ...) and continued by the reply with the same ticket. It never touches the memory
/// it manages: its region_tree covers addresses without memory.
///
/// Routing
///   by region    to the scheduler in the region's id (id.hpp)
///   by address   to the holder of the page: here -> served; below -> to that child; unknown -> to
///                the parent; unknown at the top, or free -> not_ours. Every scheduler above the
///                holder of a page knows the page as free or assigned, so a request with a stale
///                address ends with a reply.
///
/// Placement of a new region: at the level of its hint, or at the lowest level without one; among
/// the children, at the one with the fewest regions, or at the one on the requester's side if that
/// one has few more. A region whose parent belongs to another scheduler is a child of the local
/// root; both schedulers record the link (region_links).
///
/// Destroying a region: its id, and the ids of its local descendants, become stale at once. The
/// owners of remote descendants do the same; workers drop their leases inside. When all have
/// acknowledged, the memory is freed and the requester gets its reply.
///
/// Pages: at first the top scheduler has all of them. Every other scheduler requests pages in
/// advance, up to its high watermark: at the start, and when a grant leaves it fewer than the low
/// watermark. A request in advance that cannot be granted ends with an empty grant, and no other
/// follows until pages arrive or become free. A scheduler without a free page trims its own
/// regions, then requests pages from its parent, and more than it needs while many are free. The
/// top scheduler recalls unused pages from all others before such a request fails. A failure
/// concerns the request for the most pages; smaller requests behind it are tried again. A scheduler
/// that has far more free pages than its reserve returns pages unasked. The regions of a scheduler
/// lie in one window of 8 TiB, which bounds slab numbers.
///
/// Leases: a leased slot is a live object of the region, recorded with its holder (lease_record).
/// If another worker frees the object, the holder's lease on that slot is revoked; the slot is
/// reused only after the holder has acknowledged. Invariant: each slot has one owner at any time.

#include "cluster/protocol/bodies.hpp"
#include "cluster/scheduler/page_table.hpp"

#include <quarry/cluster/options.hpp>
#include <quarry/region/packing.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace quarry::cluster::detail {

class scheduler {
 public:
  scheduler(const shape& tree, node_id self, const scheduler_options& options = {});

  /// The messages to send before the first one is received.
  std::vector<message> start();
  /// Appends the messages to send to `out`. The transport sends each to the next hop on the route
  /// to its receiver.
  void receive(message m, std::vector<message>& out);
  /// All workers have finished; no message will follow.
  bool has_finished() const { return finished_; }

  node_id self() const { return self_; }
  scheduler_statistics statistics() const;
  /// The number of regions in this scheduler's subtree, as far as its children have reported.
  std::uint64_t load() const;
  const std::vector<node_id>& children() const { return children_; }
  /// Sums of the workers' progress reports, at the top scheduler.
  const progress_report& progress() const { return progress_; }
  const page_table& pages() const { return pages_; }
  /// Empty: all invariants hold. Requires: no message is in transit.
  std::string check_invariants() const;
  /// The number of children at other schedulers, of all regions here.
  std::uint64_t remote_children() const;
  /// The number of regions here whose parent belongs to another scheduler.
  std::uint64_t regions_with_remote_parent() const;
  /// No operation waits for a reply.
  bool is_quiescent() const;

 private:
  static constexpr std::uint64_t window_bytes = std::uint64_t{8} << 40;
  static constexpr std::uint64_t page_bytes = default_geometry.page;
  static constexpr slab_number slabs_in_page = default_geometry.slabs_in_page();
  static constexpr unsigned max_hops = 64;
  static constexpr unsigned max_attempts = 64;

  bool has(fault f) const { return options_.fault == f; }

  /// Slots of a slab that a worker leases.
  struct lease_record {
    node_id holder;
    std::uint64_t mask;
    unsigned revoking = 0;  // slots whose revocation the holder has not acknowledged
  };
  /// What a region refers to beyond its objects and local children.
  struct region_links {
    rid remote_parent = root;
    bool has_remote_parent = false;
    std::vector<rid> remote_children;
    std::unordered_map<slab_number, std::vector<lease_record>> leases;
  };

  /// A request that needs pages before it can be served.
  struct blocked_request {
    envelope sender;
    std::variant<allocate_request, allocate_bulk_request, lease_request, page_request> request;
    std::uint64_t min_run = 1;  // consecutive pages
    std::uint64_t wanted = 1;   // pages
    std::uint64_t window = 0;
    unsigned attempts = 0;
  };
  /// Requests that wait for one page_grant, or at the top for the replies to one page_recall.
  struct pending_pages {
    std::uint64_t min_run = 0;
    std::uint64_t window = 0;
    bool in_advance = false;
    unsigned replies = 0;  // at the top: children that have not acknowledged the recall
    std::vector<blocked_request> queue;
  };
  /// The free pages that this scheduler tries to hold in one window, for the schedulers of its
  /// subtree whose regions lie there.
  struct reserve {
    std::uint64_t window;
    std::uint64_t pages = 0;  // the high watermark
    std::uint64_t low = 0;    // the low watermark
    bool denied = false;      // the last request for more was answered with an empty grant
  };
  struct pending_create {
    envelope sender;
    rid parent = root;
  };
  struct pending_destroy {
    envelope sender;
    destroy_region_request request;
    region_id top;
    std::vector<region_id> dying;
    unsigned replies = 0;
  };
  struct pending_pack {
    envelope sender;
    pack_reply reply;
    unsigned replies = 0;
  };
  struct pending_recall {
    envelope sender;
    unsigned replies = 0;
  };
  struct pending_revocation {
    node_id holder;
    std::vector<address> objects;
  };
  /// A barrier or the end of the program: a reply goes down when all nodes below have arrived.
  struct collective {
    std::vector<envelope> waiting;
    finish_request sum;
  };

  // ---- routing.cpp ----
  template <class Body>
  void dispatch(const message& m);
  void on_acknowledgement(const message& m);
  void on_malformed(const envelope& e);
  void send(message m);
  template <class Body>
  void send_to(node_id to, const Body& body, std::uint64_t ticket = 0) {
    send(make_message(to, body, ticket));
  }
  template <class Body>
  void reply(const envelope& to, const Body& body, region_status s = region_status::ok) {
    send(make_reply(self_, to, s, body));
  }
  void fail(const envelope& to, region_status s) { reply(to, acknowledgement{}, s); }
  /// True: the page of the address belongs to this scheduler. Otherwise the request was forwarded,
  /// or has failed.
  template <class Body>
  bool is_local(const envelope& e, const Body& body, address a);
  node_id next_hop_to(address a) const;

  // ---- regions.cpp ----
  void on(const envelope& e, const create_region_request& r);
  void on(const envelope& e, const create_remote_request& r);
  void on(const envelope& e, const create_region_reply& r);
  void on(const envelope& e, const destroy_region_request& r);
  void on(const envelope& e, const remote_child_destroyed& r);
  void on(const envelope& e, const pack_request& r);
  void on(const envelope& e, const pack_reply& r);
  void finish_create(const pending_create& p, region_status s, rid child);
  void count_destroyed(std::uint64_t ticket);
  void count_packed(std::uint64_t ticket, const pack_reply& part);
  const std::vector<rid>& remote_children_of(region_id id) const;
  unsigned target_level(std::int64_t hint) const;
  node_id choose_child(node_id requester) const;
  std::uint64_t load_of(node_id child) const;
  void report_load();
  /// The region, or nullptr if it does not exist or is being destroyed.
  region_tree::node_type* find(rid id) const;
  region_links* links_of(region_id id);
  rid global_id(region_id local) const { return make_rid(self_, local); }

  // ---- objects.cpp ----
  void on(const envelope& e, const allocate_request& r, unsigned attempts = 0);
  void on(const envelope& e, const allocate_bulk_request& r, unsigned attempts = 0);
  void serve_again(blocked_request b);
  void on(const envelope& e, const free_request& r);
  void on(const envelope& e, const resize_request& r);
  void on(const envelope& e, const size_request& r);
  using objects_by_holder = std::unordered_map<node_id, std::vector<address>>;
  region_status free_object(address a, objects_by_holder& revoked);
  /// The region of the live object that starts at the address.
  region_result<region_id> region_of_object(address a) const;

  // ---- leases.cpp ----
  void on(const envelope& e, const lease_request& r, unsigned attempts = 0);
  void on(const envelope& e, const lease_return& r);
  void on(const envelope& e, const lease_release& r);
  void end_leases(node_id holder, rid id, const std::vector<slab_slots>& slabs, bool free_slots);
  void revoke(objects_by_holder&& revoked);
  void finish_revocation(const pending_revocation& p);
  struct slot {
    slab_number slab;
    std::uint64_t bit;
  };
  slot slot_of(const void* p) const;

  // ---- pages.cpp ----
  void on(const envelope& e, const page_request& r);
  void on(const envelope& e, const page_grant& r);
  void on(const envelope& e, const page_return& r);
  void on(const envelope& e, const page_recall& r);
  void obtain_pages(blocked_request b);
  bool try_grant(const blocked_request& b);
  bool try_queue(const blocked_request& b);
  void ask_parent(pending_pages pending, std::uint64_t wanted);
  void refill(std::uint64_t window);
  void release(page_run run, node_id holder);
  /// nullptr: no scheduler of this subtree has its regions in the window.
  reserve* reserve_of(std::uint64_t window);
  void fail_blocked(const blocked_request& b);
  void request_pages(const blocked_request& b);
  unsigned recall_from_children(std::uint64_t ticket);
  void count_recalled(std::uint64_t ticket);
  void resume_blocked(std::uint64_t ticket, bool no_more_pages);
  void trim_regions();
  void return_surplus();
  void return_pages(std::uint64_t keep);
  page_run window_pages(std::uint64_t window) const;
  std::uint64_t own_window() const { return self_ % windows_; }
  slab_run slabs_of(page_run run) const;
  page_run pages_of(slab_run run) const;
  /// The number of free pages that this subtree tries to hold.
  std::uint64_t page_target() const;
  static bool is_in_advance(const blocked_request& b) {
    const auto* of_child = std::get_if<page_request>(&b.request);
    return of_child != nullptr && of_child->in_advance;
  }

  // ---- collectives.cpp ----
  void on(const envelope& e, const barrier_request& r);
  void on(const envelope& e, const finish_request& r);
  void on(const envelope& e, const finish_reply& r);
  void on(const envelope& e, const load_report& r);
  void on(const envelope& e, const progress_report& r);
  bool all_arrived(collective& c, const envelope& e);
  void end_barrier();
  void end_program(const finish_reply& total);

  shape shape_;
  node_id self_;
  scheduler_options options_;
  std::vector<node_id> children_;
  unsigned level_;
  std::uint64_t windows_;
  std::unique_ptr<region_tree> regions_;
  page_table pages_;
  std::vector<reserve> reserves_;
  std::unordered_map<std::uint32_t, region_links> links_;  // by the region's number
  std::unordered_set<std::uint64_t> dying_;                // local ids
  std::unordered_map<node_id, std::uint64_t> loads_;       // regions of each child's subtree
  std::uint64_t reported_load_ = 0;

  static constexpr std::uint64_t collective_ticket = 1;
  std::uint64_t next_ticket_ = 1000;
  std::unordered_map<std::uint64_t, pending_create> creates_;
  std::unordered_map<std::uint64_t, pending_destroy> destroys_;
  std::unordered_map<std::uint64_t, pending_pack> packs_;
  std::unordered_map<std::uint64_t, pending_pages> page_waits_;
  std::unordered_map<std::uint64_t, pending_recall> recalls_;
  std::unordered_map<std::uint64_t, pending_revocation> revocations_;
  std::unordered_set<address> revoking_;  // objects of pending revocations
  collective barrier_;
  collective finish_;
  bool finished_ = false;
  scheduler_statistics statistics_;
  progress_report progress_;
  std::vector<message>* out_ = nullptr;
};

}  // namespace quarry::cluster::detail

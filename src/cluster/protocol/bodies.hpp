// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The body of every kind of message, as a struct with named fields.
///
/// Each struct names its kind and, if it is a request, the type of the reply. A request that fails
/// is answered by an acknowledgement that carries the status. Field types: rid for regions, address
/// for addresses, std::uint64_t for counts and byte sizes. docs/cluster.md has the table of the
/// protocol; tests/cluster/protocol_test.cpp compares that table with these structs.

#include "cluster/protocol/codec.hpp"
#include "cluster/protocol/message.hpp"

#include <quarry/cluster/id.hpp>

#include <optional>
#include <tuple>
#include <vector>

namespace quarry::cluster::detail {

using address = std::uint64_t;
inline void* pointer(address a) { return reinterpret_cast<void*>(a); }
inline address address_of(const void* p) { return reinterpret_cast<address>(p); }

#define QUARRY_MESSAGE(type)                               \
  static constexpr message_kind kind = message_kind::type; \
  static constexpr const char* name = #type
#define QUARRY_FIELD(type, member) field(#member, &type::member)

// ---- parts of messages --------------------------------------------------------------------------

/// Slots of one slab: bit i of the mask is the slot at base + i * 64.
struct slab_slots {
  static constexpr const char* name = "slab_slots";
  address base = 0;
  std::uint64_t mask = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(slab_slots, base), QUARRY_FIELD(slab_slots, mask));
  }
};

struct address_run {
  static constexpr const char* name = "address_run";
  address base = 0;
  std::uint64_t size = 0;  // bytes
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(address_run, base), QUARRY_FIELD(address_run, size));
  }
};

/// Consecutive pages of the cluster's address space.
struct page_run {
  static constexpr const char* name = "page_run";
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t end() const { return first + count; }
  explicit operator bool() const { return count != 0; }
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(page_run, first), QUARRY_FIELD(page_run, count));
  }
};

struct failed_free {
  static constexpr const char* name = "failed_free";
  address object = 0;
  region_status status = region_status::ok;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(failed_free, object), QUARRY_FIELD(failed_free, status));
  }
};

/// A part of a worker's memory file: `size` bytes of the file of worker `file`, at `offset`.
struct file_range {
  static constexpr const char* name = "file_range";
  node file = no_node;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(file_range, file), QUARRY_FIELD(file_range, offset),
                      QUARRY_FIELD(file_range, size));
  }
};

// ---- replies without fields; failed requests ----------------------------------------------------

struct acknowledgement {
  QUARRY_MESSAGE(acknowledgement);
  static constexpr auto fields() { return std::tuple(); }
};

// ---- regions ------------------------------------------------------------------------------------

struct create_region_reply {
  QUARRY_MESSAGE(create_region_reply);
  rid region = root;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(create_region_reply, region)); }
};
/// level_hint: the depth of the region below the root, 0 for a child of the root; -1: unknown.
struct create_region_request {
  QUARRY_MESSAGE(create_region_request);
  using reply = create_region_reply;
  rid parent = root;
  std::int64_t level_hint = -1;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(create_region_request, parent),
                      QUARRY_FIELD(create_region_request, level_hint));
  }
};
/// by_parent: the owner of the parent destroys the region; it needs no remote_child_destroyed.
struct destroy_region_request {
  QUARRY_MESSAGE(destroy_region_request);
  using reply = acknowledgement;
  rid region = root;
  bool by_parent = false;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(destroy_region_request, region),
                      QUARRY_FIELD(destroy_region_request, by_parent));
  }
};
struct pack_reply {
  QUARRY_MESSAGE(pack_reply);
  std::uint64_t live_bytes = 0;
  std::vector<rid> regions;  // the region and its descendants
  std::vector<address_run> ranges;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(pack_reply, live_bytes), QUARRY_FIELD(pack_reply, regions),
                      QUARRY_FIELD(pack_reply, ranges));
  }
};
struct pack_request {
  QUARRY_MESSAGE(pack_request);
  using reply = pack_reply;
  rid region = root;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(pack_request, region)); }
};
/// From a scheduler to one below: create a region whose parent this scheduler owns.
struct create_remote_request {
  QUARRY_MESSAGE(create_remote_request);
  using reply = create_region_reply;
  rid parent = root;
  std::int64_t level_hint = -1;
  node requester = no_node;  // the worker that creates the region
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(create_remote_request, parent),
                      QUARRY_FIELD(create_remote_request, level_hint),
                      QUARRY_FIELD(create_remote_request, requester));
  }
};
/// To the owner of the parent: its remote child no longer exists.
struct remote_child_destroyed {
  QUARRY_MESSAGE(remote_child_destroyed);
  rid child = root;
  rid parent = root;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(remote_child_destroyed, child),
                      QUARRY_FIELD(remote_child_destroyed, parent));
  }
};

// ---- objects ------------------------------------------------------------------------------------

struct allocate_reply {
  QUARRY_MESSAGE(allocate_reply);
  address object = 0;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(allocate_reply, object)); }
};
struct allocate_request {
  QUARRY_MESSAGE(allocate_request);
  using reply = allocate_reply;
  rid region = root;
  std::uint64_t size = 0;
  std::uint64_t alignment = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(allocate_request, region), QUARRY_FIELD(allocate_request, size),
                      QUARRY_FIELD(allocate_request, alignment));
  }
};
struct allocate_bulk_reply {
  QUARRY_MESSAGE(allocate_bulk_reply);
  std::vector<address> objects;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(allocate_bulk_reply, objects)); }
};
struct allocate_bulk_request {
  QUARRY_MESSAGE(allocate_bulk_request);
  using reply = allocate_bulk_reply;
  rid region = root;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(allocate_bulk_request, region),
                      QUARRY_FIELD(allocate_bulk_request, size),
                      QUARRY_FIELD(allocate_bulk_request, count));
  }
};
/// A request whose objects belong to several schedulers gets one reply from each.
struct free_reply {
  QUARRY_MESSAGE(free_reply);
  std::uint64_t freed = 0;
  std::vector<failed_free> failures;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(free_reply, freed), QUARRY_FIELD(free_reply, failures));
  }
};
struct free_request {
  QUARRY_MESSAGE(free_request);
  using reply = free_reply;
  std::vector<address> objects;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(free_request, objects)); }
};
struct resize_reply {
  QUARRY_MESSAGE(resize_reply);
  bool in_place = false;
  std::uint64_t old_size = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(resize_reply, in_place), QUARRY_FIELD(resize_reply, old_size));
  }
};
/// Resizes the object in place if it belongs to the region.
struct resize_request {
  QUARRY_MESSAGE(resize_request);
  using reply = resize_reply;
  address object = 0;
  std::uint64_t size = 0;
  rid region = root;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(resize_request, object), QUARRY_FIELD(resize_request, size),
                      QUARRY_FIELD(resize_request, region));
  }
};
struct size_reply {
  QUARRY_MESSAGE(size_reply);
  std::uint64_t size = 0;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(size_reply, size)); }
};
struct size_request {
  QUARRY_MESSAGE(size_request);
  using reply = size_reply;
  address object = 0;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(size_request, object)); }
};

// ---- leases -------------------------------------------------------------------------------------

struct lease_reply {
  QUARRY_MESSAGE(lease_reply);
  std::vector<slab_slots> slabs;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(lease_reply, slabs)); }
};
struct lease_request {
  QUARRY_MESSAGE(lease_request);
  using reply = lease_reply;
  rid region = root;
  std::uint64_t slot_size = 0;
  std::uint64_t max_slots = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(lease_request, region), QUARRY_FIELD(lease_request, slot_size),
                      QUARRY_FIELD(lease_request, max_slots));
  }
};
/// To a worker: the regions are being destroyed; drop all leases in them.
struct lease_recall {
  QUARRY_MESSAGE(lease_recall);
  using reply = acknowledgement;
  std::vector<rid> regions;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(lease_recall, regions)); }
};
/// To a worker: other workers freed these leased objects; their slots are no longer leased.
struct lease_revocation {
  QUARRY_MESSAGE(lease_revocation);
  using reply = acknowledgement;
  std::vector<address> objects;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(lease_revocation, objects)); }
};
/// From a worker: free slots that it does not need.
struct lease_return {
  QUARRY_MESSAGE(lease_return);
  rid region = root;
  std::vector<slab_slots> slabs;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(lease_return, region), QUARRY_FIELD(lease_return, slabs));
  }
};
/// From a worker: live objects that become ordinary objects of the region.
struct lease_release {
  QUARRY_MESSAGE(lease_release);
  rid region = root;
  std::vector<slab_slots> slabs;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(lease_release, region), QUARRY_FIELD(lease_release, slabs));
  }
};

// ---- pages --------------------------------------------------------------------------------------

/// In answer to a page_request, with the same ticket. No runs: there are no pages.
struct page_grant {
  QUARRY_MESSAGE(page_grant);
  std::vector<page_run> runs;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(page_grant, runs)); }
};
/// To the parent: at least `min_run` consecutive pages inside the window, up to `wanted` in all.
struct page_request {
  QUARRY_MESSAGE(page_request);
  using reply = page_grant;
  std::uint64_t min_run = 0;
  std::uint64_t wanted = 0;
  std::uint64_t window = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(page_request, min_run), QUARRY_FIELD(page_request, wanted),
                      QUARRY_FIELD(page_request, window));
  }
};
/// To the parent: pages that the sender does not use.
struct page_return {
  QUARRY_MESSAGE(page_return);
  std::vector<page_run> runs;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(page_return, runs)); }
};
/// To a child: return all unused pages, then acknowledge.
struct page_recall {
  QUARRY_MESSAGE(page_recall);
  using reply = acknowledgement;
  static constexpr auto fields() { return std::tuple(); }
};

// ---- all nodes ----------------------------------------------------------------------------------

/// Acknowledged when all workers have sent it. A scheduler sends one to its parent when it has one
/// from each child.
struct barrier_request {
  QUARRY_MESSAGE(barrier_request);
  using reply = acknowledgement;
  static constexpr auto fields() { return std::tuple(); }
};
/// The regions and objects that still exist in the whole cluster.
struct finish_reply {
  QUARRY_MESSAGE(finish_reply);
  std::uint64_t regions = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(finish_reply, regions), QUARRY_FIELD(finish_reply, objects),
                      QUARRY_FIELD(finish_reply, bytes));
  }
};
/// As barrier_request, and the last request of a worker. The sums are of the sender's subtree.
struct finish_request {
  QUARRY_MESSAGE(finish_request);
  using reply = finish_reply;
  std::uint64_t regions = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(finish_request, regions), QUARRY_FIELD(finish_request, objects),
                      QUARRY_FIELD(finish_request, bytes));
  }
};
/// To the parent: the number of regions in the sender's subtree.
struct load_report {
  QUARRY_MESSAGE(load_report);
  std::uint64_t regions = 0;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(load_report, regions)); }
};
/// From a worker to the top scheduler: what it did since its last report.
struct progress_report {
  QUARRY_MESSAGE(progress_report);
  std::uint64_t allocations = 0;
  std::uint64_t calls = 0;
  std::uint64_t messages = 0;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(progress_report, allocations),
                      QUARRY_FIELD(progress_report, calls),
                      QUARRY_FIELD(progress_report, messages));
  }
};

// ---- between workers ----------------------------------------------------------------------------

/// The receiver accepts (status ok) or rejects the offer. in_place: it has the bytes already, by
/// shared memory; otherwise the sender sends them.
struct transfer_reply {
  QUARRY_MESSAGE(transfer_reply);
  bool in_place = false;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(transfer_reply, in_place)); }
};
/// A sender that cannot pack its regions offers the status of that failure.
struct transfer_offer {
  QUARRY_MESSAGE(transfer_offer);
  using reply = transfer_reply;
  std::vector<rid> regions;
  std::vector<address> objects;
  std::vector<address_run> ranges;
  bool hand_over = false;      // the sender's access ends
  bool shares_memory = false;  // the receiver may read or map `files`
  std::vector<file_range> files;
  static constexpr auto fields() {
    return std::tuple(QUARRY_FIELD(transfer_offer, regions), QUARRY_FIELD(transfer_offer, objects),
                      QUARRY_FIELD(transfer_offer, ranges), QUARRY_FIELD(transfer_offer, hand_over),
                      QUARRY_FIELD(transfer_offer, shares_memory),
                      QUARRY_FIELD(transfer_offer, files));
  }
};
/// From the receiver of a hand-over to the sender, before its transfer_reply: the pages that it
/// gives in exchange.
struct page_exchange {
  QUARRY_MESSAGE(page_exchange);
  std::vector<file_range> files;
  static constexpr auto fields() { return std::tuple(QUARRY_FIELD(page_exchange, files)); }
};

#undef QUARRY_FIELD
#undef QUARRY_MESSAGE

/// All bodies. The order is that of the table in docs/cluster.md.
using all_bodies =
    std::tuple<create_region_request, destroy_region_request, allocate_request,
               allocate_bulk_request, free_request, resize_request, size_request, pack_request,
               barrier_request, finish_request, lease_request, lease_recall, lease_revocation,
               lease_return, lease_release, create_remote_request, remote_child_destroyed,
               page_request, page_return, page_recall, load_report, progress_report, transfer_offer,
               page_exchange, acknowledgement, create_region_reply, allocate_reply,
               allocate_bulk_reply, free_reply, resize_reply, size_reply, pack_reply, finish_reply,
               lease_reply, page_grant, transfer_reply>;
static_assert(std::tuple_size_v<all_bodies> == message_kinds);

template <class Body>
message make_message(node to, const Body& body, std::uint64_t ticket = 0) {
  message m;
  m.kind = Body::kind;
  m.to = to;
  m.ticket = ticket;
  encode(body, m.body);
  return m;
}

/// The reply of node `self` to the sender of a request.
template <class Body>
message make_reply(node self, const envelope& request, region_status status, const Body& body) {
  message m = make_message(request.from, body, request.ticket);
  m.from = self;
  m.status = status;
  return m;
}

/// The body of a message; nothing if the message has another kind or is malformed.
template <class Body>
std::optional<Body> body_of(const message& m) {
  if (m.kind != Body::kind) return {};
  return decode<Body>(m.body);
}

}  // namespace quarry::cluster::detail

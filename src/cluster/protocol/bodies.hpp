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
/// The members that are encoded, in this order, and their names.
#define QUARRY_FIELDS(...)                              \
  auto fields() { return std::tie(__VA_ARGS__); }       \
  auto fields() const { return std::tie(__VA_ARGS__); } \
  static constexpr const char* field_names = #__VA_ARGS__

// ---- parts of messages --------------------------------------------------------------------------

/// Slots of one slab: bit i of the mask is the slot at base + i * 64.
struct slab_slots {
  static constexpr const char* name = "slab_slots";
  address base = 0;
  std::uint64_t mask = 0;
  QUARRY_FIELDS(base, mask);
};

struct address_run {
  static constexpr const char* name = "address_run";
  address base = 0;
  std::uint64_t size = 0;  // bytes
  QUARRY_FIELDS(base, size);
};

/// Consecutive pages of the cluster's address space.
struct page_run {
  static constexpr const char* name = "page_run";
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t end() const { return first + count; }
  explicit operator bool() const { return count != 0; }
  QUARRY_FIELDS(first, count);
};

struct failed_free {
  static constexpr const char* name = "failed_free";
  address object = 0;
  region_status status = region_status::ok;
  QUARRY_FIELDS(object, status);
};

/// A part of a worker's memory file: `size` bytes of the file of worker `file`, at `offset`.
struct file_range {
  static constexpr const char* name = "file_range";
  node_id file = no_node;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  QUARRY_FIELDS(file, offset, size);
};

// ---- replies without fields; failed requests ----------------------------------------------------

struct acknowledgement {
  QUARRY_MESSAGE(acknowledgement);
  QUARRY_FIELDS();
};

// ---- regions ------------------------------------------------------------------------------------

struct create_region_reply {
  QUARRY_MESSAGE(create_region_reply);
  rid region = root;
  QUARRY_FIELDS(region);
};
/// level_hint: the depth of the region below the root, 0 for a child of the root; -1: unknown.
struct create_region_request {
  QUARRY_MESSAGE(create_region_request);
  using reply = create_region_reply;
  rid parent = root;
  std::int64_t level_hint = -1;
  QUARRY_FIELDS(parent, level_hint);
};
/// by_parent: the owner of the parent destroys the region; it needs no remote_child_destroyed.
struct destroy_region_request {
  QUARRY_MESSAGE(destroy_region_request);
  using reply = acknowledgement;
  rid region = root;
  bool by_parent = false;
  QUARRY_FIELDS(region, by_parent);
};
struct pack_reply {
  QUARRY_MESSAGE(pack_reply);
  std::uint64_t live_bytes = 0;
  std::vector<rid> regions;  // the region and its descendants
  std::vector<address_run> ranges;
  QUARRY_FIELDS(live_bytes, regions, ranges);
};
struct pack_request {
  QUARRY_MESSAGE(pack_request);
  using reply = pack_reply;
  rid region = root;
  QUARRY_FIELDS(region);
};
/// From a scheduler to one below: create a region whose parent this scheduler owns.
struct create_remote_request {
  QUARRY_MESSAGE(create_remote_request);
  using reply = create_region_reply;
  rid parent = root;
  std::int64_t level_hint = -1;
  node_id requester = no_node;  // the worker that creates the region
  QUARRY_FIELDS(parent, level_hint, requester);
};
/// To the owner of the parent: its remote child no longer exists.
struct remote_child_destroyed {
  QUARRY_MESSAGE(remote_child_destroyed);
  rid child = root;
  rid parent = root;
  QUARRY_FIELDS(child, parent);
};

// ---- objects ------------------------------------------------------------------------------------

struct allocate_reply {
  QUARRY_MESSAGE(allocate_reply);
  address object = 0;
  QUARRY_FIELDS(object);
};
struct allocate_request {
  QUARRY_MESSAGE(allocate_request);
  using reply = allocate_reply;
  rid region = root;
  std::uint64_t size = 0;
  std::uint64_t alignment = 0;
  QUARRY_FIELDS(region, size, alignment);
};
struct allocate_bulk_reply {
  QUARRY_MESSAGE(allocate_bulk_reply);
  std::vector<address> objects;
  QUARRY_FIELDS(objects);
};
struct allocate_bulk_request {
  QUARRY_MESSAGE(allocate_bulk_request);
  using reply = allocate_bulk_reply;
  rid region = root;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  QUARRY_FIELDS(region, size, count);
};
/// A request whose objects belong to several schedulers gets one reply from each.
struct free_reply {
  QUARRY_MESSAGE(free_reply);
  std::uint64_t freed = 0;
  std::vector<failed_free> failures;
  QUARRY_FIELDS(freed, failures);
};
struct free_request {
  QUARRY_MESSAGE(free_request);
  using reply = free_reply;
  std::vector<address> objects;
  QUARRY_FIELDS(objects);
};
struct resize_reply {
  QUARRY_MESSAGE(resize_reply);
  bool in_place = false;
  std::uint64_t old_size = 0;
  QUARRY_FIELDS(in_place, old_size);
};
/// Resizes the object in place if it belongs to the region.
struct resize_request {
  QUARRY_MESSAGE(resize_request);
  using reply = resize_reply;
  address object = 0;
  std::uint64_t size = 0;
  rid region = root;
  QUARRY_FIELDS(object, size, region);
};
struct size_reply {
  QUARRY_MESSAGE(size_reply);
  std::uint64_t size = 0;
  QUARRY_FIELDS(size);
};
struct size_request {
  QUARRY_MESSAGE(size_request);
  using reply = size_reply;
  address object = 0;
  QUARRY_FIELDS(object);
};

// ---- leases -------------------------------------------------------------------------------------

struct lease_reply {
  QUARRY_MESSAGE(lease_reply);
  std::vector<slab_slots> slabs;
  QUARRY_FIELDS(slabs);
};
struct lease_request {
  QUARRY_MESSAGE(lease_request);
  using reply = lease_reply;
  rid region = root;
  std::uint64_t slot_size = 0;
  std::uint64_t max_slots = 0;
  QUARRY_FIELDS(region, slot_size, max_slots);
};
/// To a worker: the regions are being destroyed; drop all leases in them.
struct lease_recall {
  QUARRY_MESSAGE(lease_recall);
  using reply = acknowledgement;
  std::vector<rid> regions;
  QUARRY_FIELDS(regions);
};
/// To a worker: other workers freed these leased objects; their slots are no longer leased.
struct lease_revocation {
  QUARRY_MESSAGE(lease_revocation);
  using reply = acknowledgement;
  std::vector<address> objects;
  QUARRY_FIELDS(objects);
};
/// From a worker: free slots that it does not need.
struct lease_return {
  QUARRY_MESSAGE(lease_return);
  rid region = root;
  std::vector<slab_slots> slabs;
  QUARRY_FIELDS(region, slabs);
};
/// From a worker: live objects that become ordinary objects of the region.
struct lease_release {
  QUARRY_MESSAGE(lease_release);
  rid region = root;
  std::vector<slab_slots> slabs;
  QUARRY_FIELDS(region, slabs);
};

// ---- pages --------------------------------------------------------------------------------------

/// In answer to a page_request, with the same ticket. No runs: there are no pages.
struct page_grant {
  QUARRY_MESSAGE(page_grant);
  std::vector<page_run> runs;
  QUARRY_FIELDS(runs);
};
/// To the parent: at least `min_run` consecutive pages inside the window, up to `wanted` in all.
/// in_advance: no allocation waits for the pages, so the parent recalls none and may grant none.
struct page_request {
  QUARRY_MESSAGE(page_request);
  using reply = page_grant;
  std::uint64_t min_run = 0;
  std::uint64_t wanted = 0;
  std::uint64_t window = 0;
  bool in_advance = false;
  QUARRY_FIELDS(min_run, wanted, window, in_advance);
};
/// To the parent: pages that the sender does not use.
struct page_return {
  QUARRY_MESSAGE(page_return);
  std::vector<page_run> runs;
  QUARRY_FIELDS(runs);
};
/// To a child: return all unused pages, then acknowledge.
struct page_recall {
  QUARRY_MESSAGE(page_recall);
  using reply = acknowledgement;
  QUARRY_FIELDS();
};

// ---- all nodes ----------------------------------------------------------------------------------

/// Acknowledged when all workers have sent it. A scheduler sends one to its parent when it has one
/// from each child.
struct barrier_request {
  QUARRY_MESSAGE(barrier_request);
  using reply = acknowledgement;
  QUARRY_FIELDS();
};
/// The regions and objects that still exist in the whole cluster.
struct finish_reply {
  QUARRY_MESSAGE(finish_reply);
  std::uint64_t regions = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  QUARRY_FIELDS(regions, objects, bytes);
};
/// As barrier_request, and the last request of a worker. The sums are of the sender's subtree.
struct finish_request {
  QUARRY_MESSAGE(finish_request);
  using reply = finish_reply;
  std::uint64_t regions = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  QUARRY_FIELDS(regions, objects, bytes);
};
/// To the parent: the number of regions in the sender's subtree.
struct load_report {
  QUARRY_MESSAGE(load_report);
  std::uint64_t regions = 0;
  QUARRY_FIELDS(regions);
};
/// From a worker to the top scheduler: what it did since its last report.
struct progress_report {
  QUARRY_MESSAGE(progress_report);
  std::uint64_t allocations = 0;
  std::uint64_t calls = 0;
  std::uint64_t messages = 0;
  QUARRY_FIELDS(allocations, calls, messages);
};

// ---- between workers ----------------------------------------------------------------------------

/// The receiver accepts (status ok) or rejects the offer. in_place: it has the bytes already, by
/// shared memory; otherwise the sender sends them.
struct transfer_reply {
  QUARRY_MESSAGE(transfer_reply);
  bool in_place = false;
  QUARRY_FIELDS(in_place);
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
  QUARRY_FIELDS(regions, objects, ranges, hand_over, shares_memory, files);
};
/// From the receiver of a hand-over to the sender, before its transfer_reply: the pages that it
/// gives in exchange.
struct page_exchange {
  QUARRY_MESSAGE(page_exchange);
  std::vector<file_range> files;
  QUARRY_FIELDS(files);
};

#undef QUARRY_FIELDS
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
message make_message(node_id to, const Body& body, std::uint64_t ticket = 0) {
  message m;
  m.kind = Body::kind;
  m.to = to;
  m.ticket = ticket;
  encode(body, m.body);
  return m;
}

/// The reply of node `self` to the sender of a request.
template <class Body>
message make_reply(node_id self, const envelope& request, region_status status, const Body& body) {
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

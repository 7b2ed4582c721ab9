// SPDX-License-Identifier: Apache-2.0
#pragma once
/// message: what nodes send to each other, except for the bytes of objects. A fixed envelope and an
/// encoded body. bodies.hpp defines a struct with named fields for the body of each kind.
///
/// Schedulers between the sender and the receiver forward a message unchanged; they do not decode
/// the body. The reply to a request carries the ticket of the request and goes to its sender.

#include <quarry/cluster/shape.hpp>
#include <quarry/region/status.hpp>

#include <cstdint>
#include <vector>

namespace quarry::cluster::detail {

enum class message_kind : std::uint8_t {
  acknowledgement,
  create_region_request,
  create_region_reply,
  destroy_region_request,
  allocate_request,
  allocate_reply,
  allocate_bulk_request,
  allocate_bulk_reply,
  free_request,
  free_reply,
  resize_request,
  resize_reply,
  size_request,
  size_reply,
  pack_request,
  pack_reply,
  barrier_request,
  finish_request,
  finish_reply,
  create_remote_request,
  remote_child_destroyed,
  page_request,
  page_grant,
  page_return,
  page_recall,
  load_report,
  progress_report,
  lease_request,
  lease_reply,
  lease_recall,
  lease_revocation,
  lease_return,
  lease_release,
  transfer_offer,
  transfer_reply,
  page_exchange,
};
inline constexpr std::uint64_t message_kinds = 36;

struct envelope {
  message_kind kind = message_kind::acknowledgement;
  region_status status = region_status::ok;  // of replies and offers
  std::uint8_t hops = 0;                     // of a request that is routed by an address
  node_id from = no_node;
  node_id to = no_node;
  std::uint64_t ticket = 0;
};

struct message : envelope {
  std::vector<std::uint64_t> body;
};

}  // namespace quarry::cluster::detail

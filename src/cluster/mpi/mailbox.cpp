// SPDX-License-Identifier: Apache-2.0
#include "cluster/mpi/mailbox.hpp"

#include <quarry/core/error.hpp>

#include <algorithm>
#include <iterator>
#include <string>

namespace quarry::cluster::detail {

void mpi_mailbox::post(node_id to, const message& m) {
  std::list<buffer> one = unused_buffer();
  buffer& b = one.front();
  encode_message(m, b.wire);
  MPI_Isend(b.wire.data(), static_cast<int>(b.wire.size()), MPI_UINT64_T, static_cast<int>(to), 0,
            comm_, &b.request);
  std::list<buffer>& list = has_ended(b) ? unused_ : outgoing_;
  list.splice(list.end(), one);
}

bool mpi_mailbox::try_receive(message& m) {
  match_arrivals();
  for (auto b = incoming_.begin(); b != incoming_.end(); ++b) {
    if (!has_ended(*b)) continue;
    const bool is_first = std::none_of(
        incoming_.begin(), b, [&](const buffer& before) { return before.peer == b->peer; });
    if (!is_first) continue;
    const bool ok = decode_message(b->wire, m);
    const int sender = b->peer;
    unused_.splice(unused_.end(), incoming_, b);
    if (!ok)
      throw error("rank " + std::to_string(sender) +
                  " sent a message that cannot be decoded; do all ranks run the same program?");
    return true;
  }
  return false;
}

bool mpi_mailbox::progress() {
  bool any_ended = false;
  for (auto b = outgoing_.begin(); b != outgoing_.end();) {
    const auto next = std::next(b);
    if (has_ended(*b)) {
      unused_.splice(unused_.end(), outgoing_, b);
      any_ended = true;
    }
    b = next;
  }
  return any_ended;
}

bool mpi_mailbox::has_ended(buffer& b) {
  if (b.request == MPI_REQUEST_NULL) return true;
  int ended = 0;
  MPI_Test(&b.request, &ended, MPI_STATUS_IGNORE);
  return ended != 0;
}

std::list<mpi_mailbox::buffer> mpi_mailbox::unused_buffer() {
  std::list<buffer> one;
  if (unused_.empty())
    one.emplace_back();
  else
    one.splice(one.end(), unused_, unused_.begin());
  // The memory of a long message is not kept.
  if (one.front().wire.capacity() > max_unused_words) one.front().wire = {};
  return one;
}

void mpi_mailbox::match_arrivals() {
  for (unsigned i = 0; i < max_matched; ++i) {
    int arrived = 0;
    MPI_Message matched;
    MPI_Status status;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &arrived, &matched, &status);
    if (arrived == 0) return;
    int count = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    incoming_.splice(incoming_.end(), unused_buffer());
    buffer& b = incoming_.back();
    b.wire.resize(static_cast<std::size_t>(count));
    b.peer = status.MPI_SOURCE;
    MPI_Imrecv(b.wire.data(), count, MPI_UINT64_T, &matched, &b.request);
  }
}

}  // namespace quarry::cluster::detail

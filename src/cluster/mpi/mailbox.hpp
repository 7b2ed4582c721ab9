// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mpi_mailbox: messages between processes, as words on a communicator of their own.
///
/// post() starts a send, which MPI completes later; the mailbox keeps the words until then.
/// try_receive() matches what has arrived from any sender and returns the first complete message
/// before which no incomplete message of the same sender was matched.
///
/// Invariant: messages of one sender are received in the order in which it posted them. MPI matches
/// them in that order, and a complete message waits for those before it.
/// Progress: every call advances all sends and receives; no call blocks.

#include "cluster/protocol/wire.hpp"

#include <quarry/cluster/detail/mpi.hpp>

#include <cstddef>
#include <list>
#include <vector>

namespace quarry::cluster::detail {

class mpi_mailbox {
 public:
  /// Collective over `world`.
  explicit mpi_mailbox(MPI_Comm world) { MPI_Comm_dup(world, &comm_); }
  mpi_mailbox(const mpi_mailbox&) = delete;
  mpi_mailbox& operator=(const mpi_mailbox&) = delete;
  /// Collective. Requires all_sent(), and that no message to this process is in transit.
  ~mpi_mailbox() { MPI_Comm_free(&comm_); }

  void post(node_id to, const message& m);
  /// Throws error if a message cannot be decoded.
  bool try_receive(message& m);

  /// Advances sends. Returns whether one has ended.
  bool progress();
  bool all_sent() const { return outgoing_.empty(); }
  /// No message is partly sent or partly received.
  bool is_quiescent() const { return outgoing_.empty() && incoming_.empty(); }

 private:
  struct buffer {
    std::vector<std::uint64_t> wire;
    MPI_Request request = MPI_REQUEST_NULL;
    int peer = MPI_PROC_NULL;
  };

  static constexpr unsigned max_matched = 64;  // per call, so that try_receive returns
  static constexpr std::size_t max_unused_words = 4096;

  static bool has_ended(buffer& b);
  std::list<buffer> unused_buffer();
  void match_arrivals();

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::list<buffer> outgoing_;
  std::list<buffer> incoming_;  // in the order in which MPI matched them
  std::list<buffer> unused_;
};

}  // namespace quarry::cluster::detail

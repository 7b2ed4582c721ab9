// SPDX-License-Identifier: Apache-2.0
#pragma once
/// link: a worker's connection to the other nodes. One implementation uses MPI, the other the
/// simulated network.
///
/// Ordering: messages from one node to another arrive in the order in which they were posted. There
/// is no order between different pairs of nodes. The bytes of objects travel beside the messages.
/// Progress: no call blocks; idle() may suspend the caller for a bounded time.

#include "cluster/protocol/bodies.hpp"

#include <quarry/region/packing.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace quarry::cluster::detail {

/// Bytes in transit. finished() makes progress and must be called until it returns true.
class transfer {
 public:
  virtual ~transfer() = default;
  virtual bool finished() = 0;
};

class link {
 public:
  using file_ranges = std::optional<std::vector<file_range>>;

  virtual ~link() = default;
  virtual node_id self() const = 0;
  virtual const shape& tree() const = 0;

  virtual void post(message m) = 0;
  /// Moves the next message for this node to m. Returns false if there is none.
  virtual bool try_receive(message& m) = 0;
  /// Called when the worker can do nothing until a message arrives or a transfer ends.
  virtual void idle() = 0;

  /// Both sides pass the same ranges, in the same order. Requires: nothing writes to the ranges
  /// until the transfer has finished.
  virtual std::unique_ptr<transfer> send_bytes(node_id to, std::span<const packed_range> from) = 0;
  virtual std::unique_ptr<transfer> receive_bytes(node_id from,
                                                  std::span<const packed_range> to) = 0;

  /// The distance from an address of the cluster to this worker's bytes. Other than 0 only for
  /// simulated workers with separate memories in one process.
  virtual std::ptrdiff_t local_offset() const { return 0; }
  /// Frees the memory of the range. The range reads as zeros afterwards.
  virtual void discard(packed_range range) = 0;
  /// This worker owns the range from now on: access to it is enabled.
  virtual void enable_access(packed_range) {}

  // ---- shared memory between workers of one host ----
  virtual bool shares_memory_with(node_id) const { return false; }
  /// Names the files behind the ranges, for copy_shared() or map_shared() by another worker.
  /// Nothing: the ranges cannot be shared.
  virtual file_ranges export_ranges(std::span<const packed_range>) { return {}; }
  /// Copies from the sender's files. Returns false if that is not possible.
  virtual bool copy_shared(std::span<const file_range>, std::span<const packed_range>) {
    return false;
  }
  /// Maps the sender's files and gives this worker's pages in exchange. Returns false, without
  /// effect, if that is not possible.
  virtual bool map_shared([[maybe_unused]] node_id sender, std::span<const file_range>,
                          std::span<const packed_range>) {
    return false;
  }
  /// Ends this worker's ownership of the ranges. exchanged: the receiver has mapped them.
  virtual void give_up(std::span<const packed_range> ranges, [[maybe_unused]] bool exchanged) {
    for (const packed_range& r : ranges) discard(r);
  }

  /// Seconds since a fixed time in the past, real or simulated.
  virtual double now() const = 0;
  /// In simulations: the worker computes for this many seconds. No effect otherwise.
  virtual void advance_time([[maybe_unused]] double seconds) {}
};

}  // namespace quarry::cluster::detail

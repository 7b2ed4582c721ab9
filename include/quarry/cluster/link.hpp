// SPDX-License-Identifier: Apache-2.0
#pragma once
/// link: how a worker reaches the others; one for MPI, one for the simulated network.
///
/// Messages from one node to another arrive in the order in which they were posted; nothing is
/// promised between different pairs. post never waits for the receiver. Bytes of objects travel
/// beside the messages, from place to place.

#include <quarry/cluster/message.hpp>
#include <quarry/region/packing.hpp>

#include <memory>
#include <span>

namespace quarry::cluster {

/// Bytes on their way.
class transfer {
 public:
  virtual ~transfer() = default;
  virtual bool finished() = 0;
};

class link {
 public:
  virtual ~link() = default;
  virtual node self() const = 0;
  virtual const shape& tree() const = 0;

  virtual void post(message m) = 0;
  /// The next message for this node, if there is one.
  virtual bool take(message& m) = 0;
  /// Nothing to do until a message arrives or a transfer ends: lets others go on for a while.
  virtual void idle() = 0;

  /// Both sides name the same ranges, in order. Requires: the memory stays as it is meanwhile.
  virtual std::unique_ptr<transfer> send_bytes(node to, std::span<const packed_range> from) = 0;
  virtual std::unique_ptr<transfer> receive_bytes(node from, std::span<const packed_range> to) = 0;

  /// Where this worker finds the bytes of an address. The same address, but for simulated workers
  /// that have memory of their own inside one process.
  virtual std::byte* local(void* address) const { return static_cast<std::byte*>(address); }
  /// The memory of the range is not needed any more; it reads as zeros afterwards.
  virtual void discard(packed_range range) = 0;

  /// The range holds what is this worker's from now on: it may be touched.
  virtual void ready(packed_range) {}

  // For workers of one machine. Without: the bytes are sent.
  virtual bool shares_memory_with(node) const { return false; }
  /// What the other needs to find the memory of these ranges; nothing: it can not.
  virtual std::vector<std::uint64_t> lend(std::span<const packed_range>) { return {}; }
  /// Copies what the sender lent. False: that is not possible.
  virtual bool copy(node, std::span<const std::uint64_t>, std::span<const packed_range>) {
    return false;
  }
  /// Maps what the giver lent. False: that is not possible; nothing changed.
  virtual bool adopt(node, std::span<const std::uint64_t>, std::span<const packed_range>) {
    return false;
  }
  /// The ranges are another worker's now; it maps this one's memory, or has a copy.
  virtual void let_go(std::span<const packed_range> ranges, [[maybe_unused]] bool mapped) {
    for (const packed_range& r : ranges) discard(r);
  }

  /// Seconds since some time in the past: real or simulated.
  virtual double now() const = 0;
  /// In simulations: the worker computes for so many seconds. Real ones do not need to be told.
  virtual void pass([[maybe_unused]] double seconds) {}
};

}  // namespace quarry::cluster

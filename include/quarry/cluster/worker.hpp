// SPDX-License-Identifier: Apache-2.0
#pragma once
/// worker: the calls of Figure 1 of Lyberis et al. (2012), and extensions.
///
/// The scheduler that owns a region or an address carries out the call; the worker sends a request
/// and waits for the reply. Addresses are equal in all workers. A worker writes to its own copy of
/// the memory; other workers see the bytes after a transfer. send() copies, hand_over() moves.
///
/// Leases: after a few allocations of one size class in one region, the worker leases a batch of
/// slots of that class. It then allocates and frees those slots without messages. Deallocations of
/// other objects are collected and sent in batches; flush() reports their errors. A batch is sent
/// and acknowledged before any call from which other workers could learn of it: transfers,
/// barriers, destruction of regions. To deallocate an object and to destroy its region from two
/// workers without such a call in between is a race, with or without batches.
///
/// While a worker waits, and at the start of every call that sends a request, it serves other
/// nodes: schedulers that recall leases, workers that offer transfers. A worker that computes for a
/// long time without a call delays only the destruction of regions in which it holds leases.
///
/// Thread safety: none. One thread uses a worker.

#include <quarry/cluster/id.hpp>
#include <quarry/cluster/options.hpp>
#include <quarry/region/packing.hpp>
#include <quarry/region/status.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace quarry::cluster {

namespace detail {
class link;
}

class worker {
 public:
  explicit worker(detail::link& l, worker_options options = {});
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker();

  unsigned number() const;
  unsigned count() const;
  /// The schedulers and workers of the cluster.
  const shape& tree() const;

  // ---- regions and objects ----
  /// level_hint: the depth of the region below the root, 0 for a child of the root; -1: unknown.
  region_result<rid> create_region(rid parent, int level_hint = -1);
  /// Destroys the region, its descendants and all their objects.
  region_status destroy_region(rid id);
  region_result<void*> allocate(rid region, std::size_t size, std::size_t alignment = 64);
  /// Allocates out.size() objects, or none.
  region_status allocate_bulk(rid region, std::size_t size, std::span<void*> out);
  /// A pointer that is no object may be reported later, by flush().
  region_status deallocate(void* p);
  /// Returns n bytes at p or elsewhere in `region`, with the contents of p. p == nullptr allocates,
  /// n == 0 deallocates.
  region_result<void*> reallocate(void* p, std::size_t n, rid region);
  region_result<std::size_t> usable_size(const void* p);
  /// The address ranges that cover the live objects of the region and its descendants.
  region_result<packed_region> pack(rid region);
  /// Sends the collected deallocations. Returns the first failure since the last flush.
  region_status flush();

  // ---- transfers between workers ----
  /// Copies regions and objects to the peer. Returns when the peer has received or rejected them.
  region_status send(unsigned peer, std::span<const rid> regions,
                     std::span<void* const> objects = {});
  /// Receives what the peer sends. Entries that are 0 or nullptr are filled in; other entries must
  /// equal what the peer sends, in the same order.
  region_status receive(unsigned peer, std::span<rid> regions, std::span<void*> objects = {});
  /// Sends and receives at the same time.
  region_status exchange(unsigned peer, std::span<const rid> outgoing, std::span<rid> incoming);
  /// As send and receive, but the sender's access ends: the peer owns the memory afterwards.
  region_status hand_over(unsigned peer, std::span<const rid> regions);
  region_status take_over(unsigned peer, std::span<rid> regions);
  /// Returns when all workers have called it.
  void barrier();

  // ---- memory and time ----
  /// Frees this worker's copy of the region's objects. The objects stay allocated.
  region_status discard(rid region);
  /// Where this worker's bytes of an address are: the address itself, except in isolated
  /// simulations.
  template <class T>
  T* local(T* p) const {
    using bytes = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return reinterpret_cast<T*>(reinterpret_cast<bytes*>(p) + local_offset_);
  }
  bool shares_memory_with(unsigned peer) const;
  /// Seconds since a fixed time in the past, real or simulated.
  double now() const;
  /// In simulations: this worker computes for `seconds`. No effect otherwise.
  void advance_time(double seconds);

  /// Serves requests of other nodes, without waiting.
  void serve();
  /// Collective: returns leases and waits for all workers. Requires: no other call follows.
  leaks finish();

  const worker_statistics& statistics() const;

 private:
  class state;
  std::unique_ptr<state> state_;
  std::ptrdiff_t local_offset_;
};

}  // namespace quarry::cluster

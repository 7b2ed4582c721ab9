// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mpi_network: the cluster over MPI. A node is a rank: first the schedulers, then the workers.
///
/// Schedulers and their neighbours exchange messages along the tree; workers exchange messages
/// directly. There are three communicators, so that nothing is mixed: messages (mailbox.hpp), bytes
/// (byte_transfer.hpp) and signs of life (watchdog.hpp). One thread calls MPI, and never blocks
/// inside. It waits in idle(), which advances everything and then backs off (back_off.hpp). While a
/// message or transfer is incomplete it does not sleep, since MPI moves bytes only when it is
/// called.

#include "cluster/memory/worker_memory.hpp"
#include "cluster/mpi/back_off.hpp"
#include "cluster/mpi/byte_transfer.hpp"
#include "cluster/mpi/mailbox.hpp"
#include "cluster/mpi/watchdog.hpp"
#include "cluster/scheduler/state.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace quarry::cluster::detail {

/// The ranks of world on this host.
class mpi_host {
 public:
  explicit mpi_host(MPI_Comm world);
  mpi_host(const mpi_host&) = delete;
  mpi_host& operator=(const mpi_host&) = delete;
  ~mpi_host() { MPI_Comm_free(&comm_); }
  MPI_Comm comm() const { return comm_; }

  /// Collective: whether this host runs more ranks than it has processors for them.
  bool is_oversubscribed() const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

class mpi_network {
 public:
  /// Collective over world. scheduler_timeout: see watchdog.hpp.
  mpi_network(MPI_Comm world, const mpi_host& host, shape tree, node_id self,
              double scheduler_timeout);

  const shape& tree() const { return tree_; }
  node_id self() const { return self_; }

  void post(const message& m);
  bool try_receive(message& m);
  /// has_transfers: transfers of bytes are incomplete as well.
  void idle(bool has_transfers = false);
  /// Collective: returns when all ranks have called it and have sent everything.
  void finish(MPI_Comm world);

 private:
  shape tree_;
  node_id self_;
  mpi_mailbox mailbox_;
  mpi_watchdog watchdog_;
  back_off back_off_;
  std::uint64_t received_ = 0;
};

/// The loop of a scheduler's rank until all workers have finished. Calls on_poll() between
/// messages.
void serve(mpi_network& net, scheduler& s, const std::function<void()>& on_poll);

/// A worker's connection over MPI.
///
/// In a hand-over (worker_memory.hpp), the receiver's link sends the pages that it gives in
/// exchange as a page_exchange to the sender's link, before the receiver's transfer_reply. So they
/// have arrived when the sender calls give_up(). A worker has one hand-over at a time.
class mpi_link final : public link {
 public:
  /// bytes: a communicator for transfers only; it outlives the link.
  mpi_link(mpi_network& net, worker_memory& memory, MPI_Comm bytes, transfer_limits limits = {})
      : net_(&net), memory_(&memory), bytes_(bytes), limits_(limits) {}

  node_id self() const override { return net_->self(); }
  const shape& tree() const override { return net_->tree(); }
  void post(message m) override { net_->post(m); }
  bool try_receive(message& m) override;
  void idle() override;
  std::unique_ptr<transfer> send_bytes(node_id to, std::span<const packed_range> from) override;
  std::unique_ptr<transfer> receive_bytes(node_id from, std::span<const packed_range> to) override;
  void discard(packed_range range) override { memory_->discard(range); }
  void enable_access(packed_range range) override { memory_->enable_access(range); }
  bool shares_memory_with(node_id other) const override { return memory_->shares_with(other); }
  file_ranges export_ranges(std::span<const packed_range> ranges) override {
    return memory_->export_ranges(ranges);
  }
  bool copy_shared(std::span<const file_range> files,
                   std::span<const packed_range> ranges) override {
    return memory_->copy_shared(files, ranges);
  }
  bool map_shared(node_id sender, std::span<const file_range> files,
                  std::span<const packed_range> ranges) override;
  void give_up(std::span<const packed_range> ranges, bool exchanged) override;
  double now() const override { return MPI_Wtime(); }

 private:
  class registered_transfer;

  mpi_network* net_;
  worker_memory* memory_;
  MPI_Comm bytes_;
  transfer_limits limits_;
  std::vector<registered_transfer*> transfers_;  // idle() advances them
  std::vector<file_range> exchanged_;            // from the receiver of the current hand-over
};

}  // namespace quarry::cluster::detail

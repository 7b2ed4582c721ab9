// SPDX-License-Identifier: Apache-2.0
#include "cluster/mpi/network.hpp"

#include <sched.h>

#include <deque>
#include <utility>

namespace quarry::cluster::detail {

// ---- host ---------------------------------------------------------------------------------------

mpi_host::mpi_host(MPI_Comm world) {
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm_);
}

bool mpi_host::is_oversubscribed() const {
  cpu_set_t mine, all;
  CPU_ZERO(&mine);
  ::sched_getaffinity(0, sizeof mine, &mine);
  MPI_Allreduce(&mine, &all, sizeof mine, MPI_UNSIGNED_CHAR, MPI_BOR, comm_);
  int ranks = 0;
  MPI_Comm_size(comm_, &ranks);
  return ranks > CPU_COUNT(&all);
}

// ---- network ------------------------------------------------------------------------------------

mpi_network::mpi_network(MPI_Comm world, const mpi_host& host, shape tree, node_id self,
                         double scheduler_timeout)
    : tree_(std::move(tree)),
      self_(self),
      mailbox_(world),
      watchdog_(world, host.comm(), tree_, self, scheduler_timeout),
      back_off_(host.is_oversubscribed()) {}

void mpi_network::post(const message& m) {
  const bool direct = tree_.is_worker(self_) && tree_.is_worker(m.to);
  mailbox_.post(direct ? m.to : tree_.next_hop(self_, m.to), m);
}

bool mpi_network::try_receive(message& m) {
  if (!mailbox_.try_receive(m)) return false;
  back_off_.reset();
  if (++received_ % 256 == 0) watchdog_.check(false);
  return true;
}

void mpi_network::idle(bool has_transfers) {
  if (mailbox_.progress()) back_off_.reset();
  watchdog_.check(true);
  if (has_transfers || !mailbox_.is_quiescent())
    back_off_.yield();
  else
    back_off_.wait();
}

void mpi_network::finish(MPI_Comm world) {
  message late;
  while (!mailbox_.all_sent()) idle();
  MPI_Request all_arrived;
  MPI_Ibarrier(world, &all_arrived);
  for (int ended = 0; ended == 0;) {
    MPI_Test(&all_arrived, &ended, MPI_STATUS_IGNORE);
    if (!mailbox_.try_receive(late) && ended == 0) idle();
  }
  while (mailbox_.try_receive(late)) {
  }
}

void serve(mpi_network& net, scheduler& s, const std::function<void()>& on_poll) {
  std::deque<message> local;  // messages of the scheduler to itself are not sent
  std::vector<message> out;
  message m;
  for (const message& first : s.start()) net.post(first);
  while (!s.has_finished()) {
    on_poll();
    if (!net.try_receive(m)) {
      net.idle();
      continue;
    }
    local.push_back(std::move(m));
    while (!local.empty()) {
      s.receive(std::move(local.front()), out);
      local.pop_front();
      for (message& o : out)
        if (o.to == net.self())
          local.push_back(std::move(o));
        else
          net.post(o);
      out.clear();
    }
  }
}

// ---- link ---------------------------------------------------------------------------------------

/// A transfer that the link knows, so that idle() advances it.
class mpi_link::registered_transfer final : public transfer {
 public:
  registered_transfer(mpi_link& owner, direction d, node_id peer,
                      std::span<const packed_range> ranges)
      : owner_(&owner), bytes_(owner.bytes_, d, peer, ranges, owner.limits_) {
    owner_->transfers_.push_back(this);
  }
  registered_transfer(const registered_transfer&) = delete;
  registered_transfer& operator=(const registered_transfer&) = delete;
  ~registered_transfer() override { std::erase(owner_->transfers_, this); }
  bool finished() override { return bytes_.finished(); }

 private:
  mpi_link* owner_;
  mpi_transfer bytes_;
};

bool mpi_link::try_receive(message& m) {
  while (net_->try_receive(m)) {
    if (m.kind != message_kind::page_exchange) return true;
    auto body = body_of<page_exchange>(m);
    if (!body) throw error("a page_exchange of rank " + std::to_string(m.from) + " is malformed");
    exchanged_ = std::move(body->files);
  }
  return false;
}

void mpi_link::idle() {
  bool has_transfers = false;
  for (registered_transfer* t : transfers_) has_transfers |= !t->finished();
  net_->idle(has_transfers);
}

std::unique_ptr<transfer> mpi_link::send_bytes(node_id to, std::span<const packed_range> from) {
  for (const packed_range& r : from)
    if (memory_->is_protected(r))
      throw error("this worker sends memory that it has handed over before");
  return std::make_unique<registered_transfer>(*this, direction::send, to, from);
}

std::unique_ptr<transfer> mpi_link::receive_bytes(node_id from, std::span<const packed_range> to) {
  for (const packed_range& r : to) memory_->enable_access(r);
  return std::make_unique<registered_transfer>(*this, direction::receive, from, to);
}

bool mpi_link::map_shared(node_id sender, std::span<const file_range> files,
                          std::span<const packed_range> ranges) {
  auto own = memory_->map_shared(files, ranges);
  if (!own) return false;
  message m = make_message(sender, page_exchange{*std::move(own)});
  m.from = self();
  net_->post(m);
  return true;
}

void mpi_link::give_up(std::span<const packed_range> ranges, bool exchanged) {
  if (exchanged)
    memory_->map_exchanged(std::exchange(exchanged_, {}), ranges);
  else
    memory_->give_up(ranges);
}

}  // namespace quarry::cluster::detail

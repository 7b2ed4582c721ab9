// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mpi_network: the cluster over MPI. A node is a rank: schedulers come first, then workers.
///
/// Schedulers and their neighbours talk along the tree; workers talk to each other directly. Three
/// communicators, so that nothing mixes: messages (mpi_mailbox.hpp), bytes (mpi_bytes.hpp), signs
/// of life (mpi_watchdog.hpp). Only one thread calls MPI, and it never waits inside: waiting is
/// idle(), which moves everything on and then lets others run (back_off.hpp); while something is
/// half sent or half received it does not sleep, for MPI moves bytes only when it is called.

#include <quarry/cluster/back_off.hpp>
#include <quarry/cluster/link.hpp>
#include <quarry/cluster/mpi_bytes.hpp>
#include <quarry/cluster/mpi_mailbox.hpp>
#include <quarry/cluster/mpi_watchdog.hpp>
#include <quarry/cluster/shared_memory.hpp>

#include <sched.h>

#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace quarry::cluster {

/// The ranks of world on this host.
class mpi_host {
 public:
  explicit mpi_host(MPI_Comm world) {
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm_);
  }
  mpi_host(const mpi_host&) = delete;
  mpi_host& operator=(const mpi_host&) = delete;
  ~mpi_host() { MPI_Comm_free(&comm_); }
  MPI_Comm comm() const { return comm_; }

  /// Collective: whether there are more ranks here than cores that they may use.
  bool is_crowded() const {
    cpu_set_t mine, all;
    CPU_ZERO(&mine);
    ::sched_getaffinity(0, sizeof mine, &mine);
    MPI_Allreduce(&mine, &all, sizeof mine, MPI_UNSIGNED_CHAR, MPI_BOR, comm_);
    int ranks = 0;
    MPI_Comm_size(comm_, &ranks);
    return ranks > CPU_COUNT(&all);
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

class mpi_network {
 public:
  /// Collective over world. patience: mpi_watchdog.hpp.
  mpi_network(MPI_Comm world, const mpi_host& host, const shape& tree, node self, double patience)
      : tree_(tree),
        self_(self),
        mail_(world),
        dog_(world, host.comm(), tree_, self, patience),
        pause_(host.is_crowded()) {}

  const shape& tree() const { return tree_; }
  node self() const { return self_; }

  void post(const message& m) {
    const bool direct = tree_.is_worker(self_) && tree_.is_worker(m.to);
    mail_.post(direct ? m.to : tree_.next_hop(self_, m.to), m);
  }
  bool take(message& m) {
    const bool got = mail_.take(m);
    if (!got) return false;
    pause_.moved();
    if (++taken_ % 256 == 0) dog_.look(false);
    return true;
  }
  /// bytes_move: a transfer is under way as well.
  void idle(bool bytes_move = false) {
    if (mail_.progress()) pause_.moved();
    dog_.look(true);
    if (bytes_move || !mail_.is_quiet())
      pause_.yield();
    else
      pause_.wait();
  }
  bool all_sent() const { return mail_.all_sent(); }

  /// Collective: returns when all ranks are here and have sent everything.
  void finish(MPI_Comm world) {
    message late;
    while (!all_sent()) idle();
    MPI_Request all_here;
    MPI_Ibarrier(world, &all_here);
    for (int ended = 0; ended == 0;) {
      MPI_Test(&all_here, &ended, MPI_STATUS_IGNORE);
      if (!mail_.take(late) && ended == 0) idle();
    }
    while (mail_.take(late)) {
    }
  }

 private:
  shape tree_;
  node self_;
  mpi_mailbox mail_;
  mpi_watchdog dog_;
  back_off pause_;
  std::uint64_t taken_ = 0;
};

/// What a scheduler's rank does until all workers have ended. look() is called again and again.
template <class Scheduler, class Look>
void serve(mpi_network& net, Scheduler& s, Look look) {
  std::deque<message> here;
  std::vector<message> out;
  message m;
  while (!s.ended()) {
    look();
    if (!net.take(m)) {
      net.idle();
      continue;
    }
    here.push_back(std::move(m));
    while (!here.empty()) {
      s.receive(std::move(here.front()), out);
      here.pop_front();
      for (message& o : out)
        if (o.to == net.self())
          here.push_back(std::move(o));
        else
          net.post(o);
      out.clear();
    }
  }
}

/// A worker's way to the others.
///
/// Hand-overs (shared_memory.hpp): what the receiver gives in return goes to the giver as a message
/// between the two links, before the receiver's answer; so it is there when the giver lets go. A
/// worker hands over one thing at a time.
class mpi_link final : public link {
 public:
  /// bytes: a communicator that nothing else uses; it outlives this.
  mpi_link(mpi_network& net, room& memory, MPI_Comm bytes, byte_limits limits = {})
      : net_(&net), room_(&memory), bytes_(bytes), limits_(limits) {}

  node self() const override { return net_->self(); }
  const shape& tree() const override { return net_->tree(); }

  void post(message m) override { net_->post(m); }
  bool take(message& m) override {
    while (net_->take(m)) {
      if (m.what != verb::hand_over) return true;
      returned_ = std::move(m.words);
    }
    return false;
  }
  void idle() override {
    bool moving = false;
    for (known_transfer* t : under_way_) moving |= !t->finished();
    net_->idle(moving);
  }

  std::unique_ptr<transfer> send_bytes(node to, std::span<const packed_range> from) override {
    for (const packed_range& r : from)
      if (room_->is_fenced(r)) throw error("memory is sent that was handed over before");
    return std::make_unique<known_transfer>(*this, direction::out, to, from);
  }
  std::unique_ptr<transfer> receive_bytes(node from, std::span<const packed_range> to) override {
    for (const packed_range& r : to) room_->ready(r);
    return std::make_unique<known_transfer>(*this, direction::in, from, to);
  }

  void discard(packed_range range) override { room_->discard(range); }
  /// The range is of an object that is this worker's from now on.
  void ready(packed_range range) override { room_->ready(range); }

  bool shares_memory_with(node other) const override { return room_->knows(other); }
  std::vector<std::uint64_t> lend(std::span<const packed_range> ranges) override {
    return room_->lend(ranges);
  }
  bool copy(node, std::span<const std::uint64_t> words,
            std::span<const packed_range> ranges) override {
    return room_->copy(words, ranges);
  }
  bool adopt(node giver, std::span<const std::uint64_t> words,
             std::span<const packed_range> ranges) override {
    message back;
    back.what = verb::hand_over;
    back.from = self();
    back.to = giver;
    back.words = room_->adopt(words, ranges);
    if (back.words.empty()) return false;
    net_->post(back);
    return true;
  }
  void let_go(std::span<const packed_range> ranges, bool mapped) override {
    room_->part(mapped ? std::exchange(returned_, {}) : std::vector<std::uint64_t>{}, ranges);
  }

  double now() const override { return MPI_Wtime(); }

 private:
  /// Known to the link, which moves it on whoever waits for what.
  class known_transfer final : public transfer {
   public:
    known_transfer(mpi_link& in, direction way, node peer, std::span<const packed_range> ranges)
        : link_(&in), bytes_(in.bytes_, way, peer, ranges, in.limits_) {
      link_->under_way_.push_back(this);
    }
    known_transfer(const known_transfer&) = delete;
    known_transfer& operator=(const known_transfer&) = delete;
    ~known_transfer() override { std::erase(link_->under_way_, this); }
    bool finished() override { return bytes_.finished(); }

   private:
    mpi_link* link_;
    mpi_transfer bytes_;
  };

  mpi_network* net_;
  room* room_;
  MPI_Comm bytes_;
  byte_limits limits_;
  std::vector<known_transfer*> under_way_;
  std::vector<std::uint64_t> returned_;  // by the one that something is being handed over to
};

}  // namespace quarry::cluster

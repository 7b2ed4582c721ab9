// SPDX-License-Identifier: Apache-2.0
#pragma once
/// simulation::engine: the event queue of a simulation, its schedulers, and its workers as fibers.

#include "cluster/scheduler/state.hpp"
#include "cluster/simulation/last_arrivals.hpp"
#include "cluster/worker/link.hpp"

#include <quarry/cluster/simulation.hpp>
#include <quarry/region/detail/address_range.hpp>
#include <quarry/simt/detail/fiber.hpp>

#include <chrono>
#include <deque>
#include <exception>
#include <queue>
#include <random>
#include <vector>

namespace quarry::cluster {

class simulation::engine {
 public:
  engine(simulation& owner, const simulation_options& options);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  void run(const std::function<void(cluster::worker&)>& worker_main);
  std::string check_invariants() const;
  const shape& tree() const { return shape_; }
  const simulation_result& result() const { return result_; }
  const detail::scheduler& scheduler_at(node_id n) const { return *schedulers_[n]; }

 private:
  friend class sim_link;
  friend class sim_transfer;

  struct event {
    double time;
    std::uint64_t number;  // orders events of equal time
    node_id at;
    std::unique_ptr<detail::message> m;
    bool operator<(const event& o) const {
      return time != o.time ? time > o.time : number > o.number;
    }
  };
  /// Bytes that were sent to a worker and have not been received.
  struct byte_batch {
    node_id from;
    double arrival;
    std::vector<std::byte> contents;
  };
  struct worker_state {
    simt::detail::fiber thread;
    std::unique_ptr<sim_link> connection;
    std::deque<detail::message> inbox;
    double time = 0;  // virtual
    bool started = false;
    bool waiting = false;
    bool ended = false;
    std::exception_ptr exception;
    worker_statistics statistics;
    std::deque<byte_batch> bytes;
    address_range memory;                            // isolated: the worker's own memory
    std::chrono::steady_clock::time_point measured;  // measure: computation before is accounted for
  };

  std::size_t stack_stride() const { return options_.stack + simt::detail::guard_bytes; }
  static void enter();
  void run_worker(unsigned number);
  void resume(unsigned number);
  void deliver(event e);
  void post(node_id from, double time, detail::message m);
  void post_all(node_id from, double time, std::vector<detail::message> all);
  double arrival_time(node_id from, node_id to, double time, double size);
  [[noreturn]] void report_deadlock() const;
  void add_worker_sums();
  void release_stacks();

  simulation& owner_;
  simulation_options options_;
  shape shape_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<detail::scheduler>> schedulers_;
  std::vector<double> busy_until_;       // of each scheduler
  std::vector<std::uint64_t> received_;  // messages of each scheduler
  std::vector<worker_state> workers_;
  detail::last_arrivals last_arrivals_;
  std::priority_queue<event> events_;
  std::uint64_t next_event_ = 0;
  simulation_result result_;
  address_range memory_;  // not isolated: the memory of all workers
  char* stacks_ = nullptr;
  simt::detail::fiber main_;
  unsigned running_ = 0;
  const std::function<void(cluster::worker&)>* worker_main_ = nullptr;
  static thread_local engine* current_;
};

/// A transfer ends at once for the sender, and on arrival of the bytes for the receiver.
class simulation::sim_transfer final : public detail::transfer {
 public:
  sim_transfer() = default;
  sim_transfer(engine& e, unsigned at, node_id from, std::vector<packed_range> to)
      : engine_(&e), at_(at), from_(from), to_(std::move(to)) {}
  bool finished() override;

 private:
  engine* engine_ = nullptr;  // nullptr: finished
  unsigned at_ = 0;
  node_id from_ = no_node;
  std::vector<packed_range> to_;
};

class simulation::sim_link final : public detail::link {
 public:
  sim_link(engine& e, unsigned number) : engine_(&e), number_(number) {}

  node_id self() const override { return engine_->shape_.worker(number_); }
  const shape& tree() const override { return engine_->shape_; }
  void post(detail::message m) override;
  bool try_receive(detail::message& m) override;
  void idle() override;
  std::unique_ptr<detail::transfer> send_bytes(node_id to,
                                               std::span<const packed_range> from) override;
  std::unique_ptr<detail::transfer> receive_bytes(node_id from,
                                                  std::span<const packed_range> to) override;
  std::ptrdiff_t local_offset() const override;
  void discard(packed_range range) override;
  double now() const override;
  void advance_time(double seconds) override { me().time += seconds; }

  std::byte* local(std::byte* address) const { return address + local_offset(); }

 private:
  /// Adds the computation since the last call to virtual time, if it is measured.
  void account_computation();
  engine::worker_state& me() const { return engine_->workers_[number_]; }

  engine* engine_;
  unsigned number_;
};

}  // namespace quarry::cluster

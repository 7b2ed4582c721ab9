// SPDX-License-Identifier: Apache-2.0
#pragma once
/// simulation: a whole cluster in one thread: schedulers, workers, and a network in virtual time.
///
///   quarry::cluster::simulation s({.workers = 64, .seed = 7});
///   s.run([](quarry::cluster::worker& w) { ... });      // every worker runs this
///
/// Workers are fibers: one runs until it waits, then time goes on to the next event. A message takes
/// `latency`, and a random part of `jitter` more, for each hop; so messages of different pairs
/// overtake each other while those of one pair do not. A scheduler serves one message at a time,
/// each for `service`: what arrives meanwhile queues. A seed decides everything; equal seeds give
/// equal runs, unless computation is measured. A run that fails gives its workers up where they are:
/// what they hold on their stacks is not destroyed.
///
/// Memory: `isolated` gives every worker memory of its own behind worker::local, so that what was not
/// sent is not there: for tests. Else all workers share real memory at the cluster's addresses and
/// programs use pointers as they are; then sends copy nothing, they only take their time.

#include <quarry/cluster/scheduler.hpp>
#include <quarry/cluster/worker.hpp>
#include <quarry/simt/detail/fiber.hpp>

#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <queue>
#include <random>

namespace quarry::cluster {

struct simulation_options {
  unsigned workers = 4;
  ratios tree = {};
  std::uint64_t seed = 1;
  double latency = 2e-6;    // seconds a hop
  double jitter = 2e-6;     // at most so much more
  double bandwidth = 10e9;  // bytes a second between workers
  double service = 0.5e-6;  // of a scheduler, for each message
  double call = 0.1e-6;     // of a worker, for each message it sends or receives
  bool measure = false;     // computation takes the time that it takes here
  bool isolated = false;
  std::uint64_t room = std::uint64_t{1} << 36;
  std::uint64_t plenty = 64;  // see scheduler_options
  std::size_t stack = std::size_t{256} << 10;
  worker_options worker = {};
  detail::fault fault = detail::fault::none;  // of the schedulers and the workers; for tests
};

struct simulation_result {
  double seconds = 0;  // virtual
  std::uint64_t events = 0;
  std::uint64_t messages = 0;  // hops of all messages
  double queued = 0;           // seconds that messages waited for schedulers, all together
  double longest_queue = 0;    // the longest wait of one
  std::uint64_t scheduler_messages = 0;
  std::uint64_t busiest_scheduler = 0;  // messages of the one that had most
  worker_statistics workers;            // sums
  leaks left;
};

class simulation {
 public:
  explicit simulation(const simulation_options& options);
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;
  ~simulation() { release_stacks(); }

  /// Once. Throws what a worker threw; throws when nobody can go on, with the names of who waits.
  simulation_result run(const std::function<void(cluster::worker&)>& worker_main);

  const shape& tree() const { return shape_; }
  /// What happened until now; the workers' sums come at the end.
  const simulation_result& so_far() const { return result_; }
  /// Of a scheduler, or of all: empty when sound. After run.
  std::string check_invariants() const;
  const scheduler& scheduler_at(node n) const { return *schedulers_[n]; }

  /// Called after every event, with the number of events so far; for tests that look inside.
  std::function<void(std::uint64_t)> after_event;

 private:
  class sim_link;
  class sim_transfer;

  struct event {
    double time;
    std::uint64_t number;  // earlier ones first
    node at;
    std::unique_ptr<message> m;  // nullptr: bytes have arrived
    bool operator<(const event& o) const {
      return time != o.time ? time > o.time : number > o.number;
    }
  };
  struct worker_state {
    simt::detail::fiber thread;
    std::unique_ptr<sim_link> connection;
    std::deque<message> inbox;
    double time = 0;
    bool begun = false;
    bool waiting = false;
    bool ended = false;
    std::exception_ptr fault;
    worker_statistics statistics;
    struct parcel {
      node from;
      double arrival;
      std::vector<std::byte> contents;
    };
    std::deque<parcel> bytes;  // sent to here, not yet taken
    address_range memory;      // isolated: its own
    std::chrono::steady_clock::time_point seen;
  };

  std::size_t stack_stride() const { return options_.stack + simt::detail::guard_bytes; }
  static void enter();
  void worker_life(unsigned number);
  void resume(unsigned number);
  void deliver(event e);
  /// Posts to the neighbour on the way, or straight to another worker.
  void post(node from, double time, message m);
  double arrival(node from, node to, double time, double size);
  [[noreturn]] void report_standstill() const;
  void release_stacks();

  simulation_options options_;
  shape shape_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<scheduler>> schedulers_;
  std::vector<double> busy_until_;
  std::vector<std::uint64_t> received_;
  std::vector<worker_state> workers_;
  std::unordered_map<std::uint64_t, double> last_arrival_;  // of a pair
  std::priority_queue<event> events_;
  std::uint64_t next_event_ = 0;
  simulation_result result_;
  address_range room_;
  char* stacks_ = nullptr;
  simt::detail::fiber main_;
  unsigned running_ = 0;
  const std::function<void(cluster::worker&)>* worker_main_ = nullptr;
  static inline thread_local simulation* here_ = nullptr;
};

/// Bytes that were sent: done at once for the sender, on arrival for the receiver.
class simulation::sim_transfer final : public transfer {
 public:
  sim_transfer() = default;
  sim_transfer(simulation& s, unsigned at, node from, std::vector<packed_range> to)
      : sim_(&s), at_(at), from_(from), to_(std::move(to)) {}
  bool finished() override;

 private:
  simulation* sim_ = nullptr;
  unsigned at_ = 0;
  node from_ = no_node;
  std::vector<packed_range> to_;
};

class simulation::sim_link final : public link {
 public:
  sim_link(simulation& s, unsigned number) : sim_(&s), number_(number) {}

  node self() const override { return sim_->shape_.worker(number_); }
  const shape& tree() const override { return sim_->shape_; }
  void post(message m) override {
    pass_time();
    me().time += sim_->options_.call;
    sim_->post(self(), me().time, std::move(m));
  }
  bool take(message& m) override {
    if (me().inbox.empty()) return false;
    pass_time();
    me().time += sim_->options_.call;
    m = std::move(me().inbox.front());
    me().inbox.pop_front();
    return true;
  }
  void idle() override {
    pass_time();
    me().waiting = true;
    simt::detail::fiber::jump(me().thread, sim_->main_, true);
  }
  std::unique_ptr<transfer> send_bytes(node to, std::span<const packed_range> from) override;
  std::unique_ptr<transfer> receive_bytes(node from, std::span<const packed_range> to) override {
    return std::make_unique<sim_transfer>(*sim_, number_, from,
                                          std::vector<packed_range>(to.begin(), to.end()));
  }
  std::byte* local(void* address) const override {
    if (!sim_->options_.isolated) return static_cast<std::byte*>(address);
    return sim_->workers_[number_].memory.base() +
           (reinterpret_cast<std::uint64_t>(address) - default_base);
  }
  void discard(packed_range range) override {
    if (sim_->options_.isolated) std::memset(local(range.address), 0, range.size);
  }
  void pass(double seconds) override { me().time += seconds; }
  double now() const override {
    const_cast<sim_link*>(this)->pass_time();
    return sim_->workers_[number_].time;
  }

 private:
  /// What was computed since the last look took its time.
  void pass_time() {
    if (!sim_->options_.measure) return;
    const auto now = std::chrono::steady_clock::now();
    me().time += std::chrono::duration<double>(now - me().seen).count();
    me().seen = now;
  }
  worker_state& me() { return sim_->workers_[number_]; }
  simulation* sim_;
  unsigned number_;
};

}  // namespace quarry::cluster

#include <quarry/cluster/simulation_run.hpp>

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// simulation: a whole cluster in one thread: schedulers, workers, and a network in virtual time.
///
///   quarry::cluster::simulation s({.workers = 64, .seed = 7});
///   s.run([](quarry::cluster::worker& w) { ... });      // every worker runs this
///
/// Workers are fibers. A worker runs until it waits; then virtual time advances to the next event.
/// A message takes `latency`, plus a random part of `jitter`, per hop. Messages of different pairs
/// of nodes overtake each other; messages of one pair do not. A scheduler serves one message at a
/// time, each for `service`; messages that arrive in the meantime queue. The seed decides
/// everything: equal seeds give equal runs, unless computation is measured. A run that fails
/// abandons its workers: the objects on their stacks are not destroyed.
///
/// Memory: with `isolated`, each worker has its own memory behind worker::local, so that bytes that
/// were not sent are not there; tests use this. Otherwise all workers share memory at the addresses
/// of the cluster and programs use plain pointers; transfers then copy nothing but take their time.

#include <quarry/cluster/options.hpp>
#include <quarry/cluster/worker.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace quarry::cluster {

struct simulation_options {
  unsigned workers = 4;
  ratios tree = {};
  std::uint64_t seed = 1;
  double latency = 2e-6;    // seconds per hop
  double jitter = 2e-6;     // the largest random addition to the latency, in seconds
  double bandwidth = 10e9;  // bytes per second between workers
  double service = 0.5e-6;  // seconds of a scheduler per message
  double call = 0.1e-6;     // seconds of a worker per message that it sends or receives
  bool measure = false;     // computation advances virtual time by its real duration
  bool isolated = false;
  std::uint64_t capacity = std::uint64_t{1} << 36;  // bytes of the address space
  scheduler_tuning tuning = {};
  std::size_t stack = std::size_t{256} << 10;  // bytes of a worker's stack
  worker_options worker = {};
  detail::fault fault = detail::fault::none;  // of the schedulers and the workers; for tests
};

struct simulation_result {
  double seconds = 0;  // virtual
  std::uint64_t events = 0;
  std::uint64_t messages = 0;  // hops of all messages
  double queued = 0;           // seconds that messages waited for schedulers, in all
  double longest_queue = 0;    // the longest wait of one message, in seconds
  std::uint64_t scheduler_messages = 0;
  std::uint64_t busiest_scheduler = 0;  // messages of the scheduler that received the most
  worker_statistics workers;            // sums
  leaks left;
};

class simulation {
 public:
  explicit simulation(const simulation_options& options);
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;
  ~simulation();

  /// Runs the program once. Throws what a worker threw. Throws error, with the numbers of the
  /// waiting workers, if no message is in transit and workers still wait.
  simulation_result run(const std::function<void(cluster::worker&)>& worker_main);

  const shape& tree() const;
  /// The result until now. The sums of the workers are added at the end.
  const simulation_result& so_far() const;
  /// Empty: the invariants of all schedulers hold. Requires: run() has returned.
  std::string check_invariants() const;
  scheduler_statistics statistics_of(node_id scheduler) const;

  /// Called after every event with the number of events so far.
  std::function<void(std::uint64_t)> after_event;

 private:
  class engine;
  class sim_link;
  class sim_transfer;
  std::unique_ptr<engine> engine_;
};

}  // namespace quarry::cluster

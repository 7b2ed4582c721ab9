// SPDX-License-Identifier: Apache-2.0
#pragma once
/// run: a program as a cluster under mpirun.
///
///   int main(int argc, char** argv) {
///     return quarry::cluster::run(argc, argv, [](quarry::cluster::worker& w) { ... });
///   }
///   mpirun -n 17 ./program
///
/// The first ranks become schedulers, the others workers. Each worker runs the function once;
/// schedulers serve until all workers have finished. run() initializes and finalizes MPI, unless
/// the program has initialized MPI before; then the program also finalizes it.
///
/// All ranks need the same options. run() compares them at the start: if a rank differs, one line
/// on stderr names the option, both values and the rank, and run() returns 2 on every rank.
///
/// At the end, all workers wait for each other, leases are returned, and one line reports what was
/// not freed. run() returns the same value on every rank: the largest value that a worker's
/// function returned; or 1 if that is 0, memory was leaked, and leak_policy::fail is set. An
/// exception that leaves a worker's function, a call of exit() inside it, or a rank that ends in
/// another way ends the job: a line on stderr names the rank, and mpirun returns an error.
///
/// The simulation needs quarry::cluster_core alone; run() is in quarry::cluster, which links MPI.

#include <quarry/cluster/options.hpp>
#include <quarry/cluster/worker.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quarry::cluster {

enum class leak_policy {
  report,  // prints a line on stderr
  quiet,   // prints nothing
  fail     // prints a line, and run() returns 1
};

/// How the bytes of objects are divided into MPI messages.
struct transfer_limits {
  std::size_t max_part = std::size_t{1} << 30;    // bytes of a message, below 2^31
  std::size_t min_alone = std::size_t{64} << 10;  // a range of this size has its own message
  std::size_t max_ranges = 1024;                  // ranges in a message
};

struct run_options {
  ratios tree = {};  // determines, with the number of ranks, the tree of schedulers
  worker_options worker = {};
  scheduler_options scheduler = {};  // run() determines base and capacity
  leak_policy leaks = leak_policy::report;
  std::uint64_t capacity = default_capacity;  // bytes of addresses, at most
  bool share_memory = true;  // workers of one host share memory: hand-overs do not copy
  bool protect = false;      // an access to memory that was handed over ends the program
  /// Seconds without a sign of life of a neighbouring scheduler before the job ends; 0: no limit.
  double scheduler_timeout = 60;
  bool status = false;  // the top scheduler prints a line on stderr every second
  transfer_limits transfers = {};
  /// Arguments of the program, as names and values that run() compares like the other options.
  std::vector<std::pair<std::string, std::string>> arguments = {};
};

namespace detail {

int run_program(int argc, char** argv, const run_options& options,
                const std::function<int(worker&)>& worker_main);

}  // namespace detail

/// worker_main(worker&) returns nothing, or a number for the exit code.
template <class WorkerMain>
int run(int argc, char** argv, const run_options& options, WorkerMain worker_main) {
  return detail::run_program(argc, argv, options, [&](worker& w) -> int {
    if constexpr (std::is_void_v<decltype(worker_main(w))>)
      return worker_main(w), 0;
    else
      return static_cast<int>(worker_main(w));
  });
}
template <class WorkerMain>
int run(int argc, char** argv, WorkerMain worker_main) {
  return run(argc, argv, run_options{}, std::move(worker_main));
}
template <class WorkerMain>
int run(const run_options& options, WorkerMain worker_main) {
  return run(0, nullptr, options, std::move(worker_main));
}

}  // namespace quarry::cluster

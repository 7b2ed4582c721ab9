// SPDX-License-Identifier: Apache-2.0
#pragma once
/// run: a program as a cluster under mpirun.
///
///   int main(int argc, char** argv) {
///     return quarry::cluster::run(argc, argv, [](quarry::cluster::worker& w) { ... });
///   }
///   mpirun -n 17 ./program
///
/// The first ranks become schedulers, the rest workers; each worker runs the function once, and
/// schedulers serve until all have ended. MPI is started and ended here, unless the program has
/// done so before and will do so after.
///
/// The end: all workers wait for each other, leases go back, and what no one freed is reported
/// once. run returns the same on every rank: the largest number a worker's function returned; 1
/// where that is 0, something leaked, and leaks are to fail. An exception that leaves a worker's
/// function, an exit() inside it, or a rank that ends in another way, ends the job: a line on
/// stderr names the rank, mpirun returns an error. How soon a vanished rank is noticed is told in
/// mpi_watchdog.hpp.

#include <quarry/cluster/mpi_network.hpp>
#include <quarry/cluster/scheduler.hpp>
#include <quarry/cluster/worker.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>

namespace quarry::cluster {

enum class leak_policy {
  report,  // a line on stderr
  quiet,
  fail  // report, and run returns 1
};

struct run_options {
  ratios tree = {};  // with the number of ranks: how many schedulers, in which tree
  worker_options worker = {};
  scheduler_options scheduler = {};  // base and room are found out
  leak_policy leaks = leak_policy::report;
  std::uint64_t room = address_space::most;  // bytes of addresses
  bool share_memory = true;                  // of workers on one host: hand-overs do not copy
  bool fence = false;                        // touching what was handed over ends the program
  double patience = 60;  // seconds without a sign of life of a scheduler; 0: for ever
  bool status = false;   // a line on stderr every second, from the scheduler at the top
  byte_limits bytes = {};
};

namespace detail {

/// MPI for as long as a run lasts.
class mpi_session {
 public:
  mpi_session(int* argc, char*** argv) {
    int begun = 0;
    MPI_Initialized(&begun);
    ours_ = begun == 0;
    int level = MPI_THREAD_SINGLE;
    if (ours_) MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
  }
  mpi_session(const mpi_session&) = delete;
  mpi_session& operator=(const mpi_session&) = delete;
  ~mpi_session() {
    if (ours_) MPI_Finalize();
  }

 private:
  bool ours_ = false;
};

class communicator {
 public:
  explicit communicator(MPI_Comm of) { MPI_Comm_dup(of, &comm_); }
  communicator(MPI_Comm of, bool member) {
    MPI_Comm_split(of, member ? 0 : MPI_UNDEFINED, 0, &comm_);
  }
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  ~communicator() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  operator MPI_Comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

inline bool everybody(MPI_Comm comm, bool mine) {
  int say = mine ? 1 : 0, all = 0;
  MPI_Allreduce(&say, &all, 1, MPI_INT, MPI_LAND, comm);
  return all != 0;
}

/// Collective over the workers of a host: they open each other's rooms, or none does.
inline void open_rooms(room& mine, MPI_Comm workers) {
  int count = 0;
  MPI_Comm_size(workers, &count);
  const room::door here = mine.own_door();
  std::vector<room::door> doors(static_cast<std::size_t>(count));
  MPI_Allgather(&here, sizeof here, MPI_BYTE, doors.data(), sizeof here, MPI_BYTE, workers);
  if (!everybody(workers, mine.open(doors))) mine.close_others();
}

/// A program that calls exit() in a worker's function would leave the others waiting.
class exit_guard {
 public:
  explicit exit_guard(std::string name) {
    [[maybe_unused]] static const int once = std::atexit([] {
      if (!inside_.empty()) end_job(inside_ + " called exit");
    });
    inside_ = std::move(name);
  }
  exit_guard(const exit_guard&) = delete;
  exit_guard& operator=(const exit_guard&) = delete;
  ~exit_guard() { inside_.clear(); }

 private:
  static inline std::string inside_;
};

/// Whatever leaves f ends the job, while MPI is still as it was.
template <class F>
auto or_end_job(const std::string& name, F f) {
  try {
    return f();
  } catch (const std::exception& e) {
    end_job(name + ": " + e.what());
  } catch (...) {
    end_job(name + ": an exception that is no std::exception");
  }
}

inline std::string counted(std::uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}
inline void report(const leaks& left, leak_policy policy) {
  if (policy == leak_policy::quiet || left.regions + left.objects == 0) return;
  std::fprintf(stderr, "quarry: not freed at the end: %s, %s (%s)\n",
               counted(left.regions, "region").c_str(), counted(left.objects, "object").c_str(),
               to_text(quarry::bytes(left.bytes)).c_str());
}

/// Once a second: what the scheduler at the top sees.
class status_line {
 public:
  explicit status_line(const scheduler& top) : top_(&top) {}
  void operator()() {
    const double now = MPI_Wtime();
    if (now - last_ < 1) return;
    const std::uint64_t messages = top_->statistics().messages;
    std::fprintf(
        stderr, "quarry: %.0f s, %.0f messages/s at the top, %llu regions, %llu pages in use\n",
        now - start_, static_cast<double>(messages - messages_) / (now - last_),
        static_cast<unsigned long long>(top_->load()),
        static_cast<unsigned long long>(top_->pages().pages() - top_->pages().free_pages()));
    last_ = now;
    messages_ = messages;
  }

 private:
  const scheduler* top_;
  double start_ = MPI_Wtime();
  double last_ = start_;
  std::uint64_t messages_ = 0;
};

/// What a worker's rank does. The number its function returned.
inline int work(const run_options& options, mpi_network& net, room& memory, MPI_Comm bytes,
                const std::function<int(worker&)>& worker_main) {
  mpi_link connection(net, memory, bytes, options.bytes);
  worker w(connection, options.worker);
  const std::string name = name_of(net.tree(), net.self());
  int result = 0;
  {
    const exit_guard guard(name);
    result = or_end_job(name, [&] { return worker_main(w); });
  }
  const leaks left = w.finish();
  if (w.number() == 0) report(left, options.leaks);
  const bool leaked = left.regions + left.objects != 0;
  return result == 0 && leaked && options.leaks == leak_policy::fail ? 1 : result;
}

inline int run_ranks(const run_options& options, const std::function<int(worker&)>& worker_main) {
  const communicator world(MPI_COMM_WORLD), bytes(MPI_COMM_WORLD);
  int rank = 0, size = 0;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  const node self = static_cast<node>(rank);
  const shape tree = shape::for_nodes(static_cast<unsigned>(size), options.tree);
  const bool is_worker = tree.is_worker(self);
  const mpi_host host(world);
  const communicator mates(host.comm(), is_worker);
  mpi_network net(world, host, tree, self, options.patience);
  const address_space space =
      address_space::agree([&](bool mine) { return everybody(world, mine); }, options.room);
  int result = 0;
  if (is_worker) {
    int workers_here = 0;
    MPI_Comm_size(mates, &workers_here);
    room memory(space, self, options.share_memory && workers_here > 1, options.fence);
    open_rooms(memory, mates);
    result = work(options, net, memory, bytes, worker_main);
  } else {
    scheduler_options mine = options.scheduler;
    mine.base = reinterpret_cast<std::uint64_t>(space.base());
    mine.room = space.size();
    scheduler s(tree, self, mine);
    or_end_job(name_of(tree, self), [&] {
      if (options.status && self == 0)
        serve(net, s, status_line(s));
      else
        serve(net, s, [] {});
    });
  }
  net.finish(world);
  int most = 0;
  MPI_Allreduce(&result, &most, 1, MPI_INT, MPI_MAX, world);
  return most;
}

}  // namespace detail

/// worker_main(worker&), returning nothing or a number for the exit code.
template <class WorkerMain>
int run(int argc, char** argv, const run_options& options, WorkerMain worker_main) {
  const detail::mpi_session session(&argc, &argv);
  return detail::or_end_job("cluster::run", [&] {
    return detail::run_ranks(options, [&](worker& w) -> int {
      if constexpr (std::is_void_v<decltype(worker_main(w))>)
        return worker_main(w), 0;
      else
        return static_cast<int>(worker_main(w));
    });
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

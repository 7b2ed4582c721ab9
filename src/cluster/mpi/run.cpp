// SPDX-License-Identifier: Apache-2.0
// cluster::run: what each rank does from the start to the end of a program.
#include "cluster/mpi/equal_options.hpp"
#include "cluster/mpi/network.hpp"

#include <quarry/cluster/run.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace quarry::cluster::detail {

namespace {

/// MPI for the duration of a run.
class mpi_session {
 public:
  mpi_session(int* argc, char*** argv) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    owned_ = initialized == 0;
    int level = MPI_THREAD_SINGLE;
    if (owned_) MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
  }
  mpi_session(const mpi_session&) = delete;
  mpi_session& operator=(const mpi_session&) = delete;
  ~mpi_session() {
    if (owned_) MPI_Finalize();
  }

 private:
  bool owned_ = false;
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

/// Collective: whether all ranks passed true.
bool all_true(MPI_Comm comm, bool mine) {
  int value = mine ? 1 : 0, all = 0;
  MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_LAND, comm);
  return all != 0;
}

/// Collective over the workers of a host: each opens the memory files of the others, or none does.
void open_files(worker_memory& memory, MPI_Comm workers) {
  int count = 0;
  MPI_Comm_size(workers, &count);
  const worker_memory::file_id mine = memory.own_file();
  std::vector<worker_memory::file_id> files(static_cast<std::size_t>(count));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, files.data(), sizeof mine, MPI_BYTE, workers);
  if (!all_true(workers, memory.open_files(files))) memory.close_other_files();
}

/// Ends the job if the program calls exit() in a worker's function: the other ranks would wait.
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

/// Calls f. An exception ends the job, before destructors run that use MPI collectively.
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

std::string counted(std::uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

void report_leaks(const leaks& left, leak_policy policy) {
  if (policy == leak_policy::quiet || left.regions + left.objects == 0) return;
  std::fprintf(stderr, "quarry: not freed at the end: %s, %s (%s)\n",
               counted(left.regions, "region").c_str(), counted(left.objects, "object").c_str(),
               to_text(quarry::bytes(left.bytes)).c_str());
}

/// Prints a line about the top scheduler once a second.
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

/// The program of a worker's rank. Returns what the worker's function returned.
int run_worker(const run_options& options, mpi_network& net, worker_memory& memory, MPI_Comm bytes,
               const std::function<int(worker&)>& worker_main) {
  mpi_link connection(net, memory, bytes, options.transfers);
  worker w(connection, options.worker);
  const std::string name = name_of(net.tree(), net.self());
  int result = 0;
  {
    const exit_guard guard(name);
    result = or_end_job(name, [&] { return worker_main(w); });
  }
  const leaks left = or_end_job(name, [&] { return w.finish(); });
  if (w.number() == 0) report_leaks(left, options.leaks);
  const bool leaked = left.regions + left.objects != 0;
  return result == 0 && leaked && options.leaks == leak_policy::fail ? 1 : result;
}

/// The program of a scheduler's rank.
void run_scheduler(const run_options& options, mpi_network& net, const address_space& space) {
  scheduler_options mine = options.scheduler;
  mine.base = address_of(space.base());
  mine.capacity = space.size();
  scheduler s(net.tree(), net.self(), mine);
  or_end_job(name_of(net.tree(), net.self()), [&] {
    if (options.status && net.self() == 0)
      serve(net, s, status_line(s));
    else
      serve(net, s, [] {});
  });
}

constexpr int exit_unequal_options = 2;

int run_ranks(const run_options& options, const std::function<int(worker&)>& worker_main) {
  const communicator world(MPI_COMM_WORLD), bytes(MPI_COMM_WORLD);
  if (!options_are_equal(world, options)) return exit_unequal_options;
  int rank = 0, size = 0;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  const auto self = static_cast<node_id>(rank);
  const shape tree = shape::for_nodes(static_cast<unsigned>(size), options.tree);
  const bool is_worker = tree.is_worker(self);
  const mpi_host host(world);
  const communicator host_workers(host.comm(), is_worker);
  mpi_network net(world, host, tree, self, options.scheduler_timeout);
  const address_space space =
      address_space::agree([&](bool mine) { return all_true(world, mine); }, options.capacity);
  int result = 0;
  if (is_worker) {
    int workers_here = 0;
    MPI_Comm_size(host_workers, &workers_here);
    worker_memory memory(space, self, options.share_memory && workers_here > 1, options.protect);
    open_files(memory, host_workers);
    result = run_worker(options, net, memory, bytes, worker_main);
  } else {
    run_scheduler(options, net, space);
  }
  net.finish(world);
  int largest = 0;
  MPI_Allreduce(&result, &largest, 1, MPI_INT, MPI_MAX, world);
  return largest;
}

}  // namespace

int run_program(int argc, char** argv, const run_options& options,
                const std::function<int(worker&)>& worker_main) {
  const mpi_session session(&argc, &argv);
  return or_end_job("cluster::run", [&] { return run_ranks(options, worker_main); });
}

}  // namespace quarry::cluster::detail

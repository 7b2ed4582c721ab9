// SPDX-License-Identifier: Apache-2.0
// A cluster that ends in the way its argument names; end_test.py checks the output.
#include <quarry/cluster/detail/mpi.hpp>
#include <quarry/cluster/run.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace quarry::cluster;

namespace {

int work(worker& w, const std::string& how, pid_t scheduler) {
  const rid r = *w.create_region(root);
  auto* object = static_cast<char*>(*w.allocate(r, 100));
  w.barrier();
  if (how == "touch" && w.number() == 1) {
    (void)w.hand_over(0, std::span(&r, 1));
    *object = 1;
  }
  if (how == "touch" && w.number() == 0) {
    rid theirs = root;
    (void)w.take_over(1, std::span(&theirs, 1));
    w.barrier();
  }
  if (w.number() == 1) {
    std::fflush(stdout);
    if (how == "throw") throw quarry::error("this worker has had enough");
    if (how == "throw-number") throw 7;  // NOLINT
    if (how == "exit") std::exit(0);
    if (how == "vanish") ::_exit(0);
    if (how == "kill") std::raise(SIGKILL);
    if (how == "kill-scheduler") ::kill(scheduler, SIGKILL);
    if (how == "stop-scheduler") ::kill(scheduler, SIGSTOP);
    if (how == "compute") ::sleep(4);
  }
  if (how == "kill" || how == "vanish")
    w.barrier();  // waits for ever unless the watchdog ends the job
  if (how == "return") return static_cast<int>(w.number());
  const bool leaks_region = how.starts_with("leak") && w.number() == 0;
  return leaks_region || w.destroy_region(r) == quarry::region_status::ok ? 0 : 9;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string how = argv[1];
  run_options options;
  options.scheduler_timeout = 2;
  options.protect = how == "touch";
  if (how == "leak-fail") options.leaks = leak_policy::fail;
  if (how == "leak-quiet") options.leaks = leak_policy::quiet;
  // The scheduler is rank 0: all ranks learn its process id.
  MPI_Init(&argc, &argv);
  auto scheduler = static_cast<long>(::getpid());
  MPI_Bcast(&scheduler, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (how == "unequal" && rank >= 3) options.tree.workers_each = 2;
  if (how == "unequal-arguments") options.arguments = {{"input", std::to_string(rank / 2)}};
  const int result =
      run(options, [&](worker& w) { return work(w, how, static_cast<pid_t>(scheduler)); });
  MPI_Finalize();
  return result;
}

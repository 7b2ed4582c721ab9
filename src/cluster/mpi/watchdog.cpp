// SPDX-License-Identifier: Apache-2.0
#include "cluster/mpi/watchdog.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace quarry::cluster::detail {

std::string name_of(const shape& tree, node_id n) {
  return "rank " + std::to_string(n) +
         (tree.is_worker(n) ? " (worker " + std::to_string(tree.worker_number(n)) + ")"
                            : " (scheduler)");
}

void end_job(const std::string& why) {
  std::fprintf(stderr, "quarry: %s\n", why.c_str());
  std::fflush(stderr);
  ::usleep(100'000);
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(5);
  MPI_Abort(MPI_COMM_WORLD, 1);
  ::_exit(1);
}

mpi_watchdog::mpi_watchdog(MPI_Comm world, MPI_Comm host, const shape& tree, node_id self,
                           double timeout)
    : tree_(tree), self_(self), timeout_(timeout) {
  MPI_Comm_dup(world, &comm_);
  open_descriptors(world, host);
  if (self != 0) peers_.push_back({tree.parent(self)});
  for (const node_id child : tree.children(self))
    if (!tree.is_worker(child)) peers_.push_back({child});
  last_check_ = MPI_Wtime();
}

mpi_watchdog::~mpi_watchdog() {
  for (const pollfd& p : processes_) ::close(p.fd);
  MPI_Comm_free(&comm_);
}

void mpi_watchdog::check(bool is_waiting) {
  const double time = MPI_Wtime();
  if (time - last_check_ < 0.1) return;
  clock_ += std::min(time - last_check_, 1.0);
  last_check_ = time;
  receive_pings();
  if (!is_waiting) {
    for (peer& p : peers_) p.last_heard = clock_;
    return;
  }
  if (clock_ - last_poll_ >= 0.5) {
    last_poll_ = clock_;
    check_processes();
  }
  if (timeout_ > 0)
    for (peer& p : peers_) check_peer(p);
}

void mpi_watchdog::open_descriptors(MPI_Comm world, MPI_Comm host) {
  int size = 0, rank = 0;
  MPI_Comm_size(host, &size);
  MPI_Comm_rank(world, &rank);
  // Process ids are comparable only within one namespace.
  struct stat space = {};
  const bool known = ::stat("/proc/self/ns/pid", &space) == 0;
  const unsigned long mine[3] = {static_cast<unsigned long>(rank),
                                 static_cast<unsigned long>(::getpid()),
                                 known ? static_cast<unsigned long>(space.st_ino) : 0};
  std::vector<unsigned long> all(3 * static_cast<std::size_t>(size));
  MPI_Allgather(mine, 3, MPI_UNSIGNED_LONG, all.data(), 3, MPI_UNSIGNED_LONG, host);
  for (std::size_t i = 0; i < all.size(); i += 3) {
    if (all[i] == mine[0] || all[i + 2] != mine[2] || mine[2] == 0) continue;
    const long fd = ::syscall(SYS_pidfd_open, static_cast<pid_t>(all[i + 1]), 0);
    if (fd < 0) continue;
    processes_.push_back({static_cast<int>(fd), POLLIN, 0});
    ranks_.push_back(static_cast<node_id>(all[i]));
  }
  MPI_Barrier(host);  // No process ends, and no id is reused, before all descriptors are open.
}

void mpi_watchdog::receive_pings() {
  for (;;) {
    int arrived = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &arrived, &status);
    if (arrived == 0) return;
    MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm_, MPI_STATUS_IGNORE);
    if (status.MPI_TAG == ping_tag) {
      send(status.MPI_SOURCE, pong_tag);
      continue;
    }
    for (peer& p : peers_)
      if (p.rank == static_cast<node_id>(status.MPI_SOURCE)) {
        p.pinged = false;
        p.last_heard = clock_;
      }
  }
}

void mpi_watchdog::send(int to, int tag) {
  MPI_Request sent;
  MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, comm_, &sent);
  MPI_Request_free(&sent);  // The message has no memory to keep.
}

void mpi_watchdog::check_processes() {
  if (processes_.empty() || ::poll(processes_.data(), processes_.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (processes_[i].revents != 0)
      end_job(name_of(tree_, ranks_[i]) + " has ended while " + name_of(tree_, self_) +
              " waits; all processes end");
}

void mpi_watchdog::check_peer(peer& p) {
  const double silence = clock_ - p.last_heard;
  if (!p.pinged && silence > timeout_ / 4) {
    p.pinged = true;
    send(static_cast<int>(p.rank), ping_tag);
  }
  if (p.pinged && silence > timeout_ * 1.25)
    end_job(name_of(tree_, p.rank) + " gives no sign of life for " +
            std::to_string(static_cast<int>(silence)) + " s to " + name_of(tree_, self_) +
            "; all processes end");
}

}  // namespace quarry::cluster::detail

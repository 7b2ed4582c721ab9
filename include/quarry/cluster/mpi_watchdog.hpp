// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mpi_watchdog: ends the job when a process that others wait for is gone and the launcher does not
/// notice: mpirun was told to keep going, or the process hangs, or its host does.
///
/// Two signs of life, looked for by those who wait, and only while they wait:
///   on the same host   a descriptor of the process (pidfd), which tells when it has ended
///   schedulers         they answer a ping; a scheduler never computes for long
/// Bounds: a process that ended on the host of somebody who waits is found within a second; a
/// scheduler next to somebody who waits that does not answer, within `patience` and a quarter. A
/// worker on another host may compute as long as it likes, so its silence means nothing: its end is
/// the launcher's to tell.
///
/// Time counts only in steps of up to a second between two looks, so a job that was stopped as a
/// whole and goes on does not find everybody silent. patience 0: no pings.

#include <quarry/cluster/mpi_header.hpp>
#include <quarry/cluster/shape.hpp>

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

namespace quarry::cluster {

/// "rank 5 (worker 2)"
inline std::string name_of(const shape& tree, node n) {
  return "rank " + std::to_string(n) +
         (tree.is_worker(n) ? " (worker " + std::to_string(tree.worker_number(n)) + ")"
                            : " (scheduler)");
}

/// Says why, and ends all processes. The launcher gets a moment to pass the line on before it is
/// told; MPI may be in a bad state: it has five seconds.
[[noreturn]] inline void end_job(const std::string& why) {
  std::fprintf(stderr, "quarry: %s\n", why.c_str());
  std::fflush(stderr);
  ::usleep(100'000);
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(5);
  MPI_Abort(MPI_COMM_WORLD, 1);
  ::_exit(1);
}

class mpi_watchdog {
 public:
  /// Collective over world; host: those of world on the same host.
  mpi_watchdog(MPI_Comm world, MPI_Comm host, const shape& tree, node self, double patience)
      : tree_(tree), self_(self), patience_(patience) {
    MPI_Comm_dup(world, &comm_);
    open_descriptors(world, host);
    if (self != 0) peers_.push_back({tree.parent(self)});
    for (const node child : tree.children(self))
      if (!tree.is_worker(child)) peers_.push_back({child});
    seen_ = MPI_Wtime();
  }
  mpi_watchdog(const mpi_watchdog&) = delete;
  mpi_watchdog& operator=(const mpi_watchdog&) = delete;
  /// Collective.
  ~mpi_watchdog() {
    for (const pollfd& p : processes_) ::close(p.fd);
    MPI_Comm_free(&comm_);
  }

  /// Called by a process that waits, often; costs a look at the clock. waits: for others, so that
  /// their silence is bad. A scheduler that is busy calls it now and then to answer pings.
  void look(bool waits) {
    const double time = MPI_Wtime();
    if (time - seen_ < 0.1) return;
    clock_ += std::min(time - seen_, 1.0);
    seen_ = time;
    read_signs();
    if (!waits) {
      for (peer& p : peers_) p.heard = clock_;
      return;
    }
    if (clock_ - polled_ >= 0.5) {
      polled_ = clock_;
      look_at_processes();
    }
    if (patience_ > 0)
      for (peer& p : peers_) look_at(p);
  }

 private:
  static constexpr int ping_tag = 1;
  static constexpr int pong_tag = 2;

  struct peer {
    node who;
    double heard = 0;  // on our clock
    bool asked = false;
  };

  void open_descriptors(MPI_Comm world, MPI_Comm host) {
    int size = 0, rank = 0;
    MPI_Comm_size(host, &size);
    MPI_Comm_rank(world, &rank);
    // Process numbers mean the same only in one namespace.
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
      ranks_.push_back(static_cast<node>(all[i]));
    }
    MPI_Barrier(host);  // so that none of these numbers is of a process that has ended
  }

  void read_signs() {
    for (;;) {
      int here = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &here, &status);
      if (here == 0) return;
      MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm_, MPI_STATUS_IGNORE);
      if (status.MPI_TAG == ping_tag)
        send(status.MPI_SOURCE, pong_tag);
      else
        for (peer& p : peers_)
          if (p.who == static_cast<node>(status.MPI_SOURCE)) p.asked = false, p.heard = clock_;
    }
  }
  void send(int to, int tag) {
    MPI_Request sent;
    MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, comm_, &sent);
    MPI_Request_free(&sent);  // no memory to keep
  }

  void look_at_processes() {
    if (processes_.empty() || ::poll(processes_.data(), processes_.size(), 0) <= 0) return;
    for (std::size_t i = 0; i < processes_.size(); ++i)
      if (processes_[i].revents != 0)
        end_job(name_of(tree_, ranks_[i]) + " has ended while " + name_of(tree_, self_) +
                " waits; all processes end");
  }

  void look_at(peer& p) {
    const double silent = clock_ - p.heard;
    if (!p.asked && silent > patience_ / 4) {
      p.asked = true;
      send(static_cast<int>(p.who), ping_tag);
    }
    if (p.asked && silent > patience_ * 1.25)
      end_job(name_of(tree_, p.who) + " gives no sign of life for " +
              std::to_string(static_cast<int>(silent)) + " s to " + name_of(tree_, self_) +
              "; all processes end");
  }

  const shape& tree_;
  node self_;
  double patience_;  // seconds
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<pollfd> processes_;  // on this host
  std::vector<node> ranks_;        // their ranks
  std::vector<peer> peers_;        // neighbouring schedulers
  double seen_ = 0;                // when it was looked last
  double clock_ = 0;               // seconds in which this process ran
  double polled_ = 0;
};

}  // namespace quarry::cluster

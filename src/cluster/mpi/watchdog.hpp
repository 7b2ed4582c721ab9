// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mpi_watchdog: ends the job when a process that others wait for has vanished and the launcher
/// does not notice: mpirun was told to continue, or the process or its host hangs.
///
/// Processes check two signs of life, and only while they wait:
///   same host     a descriptor of the process (pidfd), which reports that it has ended
///   schedulers    they answer a ping, since a scheduler never computes for long
/// Bounds: the end of a process on the host of a waiting process is detected within a second. A
/// neighbouring scheduler that does not answer is detected within 1.25 * timeout. A worker on
/// another host may compute for any time; only the launcher can detect its end.
///
/// The clock of a watchdog advances by at most one second between two checks, so a job that was
/// suspended as a whole and continues does not time out. timeout 0: no pings.

#include <quarry/cluster/detail/mpi.hpp>
#include <quarry/cluster/shape.hpp>

#include <poll.h>

#include <string>
#include <vector>

namespace quarry::cluster::detail {

/// "rank 5 (worker 2)"
std::string name_of(const shape& tree, node_id n);

/// Prints the reason and ends all processes. The launcher gets time to forward the line first. MPI
/// may be unusable: it has five seconds.
[[noreturn]] void end_job(const std::string& why);

class mpi_watchdog {
 public:
  /// Collective over world; host: the ranks of world on the same host.
  mpi_watchdog(MPI_Comm world, MPI_Comm host, const shape& tree, node_id self, double timeout);
  mpi_watchdog(const mpi_watchdog&) = delete;
  mpi_watchdog& operator=(const mpi_watchdog&) = delete;
  /// Collective.
  ~mpi_watchdog();

  /// Called often by a process that waits (is_waiting), and now and then by a busy scheduler, to
  /// answer pings. Most calls only read the clock.
  void check(bool is_waiting);

 private:
  static constexpr int ping_tag = 1;
  static constexpr int pong_tag = 2;

  struct peer {
    node_id rank;
    double last_heard = 0;  // on clock_
    bool pinged = false;
  };

  void open_descriptors(MPI_Comm world, MPI_Comm host);
  void receive_pings();
  void send(int to, int tag);
  void check_processes();
  void check_peer(peer& p);

  const shape& tree_;
  node_id self_;
  double timeout_;  // seconds
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<pollfd> processes_;  // of this host
  std::vector<node_id> ranks_;     // of processes_
  std::vector<peer> peers_;        // neighbouring schedulers
  double last_check_ = 0;
  double clock_ = 0;  // seconds in which this process ran
  double last_poll_ = 0;
};

}  // namespace quarry::cluster::detail

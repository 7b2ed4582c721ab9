// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs the program of a subcommand on a cluster: as MPI processes under mpirun, or in the
/// simulated network, where all ranks are fibers of one process and time is virtual.

#include "cluster/records.hpp"
#include "cluster/run_progress.hpp"
#include "common/command.hpp"

#include <quarry/cluster/simulation.hpp>

#include <apps/common/mailbox.hpp>
#include <apps/common/phases.hpp>
#include <apps/list_exchange/list_exchange.hpp>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quarry::tool {

/// The options that all applications share.
struct cluster_options {
  std::uint64_t simulate = 0;  // ranks of the simulated network; 0: run under mpirun
  std::uint64_t schedulers_each = cluster::ratios{}.schedulers_each;
  std::uint64_t workers_each = cluster::ratios{}.workers_each;
  std::uint64_t seed = 1;
  cluster::scheduler_tuning tuning;
  bool no_leases = false;
  bool status = false;           // print the progress every second
  bool separate_memory = false;  // workers of a host share no memory
  bool json = false;
  std::string out;  // records are appended to this file
  /// Returns the command and all options in effect, which must be equal on all ranks.
  std::function<std::vector<std::pair<std::string, std::string>>()> arguments;

  cluster::ratios tree() const {
    return {static_cast<unsigned>(schedulers_each), static_cast<unsigned>(workers_each)};
  }
  cluster_network network() const {
    return simulate != 0 ? cluster_network::simulated : cluster_network::mpi;
  }
  /// Returns the command line that repeats the run: `app` and its own options, then the shared
  /// ones.
  std::string command(const std::string& app, unsigned ranks) const;
};

void add_low_pages(const command_line& command, cluster::scheduler_tuning& tuning);
void add_cluster_options(const command_line& command, cluster_options& o);

/// Runs on every worker. Shows its progress, and ends that before it prints.
using cluster_program = std::function<int(cluster::worker&, run_progress&)>;

/// Runs `program` on every worker. Returns the largest value that a worker returned.
int on_cluster(const cluster_options& o, const cluster_program& program);

/// Throws input_error if mpirun started this process and others. A simulation would keep them
/// waiting, or repeat itself in each of them.
void require_one_process();

/// What the build offers: mpi.cpp implements these with MPI, no_mpi.cpp without.
bool built_with_mpi();
int run_under_mpi(const cluster_options& o, const cluster_program& program);

/// How the list exchange without regions moves a node.
enum class node_access { one_sided, request_reply };
/// Runs the list exchange node by node, without regions. Returns nothing in the simulated network,
/// which has no MPI.
std::optional<apps::list_exchange_result> exchange_by_node(const cluster_options& o,
                                                           cluster::worker& w, node_access access,
                                                           const apps::list_exchange_options& what);

/// The measurements of one worker.
struct worker_report {
  apps::time_shares time;
  cluster::worker_statistics calls;
  std::uint64_t work = 0;  // units of work, counted by the application
  bool correct = true;
};
/// Collective. Returns the reports of all workers at worker 0, and an empty vector at all others.
std::vector<worker_report> collect(cluster::worker& w, const worker_report& mine);

/// Returns the fields of a run that all applications have in common.
cluster_json summarise_run(const std::string& app, const cluster_options& o, cluster::worker& w,
                           const std::vector<worker_report>& all);
/// Prints these fields as text.
void print_summary(const cluster_json& run);

}  // namespace quarry::tool

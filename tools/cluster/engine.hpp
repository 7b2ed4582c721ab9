// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How a subcommand's program becomes a cluster: real processes under mpirun, or all in one.

#include "common/command.hpp"

#include <quarry/cluster/simulation.hpp>

#include <apps/common/phases.hpp>
#include <apps/common/mailbox.hpp>
#include <apps/list_exchange/list_exchange.hpp>

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string>

namespace quarry::tool {

struct cluster_options {
  std::uint64_t simulate = 0;  // ranks; 0: under mpirun
  std::uint64_t schedulers_each = cluster::ratios{}.schedulers_each;
  std::uint64_t workers_each = cluster::ratios{}.workers_each;
  std::uint64_t seed = 1;
  bool asks = false;    // no leases
  bool status = false;  // a line a second
  bool apart = false;   // workers of a host share no memory
  bool json = false;

  cluster::ratios tree() const {
    return {static_cast<unsigned>(schedulers_each), static_cast<unsigned>(workers_each)};
  }
};

void add_cluster_options(CLI::App& command, cluster_options& o);

/// Runs it on every worker. 0, or the largest number that one returned.
int on_cluster(const cluster_options& o, const std::function<int(cluster::worker&)>& program);

/// Whether this program was built with MPI, and what it does with it.
bool built_with_mpi();
int run_under_mpi(const cluster_options& o, const std::function<int(cluster::worker&)>& program);
enum class by_node { one_sided, request_reply };
/// The list exchange without regions; nothing: in a simulation, which has no MPI.
std::optional<apps::list_exchange_result> exchange_by_node(const cluster_options& o,
                                                           cluster::worker& w, by_node how,
                                                           const apps::list_exchange_options& what);

/// What one worker did, and all together.
struct worker_report {
  apps::time_shares time;
  cluster::worker_statistics calls;
  std::uint64_t work = 0;  // whatever the program counts
  bool correct = true;
};
/// Collective: the reports of all, at worker 0; elsewhere empty.
std::vector<worker_report> collect(cluster::worker& w, const worker_report& mine);

/// The line of JSON that all subcommands print, as far as they have it in common.
nlohmann::ordered_json summary(const std::string& app, const cluster_options& o, cluster::worker& w,
                               const std::vector<worker_report>& all);
/// The same for people.
void print_summary(const nlohmann::ordered_json& line);

}  // namespace quarry::tool

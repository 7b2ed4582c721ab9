// SPDX-License-Identifier: Apache-2.0
/// `quarry cluster` under mpirun.
#include "cluster/engine.hpp"

#include <quarry/cluster/run.hpp>

#include <apps/list_exchange/mpi.hpp>

namespace quarry::tool {

bool built_with_mpi() { return true; }

int run_under_mpi(const cluster_options& o, const cluster_program& program) {
  cluster::run_options ro;
  ro.tree = o.tree();
  ro.worker.leases = !o.no_leases;
  ro.scheduler.tuning = o.tuning;
  ro.status = o.status;
  ro.share_memory = !o.separate_memory;
  ro.arguments = o.arguments();
  run_progress bar(!o.status);
  return cluster::run(ro, [&](cluster::worker& w) { return program(w, bar); });
}

std::optional<apps::list_exchange_result> exchange_by_node(
    const cluster_options& o, cluster::worker& w, node_access access,
    const apps::list_exchange_options& what) {
  if (o.simulate != 0) return {};
  const apps::worker_communicator workers(w);
  return apps::run(workers,
                   access == node_access::one_sided ? apps::node_transport::one_sided
                                                    : apps::node_transport::request_reply,
                   what);
}

}  // namespace quarry::tool

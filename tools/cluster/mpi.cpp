// SPDX-License-Identifier: Apache-2.0
/// The part of quarry cluster that needs MPI.
#include "cluster/engine.hpp"

#include <quarry/cluster/run.hpp>

#include <apps/list_exchange/mpi.hpp>

namespace quarry::tool {

bool built_with_mpi() { return true; }

int run_under_mpi(const cluster_options& o, const std::function<int(cluster::worker&)>& program) {
  cluster::run_options ro;
  ro.tree = o.tree();
  ro.worker.leases = !o.asks;
  ro.status = o.status;
  ro.share_memory = !o.apart;
  return cluster::run(ro, program);
}

std::optional<apps::list_exchange_result> exchange_by_node(
    const cluster_options& o, cluster::worker& w, by_node how,
    const apps::list_exchange_options& what) {
  if (o.simulate != 0) return {};
  const apps::worker_communicator workers(w);
  return apps::run(workers,
                   how == by_node::one_sided ? apps::node_transport::one_sided
                                             : apps::node_transport::request_reply,
                   what);
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// `quarry cluster` in a build without MPI: only the simulated network is available.
#include "cluster/engine.hpp"

namespace quarry::tool {

bool built_with_mpi() { return false; }

int run_under_mpi(const cluster_options&, const cluster_program&) {
  throw error("built without MPI");
}

std::optional<apps::list_exchange_result> exchange_by_node(const cluster_options&, cluster::worker&,
                                                           node_access,
                                                           const apps::list_exchange_options&) {
  return {};
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// quarry cluster without MPI: simulations only.
#include "cluster/engine.hpp"

namespace quarry::tool {

bool built_with_mpi() { return false; }

int run_under_mpi(const cluster_options&, const std::function<int(cluster::worker&)>&) {
  throw error("built without MPI");
}

std::optional<apps::list_exchange_result> exchange_by_node(const cluster_options&, cluster::worker&,
                                                           by_node,
                                                           const apps::list_exchange_options&) {
  return {};
}

}  // namespace quarry::tool

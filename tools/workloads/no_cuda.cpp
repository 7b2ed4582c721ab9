// SPDX-License-Identifier: Apache-2.0
/// Takes the place of the workloads' CUDA sources where there is no nvcc.

#include "workloads/graph.hpp"
#include "workloads/kd_tree.hpp"

namespace quarry::tool {

kd_tree_measured measure_kd_tree_cuda(const apps::scene&, const apps::kd_input&,
                                      const apps::kd_limits&, const kd_tree_request&) {
  throw error("this program was built without nvcc");
}

graph_measured measure_graph_cuda(const graph_cell&, const graph_request&) {
  throw error("this program was built without nvcc");
}

}  // namespace quarry::tool

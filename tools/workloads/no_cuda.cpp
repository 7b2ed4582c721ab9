// SPDX-License-Identifier: Apache-2.0
/// Replaces the CUDA sources of the workloads in builds without nvcc.

#include "workloads/graph.hpp"
#include "workloads/kd_tree.hpp"

namespace quarry::tool {

kd_tree_result measure_kd_tree_cuda(const apps::scene&, const apps::kd_input&,
                                    const apps::kd_limits&, const kd_tree_request&) {
  throw error("this program was built without CUDA");
}

graph_result measure_graph_cuda(const graph_point&, const graph_request&) {
  throw error("this program was built without CUDA");
}

}  // namespace quarry::tool

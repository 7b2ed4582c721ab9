// SPDX-License-Identifier: Apache-2.0
/// The graph measurement on the CUDA backend.

#include "workloads/graph_run.hpp"

namespace quarry::tool {

graph_result measure_graph_cuda(const graph_point& point, const graph_request& request) {
  return measure_graph_named<quarry::cuda>(point, request);
}

}  // namespace quarry::tool

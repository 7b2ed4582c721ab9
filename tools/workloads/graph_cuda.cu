// SPDX-License-Identifier: Apache-2.0
/// The graph on an NVIDIA GPU.

#include "workloads/graph_run.hpp"

namespace quarry::tool {

graph_measured measure_graph_cuda(const graph_point& point, const graph_request& request) {
  return measure_graph_named<quarry::cuda>(point, request);
}

}  // namespace quarry::tool

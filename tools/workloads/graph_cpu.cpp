// SPDX-License-Identifier: Apache-2.0
/// The graph on the CPU executor.

#include "workloads/graph_run.hpp"

namespace quarry::tool {

graph_measured measure_graph_cpu(const graph_point& point, const graph_request& request) {
  return measure_graph_named<cpu>(point, request);
}

}  // namespace quarry::tool

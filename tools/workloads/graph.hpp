// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `quarry graph` asks of a machine, and what comes back. The run itself is a template,
/// compiled once a machine (graph_run.hpp); this header is all that both compilers and the command
/// line share.

#include "apps/graph/graph.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quarry::tool {

/// One point. A pass gives the vertices their first edges, inserts the batches one after the other,
/// erases them in the same order where `erases` says so, and clears the graph.
struct graph_point {
  std::uint32_t vertices = 0;
  apps::graph_batch first;
  std::vector<apps::graph_batch> batches;
  bool erases = false;
};

struct graph_request {
  std::string allocator;
  std::uint64_t heap = 0;  // bytes
  std::uint64_t repeats = 5;
  bool check = false;  // after every kernel of the first pass, not only the last one
};

struct graph_measured {
  std::string skipped;       // why it makes no sense for this allocator; empty: it does
  std::vector<double> init;  // milliseconds of each pass
  std::vector<double> insert;
  std::vector<double> erase;
  std::vector<double> clear;
  std::uint64_t edges = 0;        // at first
  std::uint64_t final_edges = 0;  // before it was cleared
  std::uint64_t allocations = 0;  // of a pass
  std::uint64_t bytes = 0;
  std::string problem;  // what was found wrong; empty: nothing
};

/// A pass to warm up, then `repeats`. Throws where one ends with an error.
graph_measured measure_graph_cpu(const graph_point& point, const graph_request& request);
graph_measured measure_graph_cuda(const graph_point& point, const graph_request& request);

}  // namespace quarry::tool

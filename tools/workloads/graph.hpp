// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The interface between `quarry graph` and its measurement. The measurement is a template that is
/// compiled once per backend (graph_run.hpp); this header is shared by both compilers and the
/// command line.

#include "apps/graph/graph.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quarry::tool {

/// One data point. A pass initializes the graph with the first batch, inserts the other batches one
/// after the other, erases them in the same order if `erases`, and clears the graph.
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
  bool check = false;  // check after every kernel of the first pass
};

struct graph_result {
  std::string skipped;       // reason why the allocator cannot run it; empty: measured
  std::vector<double> init;  // milliseconds per pass
  std::vector<double> insert;
  std::vector<double> erase;
  std::vector<double> clear;
  std::uint64_t edges = 0;        // after initialization
  std::uint64_t final_edges = 0;  // before the graph is cleared
  std::uint64_t allocations = 0;  // per pass
  std::uint64_t bytes = 0;
  std::string problem;  // first fault that the checks found; empty: none
};

/// Runs one warm-up pass, then `repeats` measured passes. Throws if a pass fails.
graph_result measure_graph_cpu(const graph_point& point, const graph_request& request);
graph_result measure_graph_cuda(const graph_point& point, const graph_request& request);

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The experiments of `quarry graph`: names, titles, and the workload at each x value.

#include "workloads/graph.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace quarry::tool {

/// The size of the initial graph.
struct graph_size {
  unsigned scale;
  std::uint64_t degree;

  std::uint32_t vertices() const { return 1u << scale; }
  std::uint64_t edges() const { return degree << scale; }
};

struct graph_experiment {
  std::string_view name;
  std::string_view title;
  std::string_view x_name;
  std::string_view time;       // meaning of the field ms
  std::string_view free_time;  // meaning of the field free_ms; empty: not measured
  std::string_view note;
  graph_point (*make)(const graph_size&, std::uint64_t x);
};

/// Returns all experiments, in the order of the report.
std::span<const graph_experiment> graph_experiments();
/// Throws input_error.
const graph_experiment& experiment_named(const std::string& name);

}  // namespace quarry::tool

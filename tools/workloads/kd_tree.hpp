// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The interface between `quarry kd-tree` and its measurement. The measurement is a template that
/// is compiled once per backend (kd_tree_run.hpp); this header is shared by both compilers and the
/// command line.

#include "apps/kd_tree/grid.hpp"
#include "apps/kd_tree/tree.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

struct kd_tree_request {
  std::string allocator;
  std::uint64_t heap = 0;  // bytes
  std::uint64_t repeats = 5;
  std::uint64_t rays = 0;
};

struct kd_tree_result {
  std::string skipped;        // reason why the allocator cannot run it; empty: measured
  std::vector<double> times;  // milliseconds per build
  apps::kd_statistics tree;
  std::uint32_t registers = 0;  // of the kernel; 0: unknown
  std::uint64_t warps = 0;      // of the persistent grid
  std::uint64_t metadata = 0;   // bytes of heap metadata
  std::string problem;          // first fault that the checks found; empty: none
};

/// Builds the tree once as warm-up, then `repeats` times. Checks the first and the last tree.
/// Throws if a build fails.
kd_tree_result measure_kd_tree_cpu(const apps::scene& s, const apps::kd_input& input,
                                   const apps::kd_limits& limits, const kd_tree_request& request);
kd_tree_result measure_kd_tree_cuda(const apps::scene& s, const apps::kd_input& input,
                                    const apps::kd_limits& limits, const kd_tree_request& request);

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `quarry kd-tree` asks of a machine, and what comes back. The run itself is a template,
/// compiled once a machine (kd_tree_run.hpp); this header is all that both compilers and the
/// command line share.

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

struct kd_tree_measured {
  std::string skipped;        // why it makes no sense for this allocator; empty: it does
  std::vector<double> times;  // milliseconds
  apps::kd_statistics tree;
  std::uint32_t registers = 0;  // of the kernel; 0: not known
  std::uint64_t warps = 0;      // that build
  std::uint64_t metadata = 0;   // bytes of the heap's
  std::string problem;          // what was found wrong; empty: nothing
};

/// Builds the tree once to warm up, then `repeats` times; the first and the last are looked at.
/// Throws where a build ends with an error.
kd_tree_measured measure_kd_tree_cpu(const apps::scene& s, const apps::kd_input& input,
                                     const apps::kd_limits& limits, const kd_tree_request& request);
kd_tree_measured measure_kd_tree_cuda(const apps::scene& s, const apps::kd_input& input,
                                      const apps::kd_limits& limits,
                                      const kd_tree_request& request);

}  // namespace quarry::tool

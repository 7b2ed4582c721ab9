// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The workloads by name, and the cells of each.

#include "bench.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct bench_workload {
  std::string_view name;
  bench_shape shape;
  std::string_view summary;  // above its table
};

/// In the order of the tables.
const std::vector<bench_workload>& bench_workloads();
const bench_workload& find_workload(std::string_view name);

/// How large the cells are.
struct bench_scale {
  std::uint64_t lanes = 0;
  bool quick = false;             // fewer rows
  std::vector<size_range> sizes;  // empty: each workload's own
};

/// Throws input_error for a size that none of the workloads takes.
void check_sizes(const std::vector<std::string_view>& workloads, const bench_scale& scale);
std::vector<bench_cell> make_cells(std::string_view workload, const bench_scale& scale);

/// "16 B", "64 KiB", "16-1024 B".
std::string size_text(const size_range& sizes);

}  // namespace quarry::tool

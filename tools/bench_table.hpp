// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The benchmark's figures for people.

#include "bench.hpp"
#include "bench_cells.hpp"

#include <string>
#include <vector>

namespace quarry::tool {

struct bench_result {
  std::string allocator;
  bench_cell cell;
  bench_figures figures;
};

/// All of one workload: a row a cell, a column an allocator; broken where it would be wider than `width`.
/// Below it what was lost or skipped, and the widest spread.
std::string workload_text(const bench_workload& workload, const std::vector<bench_result>& results,
                          std::size_t width);

/// Every cell whose blocks were not sound or not all there, a line each; or that there is none.
std::string verdict_text(const std::vector<bench_result>& results);

/// "0.040", "12.3", "4160".
std::string milliseconds_text(double ms);

}  // namespace quarry::tool

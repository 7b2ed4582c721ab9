// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Results of the benchmark as text tables.

#include "bench/points.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace quarry::tool {

/// Returns the table of one experiment: one row for each x value, one column for each curve. A
/// table wider than `width` is split. Below the table: the data points that were lost or skipped,
/// and the data point whose passes vary most.
std::string experiment_text(const experiment& e, const std::vector<bench_point>& points,
                            std::size_t width, bool gpu);

/// Returns a table of the data points with failed allocations or damaged blocks, or a sentence that
/// there are none.
std::string check_summary_text(const std::vector<bench_point>& points);

/// Formats a number with about four digits: "0.040", "12.3", "4160".
std::string number_text(double number);

}  // namespace quarry::tool

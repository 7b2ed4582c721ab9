// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The benchmark's figures for people.

#include "bench/points.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace quarry::tool {

/// All of one experiment: a row a place on its axis, a column a curve; broken where it would be wider than
/// `width`. Below it what was lost or skipped, and the widest spread.
std::string experiment_text(const experiment& e, const std::vector<bench_point>& points,
                            std::size_t width, bool gpu);

/// Every cell whose blocks were not sound or not all there, a line each; or that there is none.
std::string verdict_text(const std::vector<bench_point>& points);

/// "0.040", "12.3", "4160".
std::string figure_text(double figure);

}  // namespace quarry::tool

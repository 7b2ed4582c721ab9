// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Small plots as SVG: curves over two logarithmic axes, bars in layers.

#include <string>
#include <utility>
#include <vector>

namespace quarry::tool {

struct curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // all positive; others are left out
};
std::string log_plot(const std::string& title, const std::string& x_axis,
                     const std::vector<curve>& curves);

struct bar {
  std::string label;
  std::vector<double> layers;  // from the bottom
};
std::string bar_plot(const std::string& title, const std::vector<std::string>& layers,
                     const std::vector<bar>& bars);

}  // namespace quarry::tool

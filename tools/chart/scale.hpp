// SPDX-License-Identifier: Apache-2.0
#pragma once
/// From values to places on an axis, and the ticks that people read.

#include "chart/chart.hpp"

#include <string>
#include <vector>

namespace quarry::tool {

struct chart_tick {
  double value;
  std::string text;
};

/// Maps values to [0, 1]. Values that it can not show (not finite; not positive on a logarithmic axis) are
/// those for which `shows` is false.
class chart_scale {
 public:
  /// For values on `axis`. With `air` they keep off its ends: a linear one starts at 0, a logarithmic one
  /// goes a little further than they do.
  chart_scale(const chart_axis& axis, const std::vector<double>& values, bool air);

  static bool shows(axis_scale kind, double v);
  double place(double v) const;
  /// Round values, at most `most` of them.
  std::vector<chart_tick> ticks(unsigned most) const;
  /// The measured values themselves where someone chose them, as block sizes are: few and whole.
  std::vector<chart_tick> measured_ticks(unsigned most) const;

 private:
  std::vector<double> round_values(unsigned most) const;
  std::vector<chart_tick> thinned(const std::vector<double>& values, unsigned most) const;

  chart_axis axis_;
  double low_ = 0, high_ = 1;
  std::vector<double> measured_;  // distinct, in order
};

/// Three digits that matter, whole numbers in full: "0.0324", "5.4", "12,340".
std::string short_number(double v);
/// The same for a value on an axis: "8 KiB" where the unit is B; "2¹⁴", "10⁻⁵" on a logarithmic one.
std::string tick_text(double v, const chart_axis& axis);

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Maps values to positions on an axis and chooses its ticks.

#include "chart/chart.hpp"

#include <string>
#include <vector>

namespace quarry::tool {

struct chart_tick {
  double value;
  std::string text;
};

/// Maps the values of an axis to [0, 1].
class chart_scale {
 public:
  /// Covers `values`. With `margin`, a linear axis starts at 0 and both kinds extend beyond the
  /// values.
  chart_scale(const chart_axis& axis, const std::vector<double>& values, bool margin);

  /// Whether an axis of this kind can show `v`: finite, and positive on a logarithmic axis.
  static bool shows(axis_scale kind, double v);
  double position(double v) const;
  /// Returns round values, at most `most` of them.
  std::vector<chart_tick> ticks(unsigned most) const;
  /// Returns the round values between ticks(most), for a reader that enlarges a part of the axis.
  std::vector<chart_tick> minor_ticks(unsigned most) const;
  /// Returns the measured values if they are few and integers, as block sizes are; otherwise
  /// ticks(most).
  std::vector<chart_tick> measured_ticks(unsigned most) const;

 private:
  std::vector<double> round_values(unsigned most) const;
  std::vector<chart_tick> with_distance(const std::vector<double>& values, unsigned most) const;

  chart_axis axis_;
  double low_ = 0, high_ = 1;
  std::vector<double> measured_;  // distinct values, in ascending order
};

/// Formats with three significant digits, integers in full: "0.0324", "5.4", "12,340".
std::string short_number(double v);
/// Formats a value on an axis: "8 KiB" where the unit is B; "2¹⁴", "10⁻⁵" on a logarithmic axis.
std::string tick_text(double v, const chart_axis& axis);

}  // namespace quarry::tool

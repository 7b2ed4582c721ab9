// SPDX-License-Identifier: Apache-2.0
#pragma once
/// bench_slow_filter: decides which measurements to leave out because a measurement of the same
/// curve with less work already exceeded the time limit.

#include "bench/request.hpp"

#include <cstdio>
#include <map>
#include <string>
#include <utility>

namespace quarry::tool {

/// Serves the measurements of one request.
class bench_slow_filter {
 public:
  /// A measurement is slow if it takes longer than three times `time_limit` seconds.
  explicit bench_slow_filter(double time_limit) : slow_after_(3 * time_limit) {}

  /// Notes how long a measurement took.
  void note(const bench_measurement& m, double seconds) {
    if (seconds <= slow_after_) return;
    const auto [at, is_first] = slow_.try_emplace(m.variant);
    if (is_first || m.effort() < at->second.effort)
      at->second = {m.effort(), m.x_label + " took " + with_one_decimal(seconds) + " s"};
  }
  /// Returns why the measurement is to be left out; empty if it is to be run.
  std::string reason_to_skip(const bench_measurement& m) const {
    const auto at = slow_.find(m.variant);
    return at != slow_.end() && m.effort() > at->second.effort ? at->second.reason : "";
  }

 private:
  static std::string with_one_decimal(double n) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", n);
    return text;
  }

  /// The slow measurement with the least effort on a curve.
  struct slow_measurement {
    double effort = 0;
    std::string reason;
  };
  double slow_after_;
  std::map<std::string, slow_measurement> slow_;  // by variant
};

inline bench_result given_up(std::string reason) {
  bench_result r;
  r.outcome = bench_outcome::given_up;
  r.note = std::move(reason);
  return r;
}

}  // namespace quarry::tool

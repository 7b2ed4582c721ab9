// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Data points, and the lines of the record that describe them.
///
///   experiment   {"kind":"experiment", …}   axes and measured fields; precedes its first point
///   point        {"kind":"point", …}        flat: environment, parameters, results
///   claim        {"kind":"claim", …}        a number of a paper beside ours (claims.hpp)
///
/// docs/bench.md lists the keys.

#include "bench/experiments/experiment.hpp"
#include "bench/request.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

/// One allocator at one x value of an experiment.
struct bench_point {
  const experiment* of = nullptr;
  std::string allocator;
  std::string series;  // name of the curve
  double x = 0;
  std::string x_label;  // x as text
  bench_measurement measurement;
  bench_result result;
};

/// Returns the data points of a measurement: one, or one for each step of its curve.
std::vector<bench_point> points_of(const experiment& e, const bench_subject& subject,
                                   const bench_measurement& measurement,
                                   const bench_result& result);
/// Returns the data points of an experiment that reads the cost ledger instead of measuring.
std::vector<bench_point> points_of_ledger(const experiment& e,
                                          const std::vector<bench_subject>& subjects);

/// Returns the value of a record's field; nothing if the field was not measured.
std::optional<double> value_of(const bench_point& point, std::string_view field);

/// Returns the fields that the experiment shows. The CPU backend adds the counts of atomics.
std::vector<experiment_y> shown_by(const experiment& e, bool gpu);

nlohmann::ordered_json experiment_record(const experiment& e, bool gpu);
nlohmann::ordered_json point_record(const bench_point& point, const bench_environment& where,
                                    const std::string& command);

}  // namespace quarry::tool

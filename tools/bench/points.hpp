// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Points of curves: what cells gave, one by one, and as lines of the record.
///
///   experiment   {"kind":"experiment", …}   its axis and what is measured; before its first point
///   point        {"kind":"point", …}        flat: where, what was asked, what was measured
///   claim        {"kind":"claim", …}        a paper's figure beside ours (bench_claims.hpp)

#include "bench/bench.hpp"
#include "bench/experiments/experiments.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct bench_point {
  const experiment* of = nullptr;
  std::string allocator;
  std::string series;
  double x = 0;
  std::string row;  // x for people
  bench_cell cell;
  bench_figures figures;
};

/// One, or one for each step that the cell went through.
std::vector<bench_point> points_of(const experiment& e, const bench_subject& subject,
                                   const bench_cell& cell, const bench_figures& figures);
/// Registers, which nobody measures here.
std::vector<bench_point> points_of_ledger(const experiment& e,
                                          const std::vector<bench_subject>& subjects);

/// A figure by the name that records have for it; nothing where it was not measured.
std::optional<double> value_of(const bench_point& point, std::string_view field);

/// What the experiment shows on this machine: where atomics are counted, those too.
std::vector<experiment_y> shown_by(const experiment& e, bool gpu);

nlohmann::ordered_json experiment_record(const experiment& e, bool gpu);
nlohmann::ordered_json point_record(const bench_point& point, const bench_environment& where,
                                    const std::string& command);

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Requests and figures as JSON: what parent and child send each other, and what is kept.

#include "bench.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace quarry::tool {

std::string_view outcome_text(bench_outcome outcome);

nlohmann::ordered_json to_json(const bench_request& request);
bench_request request_from_json(const nlohmann::ordered_json& j);

nlohmann::ordered_json to_json(const bench_figures& figures);
bench_figures figures_from_json(const nlohmann::ordered_json& j);

/// A line of --out: the environment, the cell and the figures, flat.
nlohmann::ordered_json record(const bench_environment& where, const bench_request& request,
                              const bench_cell& cell, const bench_figures& figures);

}  // namespace quarry::tool

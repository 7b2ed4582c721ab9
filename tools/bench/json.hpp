// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Requests and figures as JSON: what parent and child send each other.

#include "bench/bench.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace quarry::tool {

std::string_view outcome_text(bench_outcome outcome);

nlohmann::ordered_json to_json(const bench_cell& cell);
nlohmann::ordered_json to_json(const bench_request& request);
bench_request request_from_json(const nlohmann::ordered_json& j);

nlohmann::ordered_json to_json(const bench_figures& figures);
bench_figures figures_from_json(const nlohmann::ordered_json& j);

}  // namespace quarry::tool

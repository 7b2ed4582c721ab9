// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Claims of the papers about speed, each beside the ratio that was measured here for the same
/// workload.

#include "bench/points.hpp"

#include <string>
#include <vector>

namespace quarry::tool {

struct bench_claim {
  std::string id;
  std::string source;
  std::string claim;
  double paper = 0;
  double ours = 0;
  std::string how;
};

/// Returns the claims for which both series were measured.
std::vector<bench_claim> claims_of(const std::vector<bench_point>& points);

nlohmann::ordered_json claim_record(const bench_claim& claim, const bench_environment& where);
/// A table; empty where there is no claim.
std::string claims_text(const std::vector<bench_claim>& claims);

}  // namespace quarry::tool

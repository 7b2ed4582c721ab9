// SPDX-License-Identifier: Apache-2.0
#include "bench/claims.hpp"

#include "common/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace quarry::tool {
namespace {

/// Which of the ratios of two curves a claim is about.
enum class pick : std::uint8_t { at_x, min, max };

struct claim_rule {
  std::string_view id;
  std::string_view source;
  std::string_view claim;
  double paper;
  std::string_view experiment;
  std::string_view slower;  // series
  std::string_view faster;
  pick which;
  double x = 0;  // pick::at_x only
};

constexpr std::string_view paper_fdg = "FDGMalloc, over CudaMalloc";

const std::vector<claim_rule>& rules() {
  static const std::vector<claim_rule> all = {
      {"xmalloc-48", "Huang et al. 2013", "48 x over CUDA's malloc", 48, "xmalloc-2", "CudaMalloc",
       "XMalloc", pick::at_x, 32},
      {"xmalloc-quarter", "Huang et al. 2013", "just under 6 x in a heap that is a quarter full", 6,
       "xmalloc-2-quarter", "CudaMalloc", "XMalloc", pick::at_x, 32},
      {"xmalloc-coalescing", "Huang et al. 2013", "coalescing alone: 50 x", 50, "xmalloc-5",
       "CudaMalloc", "CudaMalloc, coalesced", pick::at_x, 32},
      {"fdgmalloc-beginning", "Widmer et al. 2013",
       "nearly 10 x over every other allocator at the beginning: over ScatterAlloc", 10,
       "fdgmalloc-5", "ScatterAlloc", paper_fdg, pick::at_x, 1},
      {"fdgmalloc-superblocks-least", "Widmer et al. 2013",
       "superblocks bring 10 to 300 x: minimum", 10, "fdgmalloc-5", "FDGMalloc, no superblocks",
       paper_fdg, pick::min},
      {"fdgmalloc-superblocks", "Widmer et al. 2013", "superblocks bring 10 to 300 x: maximum", 300,
       "fdgmalloc-5", "FDGMalloc, no superblocks", paper_fdg, pick::max},
      // Not in the paper of Widmer et al. itself.
      {"fdgmalloc-least", "Widmer et al. 2013, as quoted by Vinkler, Havran 2014",
       "FDGMalloc is 10 to 1000 x faster than ScatterAlloc: minimum", 10, "fdgmalloc-5",
       "ScatterAlloc", paper_fdg, pick::min},
      {"fdgmalloc-most", "Widmer et al. 2013, as quoted by Vinkler, Havran 2014",
       "FDGMalloc is 10 to 1000 x faster than ScatterAlloc: maximum", 1000, "fdgmalloc-5",
       "ScatterAlloc", paper_fdg, pick::max},
      {"cfmmalloc-scatter", "Vinkler, Havran 2014",
       "CFMMalloc is 1.50 to 1.97 x slower than ScatterAlloc: maximum", 1.97, "cmalloc-3c",
       "CFMMalloc", "ScatterAlloc", pick::max},
  };
  return all;
}

std::map<double, double> curve_of(const std::vector<bench_point>& points,
                                  std::string_view experiment, std::string_view series) {
  std::map<double, double> curve;
  for (const bench_point& p : points)
    if (p.of->id == experiment && p.series == series)
      if (const auto ms = value_of(p, "ms"); ms && *ms > 0) curve[p.x] = *ms;
  return curve;
}

}  // namespace

std::vector<bench_claim> claims_of(const std::vector<bench_point>& points) {
  std::vector<bench_claim> claims;
  for (const claim_rule& rule : rules()) {
    const auto slower = curve_of(points, rule.experiment, rule.slower);
    const auto faster = curve_of(points, rule.experiment, rule.faster);
    std::vector<std::pair<double, double>> ratios;  // {ratio, x}
    for (const auto& [x, ms] : slower)
      if (const auto at = faster.find(x);
          at != faster.end() && (rule.which != pick::at_x || x == rule.x))
        ratios.emplace_back(ms / at->second, x);
    if (ratios.empty()) continue;
    const auto [ours, x] = rule.which == pick::max
                               ? *std::max_element(ratios.begin(), ratios.end())
                               : *std::min_element(ratios.begin(), ratios.end());
    claims.push_back(
        {std::string(rule.id), std::string(rule.source), std::string(rule.claim), rule.paper, ours,
         fmt::format("median time of {} / {} at {} {}, experiment {}", rule.slower, rule.faster, x,
                     find_experiment(rule.experiment).x.name, rule.experiment)});
  }
  return claims;
}

nlohmann::ordered_json claim_record(const bench_claim& c, const bench_environment& where) {
  return {{"kind", "claim"},
          {"id", c.id},
          {"source", c.source},
          {"claim", c.claim},
          {"paper", c.paper},
          {"ours", c.ours},
          {"unit", "x"},
          {"how", c.how},
          {"backend", where.backend},
          {"device", where.device},
          {"commit", where.commit},
          {"date", where.date}};
}

std::string claims_text(const std::vector<bench_claim>& claims) {
  if (claims.empty()) return {};
  table t({{"claim"}, {"source"}, {"paper", right}, {"here", right}, {"how"}});
  for (const bench_claim& c : claims)
    t.add({c.claim, c.source, fmt::format("{}", c.paper), fmt::format("{:.2f}", c.ours), c.how});
  return t.text();
}

}  // namespace quarry::tool

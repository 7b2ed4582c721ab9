// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which cells are not worth trying: those of a curve that have more to do than one which took too long.

#include "bench/bench.hpp"

#include <cstdio>
#include <map>
#include <string>
#include <utility>

namespace quarry::tool {

/// For the cells of one request.
class bench_patience {
 public:
  /// Cells that took longer than some times their share.
  explicit bench_patience(double share) : longest_(3 * share) {}

  void note(const bench_cell& cell, double seconds) {
    if (seconds <= longest_) return;
    const auto [at, first] = slow_.try_emplace(cell.variant);
    if (first || cell.effort() < at->second.effort)
      at->second = {cell.effort(), cell.row + " took " + one_decimal(seconds) + " s"};
  }
  /// Why a cell should be left alone; empty: it should not.
  std::string objection(const bench_cell& cell) const {
    const auto at = slow_.find(cell.variant);
    return at != slow_.end() && cell.effort() > at->second.effort ? at->second.what : "";
  }

 private:
  static std::string one_decimal(double n) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", n);
    return text;
  }

  struct slow {
    double effort = 0;
    std::string what;
  };
  double longest_;
  std::map<std::string, slow> slow_;
};

inline bench_figures given_up(std::string why) {
  bench_figures f;
  f.outcome = bench_outcome::given_up;
  f.note = std::move(why);
  return f;
}

}  // namespace quarry::tool

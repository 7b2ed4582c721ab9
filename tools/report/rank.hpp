// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Ranks allocators per workload and over all workloads.
///
/// In a view, the slowdown of a curve is the geometric mean, over the x values, of its value
/// divided by the value of the first curve. The first curve is the one for which all slowdowns are
/// at least 1.
///
/// - An x value counts if at least half of the curves have a value there. A curve that lacks a
///   value at such an x is listed as partial.
/// - A curve with a lost or unsound point is not ranked.
/// - Where less is better, a point with failed allocations counts only if no curve is free of
///   failed allocations at that x: fewer blocks take less time.
/// - A view in which less is better and a value is 0 or less is not ranked: no ratio to 0 exists.
/// - Times of the CPU executor are not ranked, because they say nothing about a GPU. Its counts are
///   ranked: atomics per call, fragmentation, usable fraction. An allocator whose work the executor
///   cannot see (system_heap) has no counts.

#include "report/report.hpp"

#include <string>
#include <vector>

namespace quarry::tool::report {

/// Which allocators are ranked. General-purpose allocators free single blocks and never return
/// memory in use; allocators that this program does not know count as general-purpose.
enum class compared_allocators : std::uint8_t { all, general };

struct standing {
  std::string series, allocator;
  double slowdown = 1;
  std::size_t at = 0;  // number of x values compared
};

struct ranking {
  std::size_t experiment = 0, figure = 0, view = 0;  // indices into the document
  bool main = true;                                  // whether the view is the first of its figure
  std::size_t of = 0;                                // number of x values that count
  std::vector<standing> complete, partial;           // the fastest first
  std::vector<std::string> unsound;                  // names of series
};

ranking rank(const view& v, compared_allocators which);

/// Ranks every view that has a direction and at least two curves to compare.
std::vector<ranking> rank_all(const document& d, compared_allocators which);

/// The standing of an allocator over all experiments of a backend, by their first measure.
struct overall {
  std::string allocator;
  double slowdown = 1;  // geometric mean
  std::size_t experiments = 0, best = 0, unsound = 0;
};
struct summary {
  std::size_t backend = 0;
  std::size_t experiments = 0;
  std::vector<overall> in_most,
      in_few;  // ranked in at least half of the experiments, in fewer
};
std::vector<summary> summarise(const document& d, const std::vector<ranking>& rankings);

/// "1.27"; "–" if the allocator is ranked in no experiment.
std::string mean_text(const overall& o);

/// "equal", "+12 %", "3.4 ×", with non-breaking spaces.
std::string slowdown_text(double slowdown);

}  // namespace quarry::tool::report

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Building blocks for the lists of experiments: axes, fields, and functions that make
/// measurements.

#include "bench/experiments/experiment.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

inline constexpr experiment_y milliseconds{"ms", "time", "ms", "log"};
inline constexpr experiment_y free_milliseconds{"free_ms", "time to free", "ms", "log"};
inline constexpr experiment_y per_object{"ns_per_object", "time per object", "ns", "log"};
/// Marks a field that the report must not rank, because the curves of one allocator do different
/// work.
inline constexpr experiment_y unranked(experiment_y y) { return y.better = "none", y; }
inline constexpr experiment_axis by_size{"size", "B", "log"};
inline constexpr experiment_axis by_threads{"threads", "", "log"};

/// Returns from, from * factor, ..., and `to`.
inline std::vector<std::uint64_t> powers(std::uint64_t from, std::uint64_t to,
                                         std::uint64_t factor) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t n = from; n < to; n *= factor) all.push_back(n);
  all.push_back(to);
  return all;
}
/// Returns the first value, the last, and one from the middle.
inline std::vector<std::uint64_t> three_of(const std::vector<std::uint64_t>& all) {
  if (all.size() < 4) return all;
  return {all.front(), all[all.size() / 2], all.back()};
}
/// Returns all values, or three of them if --quick was given.
inline std::vector<std::uint64_t> thinned(const std::vector<std::uint64_t>& all,
                                          const bench_scale& scale) {
  return scale.quick ? three_of(all) : all;
}

inline bench_measurement measurement_at(bench_workload workload, double x, std::string x_label,
                                        size_range sizes, std::uint64_t lanes) {
  bench_measurement m;
  m.workload = workload;
  m.x = x;
  m.x_label = std::move(x_label);
  m.sizes = sizes;
  m.lanes = std::max<std::uint64_t>(lanes, 1);
  return m;
}
inline bench_measurement measurement_at_size(bench_workload workload, std::uint64_t size,
                                             std::uint64_t lanes) {
  const size_range sizes{size, size};
  return measurement_at(workload, static_cast<double>(size), size_text(sizes), sizes, lanes);
}
inline bench_measurement measurement_at_count(bench_workload workload, std::uint64_t x,
                                              size_range sizes, std::uint64_t lanes) {
  return measurement_at(workload, static_cast<double>(x), std::to_string(x), sizes, lanes);
}

/// Returns the values of --sizes that `option` accepts; if there are none, `own`.
std::vector<size_range> sizes_or(const bench_scale& scale, size_option option,
                                 const std::vector<size_range>& own);
/// The same for single sizes.
inline std::vector<std::uint64_t> sizes_or(const bench_scale& scale,
                                           const std::vector<std::uint64_t>& own) {
  std::vector<size_range> ranges;
  ranges.reserve(own.size());
  for (const std::uint64_t n : own) ranges.push_back({n, n});
  std::vector<std::uint64_t> chosen;
  for (const size_range& r : sizes_or(scale, size_option::sizes, ranges)) chosen.push_back(r.most);
  return chosen;
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the lists of experiments are written with: axes, figures and cells.

#include "bench/experiments/experiments.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace quarry::tool {

inline constexpr experiment_y milliseconds{"ms", "time", "ms", "log"};
inline constexpr experiment_y free_milliseconds{"free_ms", "time to free", "ms", "log"};
inline constexpr experiment_y per_object{"ns_per_object", "time an object", "ns", "log"};
/// Where curves of one allocator differ in what they do, or have to.
inline constexpr experiment_y unranked(experiment_y y) { return y.better = "none", y; }
inline constexpr experiment_axis by_size{"size", "B", "log"};
inline constexpr experiment_axis by_threads{"threads", "", "log"};

/// from, from * factor, … and `to` itself.
inline std::vector<std::uint64_t> steps(std::uint64_t from, std::uint64_t to,
                                        std::uint64_t factor) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t n = from; n < to; n *= factor) all.push_back(n);
  all.push_back(to);
  return all;
}
/// The first, the last, and one between.
inline std::vector<std::uint64_t> ends_of(const std::vector<std::uint64_t>& all) {
  if (all.size() < 4) return all;
  return {all.front(), all[all.size() / 2], all.back()};
}
/// All of them, or few where it has to be quick.
inline std::vector<std::uint64_t> thinned(const std::vector<std::uint64_t>& all,
                                          const bench_scale& scale) {
  return scale.quick ? ends_of(all) : all;
}

inline bench_cell cell_at(bench_shape shape, double x, std::string row, size_range sizes,
                          std::uint64_t workers) {
  bench_cell c;
  c.shape = shape;
  c.x = x;
  c.row = std::move(row);
  c.sizes = sizes;
  c.workers = std::max<std::uint64_t>(workers, 1);
  return c;
}
inline bench_cell cell_at_size(bench_shape shape, std::uint64_t size, std::uint64_t workers) {
  const size_range sizes{size, size};
  return cell_at(shape, static_cast<double>(size), size_text(sizes), sizes, workers);
}
inline bench_cell cell_at_count(bench_shape shape, std::uint64_t x, size_range sizes,
                                std::uint64_t workers) {
  return cell_at(shape, static_cast<double>(x), std::to_string(x), sizes, workers);
}

/// The sizes that were typed, where any fits, else `own`.
std::vector<size_range> sizes_or(const bench_scale& scale, takes what, std::vector<size_range> own);
/// The same for plain sizes.
inline std::vector<std::uint64_t> sizes_or(const bench_scale& scale,
                                           const std::vector<std::uint64_t>& own) {
  std::vector<size_range> ranges;
  for (const std::uint64_t n : own) ranges.push_back({n, n});
  std::vector<std::uint64_t> chosen;
  for (const size_range& r : sizes_or(scale, takes::sizes, ranges)) chosen.push_back(r.most);
  return chosen;
}

}  // namespace quarry::tool

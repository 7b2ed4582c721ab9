// SPDX-License-Identifier: Apache-2.0
#include "bench_cells.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quarry::tool {
namespace {

enum class takes : std::uint8_t { nothing, sizes, ranges };

/// What of --sizes a workload uses; the others are tests of the literature with sizes of their own.
takes taken_by(std::string_view workload) {
  if (workload == "alloc" || workload == "one-lane" || workload == "fill") return takes::sizes;
  return workload == "mixed" || workload == "extent" ? takes::ranges : takes::nothing;
}

bool fits(takes what, const size_range& r) {
  return what != takes::nothing && (what == takes::ranges) == (r.least != r.most);
}

std::vector<size_range> own_sizes(std::string_view workload, bool quick) {
  if (workload == "one-lane") return {{16, 16}, {64 << 10, 64 << 10}};
  if (workload == "fill") return {{256, 256}, {1000, 1000}};
  if (workload == "extent") return {{16, 1024}};
  if (workload == "mixed") return {{16, 1024}, {16, 8192}};
  std::vector<size_range> sizes;
  for (std::uint64_t n = 16; n <= 8192; n *= quick ? 16 : 2) sizes.push_back({n, n});
  return sizes;
}

std::vector<size_range> sizes_of(std::string_view workload, const bench_scale& scale) {
  std::vector<size_range> chosen;
  for (const size_range& r : scale.sizes)
    if (fits(taken_by(workload), r)) chosen.push_back(r);
  return chosen.empty() ? own_sizes(workload, scale.quick) : chosen;
}

/// Vinkler's grids: 120 blocks of 8 warps, the first lane of each works.
constexpr std::uint64_t vinkler_warps = 120 * 8;

/// A failing call may walk the whole pool, so few lanes fill it at a time.
constexpr std::uint64_t largest_fill = 1 << 14;

bench_cell cell_of(const bench_workload& w, std::string row, size_range sizes,
                   std::uint64_t workers) {
  bench_cell c;
  c.workload = w.name;
  c.row = std::move(row);
  c.shape = w.shape;
  c.sizes = sizes;
  c.workers = std::max<std::uint64_t>(workers, 1);
  return c;
}

}  // namespace

const std::vector<bench_workload>& bench_workloads() {
  static const std::vector<bench_workload> all = {
      {"alloc", bench_shape::blocks,
       "every lane allocates a block in one kernel, frees it in the next"},
      {"mixed", bench_shape::blocks, "the same, each size of a range equally likely"},
      {"one-lane", bench_shape::blocks, "the same, the first lane of each warp only"},
      {"churn", bench_shape::churn, "each lane 32 times malloc, write, free; one kernel"},
      {"xmalloc", bench_shape::churn,
       "malloc 4 B, write, free; one kernel, 1 to 32 lanes of each warp (Huang 2013)"},
      {"acd", bench_shape::batch,
       "the first lane of 960 warps: many mallocs, then all frees (Vinkler 2014)"},
      {"p", bench_shape::chance,
       "ten launches of 960 warps: malloc or free with probability 0.75 (Vinkler 2014)"},
      {"widmer", bench_shape::batch,
       "each lane 16 mallocs of 64 B, then all frees; one kernel (Widmer 2013)"},
      {"extent", bench_shape::extent,
       "distance from the lowest to the highest block / live bytes, after five rounds"},
      {"fill", bench_shape::fill, "share of the heap that can be had before a malloc fails"}};
  return all;
}

const bench_workload& find_workload(std::string_view name) {
  const auto& all = bench_workloads();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const bench_workload& w) { return w.name == name; });
  if (at != all.end()) return *at;
  std::vector<std::string_view> names;
  for (const bench_workload& w : all) names.push_back(w.name);
  const std::string_view nearest = nearest_name(name, names);
  throw input_error(fmt::format("no workload '{}'{}; there are {}, and all", name,
                                nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                                fmt::join(names, ", ")));
}

void check_sizes(const std::vector<std::string_view>& workloads, const bench_scale& scale) {
  for (const size_range& r : scale.sizes) {
    const auto takes_it = [&](std::string_view w) { return fits(taken_by(w), r); };
    if (std::any_of(workloads.begin(), workloads.end(), takes_it)) continue;
    throw input_error(
        fmt::format("--sizes: {} is for {}, none of which was chosen", size_text(r),
                    r.least == r.most ? "alloc, one-lane and fill" : "mixed and extent"));
  }
}

std::vector<bench_cell> make_cells(std::string_view workload, const bench_scale& scale) {
  const bench_workload& w = find_workload(workload);
  std::vector<bench_cell> cells;
  if (w.name == "churn") {
    cells.push_back(cell_of(w, "32 x 64 B", {64, 64}, scale.lanes / 4));
    cells.back().rounds = 32;
  } else if (w.name == "xmalloc") {
    for (std::uint32_t working = 32; working != 0; working /= scale.quick ? 32 : 2) {
      cells.push_back(cell_of(w, fmt::format("{} a warp", working), {4, 4}, scale.lanes));
      cells.back().working = working;
    }
  } else if (w.name == "acd") {
    for (const std::uint32_t batch : {10u, 100u}) {
      cells.push_back(cell_of(w, fmt::format("{} x 16 B", batch), {16, 16}, vinkler_warps));
      cells.back().working = 1;
      cells.back().batch = batch;
    }
  } else if (w.name == "p") {
    cells.push_back(cell_of(w, "16 B", {16, 16}, vinkler_warps));
    cells.back().working = 1;
    cells.back().rounds = 10;
  } else if (w.name == "widmer") {
    cells.push_back(cell_of(w, "16 x 64 B", {64, 64}, scale.lanes / 16));
    cells.back().batch = 16;
  } else {
    for (const size_range& r : sizes_of(w.name, scale)) {
      cells.push_back(
          cell_of(w, size_text(r), r, w.name == "one-lane" ? scale.lanes / 8 : scale.lanes));
      if (w.name == "one-lane") cells.back().working = 1;
      if (w.name == "extent") cells.back().rounds = 5;
      if (w.name == "fill") cells.back().workers = std::min(scale.lanes, largest_fill);
    }
  }
  return cells;
}

std::string size_text(const size_range& sizes) {
  if (sizes.least != sizes.most) return fmt::format("{}-{} B", sizes.least, sizes.most);
  return sizes.least % 1024 == 0 ? to_text(sizes.least) : fmt::format("{} B", sizes.least);
}

}  // namespace quarry::tool

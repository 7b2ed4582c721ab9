// SPDX-License-Identifier: Apache-2.0
/// The workloads that allocators are compared by, each with rows of its own.

#include "bench/experiments/cells.hpp"

namespace quarry::tool {
namespace {

/// Vinkler's grids: 120 blocks of 8 warps, the first lane of each works.
std::uint64_t vinkler_warps(const bench_scale& scale) { return (scale.quick ? 12 : 120) * 8; }
/// A failing call may walk the whole pool, so few lanes fill it at a time.
constexpr std::uint64_t largest_fill = 1 << 14;

std::vector<bench_cell> alloc(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t n : sizes_or(scale, steps(16, 8192, scale.quick ? 16 : 2)))
    cells.push_back(cell_at_size(bench_shape::blocks, n, scale.lanes));
  return cells;
}

std::vector<bench_cell> ranges(const bench_scale& scale, bench_shape shape,
                               std::vector<size_range> own) {
  std::vector<bench_cell> cells;
  for (const size_range& r : sizes_or(scale, takes::ranges, own))
    cells.push_back(
        cell_at(shape, static_cast<double>(cells.size()), size_text(r), r, scale.lanes));
  return cells;
}
std::vector<bench_cell> mixed(const bench_scale& scale) {
  return ranges(scale, bench_shape::blocks, {{16, 1024}, {16, 8192}});
}
std::vector<bench_cell> extent(const bench_scale& scale) {
  std::vector<bench_cell> cells = ranges(scale, bench_shape::extent, {{16, 1024}});
  for (bench_cell& c : cells) c.rounds = 5;
  return cells;
}

std::vector<bench_cell> one_lane(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t n : sizes_or(scale, {16, 64 << 10})) {
    cells.push_back(cell_at_size(bench_shape::blocks, n, scale.lanes / 8));
    cells.back().working = 1;
  }
  return cells;
}

std::vector<bench_cell> churn(const bench_scale& scale) {
  bench_cell c = cell_at(bench_shape::churn, 0, "32 x 64 B", {64, 64}, scale.lanes / 4);
  c.rounds = 32;
  return {c};
}

std::vector<bench_cell> xmalloc(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t working : steps(1, 32, scale.quick ? 32 : 2)) {
    const auto lanes = static_cast<std::uint32_t>(working);
    cells.push_back(
        cell_at(bench_shape::churn, lanes, std::to_string(lanes) + " a warp", {4, 4}, scale.lanes));
    cells.back().working = lanes;
  }
  return cells;
}

std::vector<bench_cell> acd(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint32_t batch : {10u, 100u}) {
    cells.push_back(cell_at(bench_shape::batch, batch, std::to_string(batch) + " x 16 B", {16, 16},
                            vinkler_warps(scale)));
    cells.back().working = 1;
    cells.back().batch = batch;
  }
  return cells;
}

std::vector<bench_cell> p(const bench_scale& scale) {
  bench_cell c = cell_at(bench_shape::chance, 0, "16 B", {16, 16}, vinkler_warps(scale));
  c.working = 1;
  c.rounds = 10;
  return {c};
}

std::vector<bench_cell> widmer(const bench_scale& scale) {
  bench_cell c = cell_at(bench_shape::batch, 0, "16 x 64 B", {64, 64}, scale.lanes / 16);
  c.batch = 16;
  return {c};
}

/// The heap that is filled is a sixteenth of the others': filling takes long.
std::vector<bench_cell> fill(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t n : sizes_or(scale, {256, 1000})) {
    cells.push_back(cell_at_size(bench_shape::fill, n, std::min(scale.lanes, largest_fill)));
    cells.back().heap = scale.heap / 16;
  }
  return cells;
}

constexpr experiment_axis by_row{"", "", "category"};
constexpr std::string_view group = "workloads";

}  // namespace

std::vector<experiment> workload_experiments() {
  const std::vector<experiment_y> both = {milliseconds, free_milliseconds};
  constexpr experiment_axis by_range{"sizes", "", "category"};
  std::vector<experiment> all;
  const auto add = [&](experiment e) { all.push_back(std::move(e)); };

  add(experiment{"alloc", group, "every lane allocates a block in one kernel, frees it in the next",
                 "", "", by_size, both, alloc}
          .taking(takes::sizes));
  add(experiment{"mixed", group, "every lane allocates, then frees a block of any size in a range",
                 "", "", by_range, both, mixed}
          .taking(takes::ranges)
          .as("bars"));
  add(experiment{"one-lane", group, "the first lane of each warp allocates a block, then frees it",
                 "", "", by_size, both, one_lane}
          .taking(takes::sizes)
          .as("bars"));
  add(experiment{"churn",
                 group,
                 "each lane 32 times malloc, write, free; one kernel",
                 "",
                 "",
                 by_row,
                 {milliseconds},
                 churn}
          .as("bars"));
  add(experiment{"xmalloc",
                 group,
                 "malloc 4 B, write, free; one kernel, 1 to 32 lanes of each warp",
                 "Huang et al. 2013",
                 "",
                 {"working lanes a warp", "", "log"},
                 {milliseconds},
                 xmalloc});
  add(experiment{"acd",
                 group,
                 "the first lane of 960 warps: many mallocs, then all frees",
                 "Vinkler, Havran 2014",
                 "",
                 {"mallocs of a lane", "", "linear"},
                 {milliseconds},
                 acd}
          .as("bars"));
  add(experiment{"p",
                 group,
                 "ten launches of 960 warps: malloc or free with probability 0.75",
                 "Vinkler, Havran 2014",
                 "",
                 by_row,
                 {milliseconds},
                 p}
          .as("bars"));
  add(experiment{"widmer",
                 group,
                 "each lane 16 mallocs of 64 B, then all frees; one kernel",
                 "Widmer et al. 2013",
                 "",
                 by_row,
                 {milliseconds},
                 widmer}
          .as("bars"));
  add(experiment{"fragmentation",
                 group,
                 "address-range fragmentation after rounds of free and malloc",
                 "",
                 "five rounds in which a random half frees and allocates again",
                 by_range,
                 {{"fragmentation", "address-range fragmentation", "", "linear"}, milliseconds},
                 extent}
          .taking(takes::ranges)
          .as("bars"));
  add(experiment{"fill",
                 group,
                 "usable fraction: live bytes when the first malloc fails / bytes of the heap",
                 "",
                 "a heap of a sixteenth of the others' size",
                 by_size,
                 {{"usable_fraction", "usable fraction", "", "linear"}, milliseconds},
                 fill}
          .taking(takes::sizes)
          .as("bars"));
  return all;
}

}  // namespace quarry::tool

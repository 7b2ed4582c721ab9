// SPDX-License-Identifier: Apache-2.0
/// The group `workloads`: short experiments that compare allocators.

#include "bench/experiments/measurements.hpp"

namespace quarry::tool {
namespace {

/// The grids of Vinkler and Havran: 120 thread blocks of 8 warps, the first lane of each warp
/// calls.
std::uint64_t vinkler_warps(const bench_scale& scale) { return scale.quick ? 12 * 8 : 120 * 8; }
/// A failing call may search the whole pool, so that a grid that fills the heap is small.
constexpr std::uint64_t max_fill_lanes = 1 << 14;

std::vector<bench_measurement> alloc(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t n : sizes_or(scale, powers(16, 8192, scale.quick ? 16 : 2)))
    list.push_back(measurement_at_size(bench_workload::malloc_then_free, n, scale.lanes));
  return list;
}

std::vector<bench_measurement> ranges(const bench_scale& scale, bench_workload workload,
                                      const std::vector<size_range>& own) {
  std::vector<bench_measurement> list;
  for (const size_range& r : sizes_or(scale, size_option::ranges, own))
    list.push_back(
        measurement_at(workload, static_cast<double>(list.size()), size_text(r), r, scale.lanes));
  return list;
}
std::vector<bench_measurement> mixed(const bench_scale& scale) {
  return ranges(scale, bench_workload::malloc_then_free, {{16, 1024}, {16, 8192}});
}
std::vector<bench_measurement> workload_fragmentation(const bench_scale& scale) {
  std::vector<bench_measurement> list = ranges(scale, bench_workload::fragmentation, {{16, 1024}});
  for (bench_measurement& m : list) m.rounds = 5;
  return list;
}

std::vector<bench_measurement> one_lane(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t n : sizes_or(scale, {16, 64 << 10})) {
    list.push_back(measurement_at_size(bench_workload::malloc_then_free, n, scale.lanes / 8));
    list.back().lanes_per_warp = 1;
  }
  return list;
}

std::vector<bench_measurement> churn(const bench_scale& scale) {
  bench_measurement m =
      measurement_at(bench_workload::churn, 0, "32 x 64 B", {64, 64}, scale.lanes / 4);
  m.rounds = 32;
  return {m};
}

std::vector<bench_measurement> xmalloc(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t calling : powers(1, 32, scale.quick ? 32 : 2)) {
    const auto lanes = static_cast<std::uint32_t>(calling);
    list.push_back(measurement_at(bench_workload::churn, lanes, std::to_string(lanes) + " per warp",
                                  {4, 4}, scale.lanes));
    list.back().lanes_per_warp = lanes;
  }
  return list;
}

std::vector<bench_measurement> acd(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint32_t batch : {10u, 100u}) {
    list.push_back(measurement_at(bench_workload::batch, batch, std::to_string(batch) + " x 16 B",
                                  {16, 16}, vinkler_warps(scale)));
    list.back().lanes_per_warp = 1;
    list.back().batch = batch;
  }
  return list;
}

std::vector<bench_measurement> p(const bench_scale& scale) {
  bench_measurement m =
      measurement_at(bench_workload::random_walk, 0, "16 B", {16, 16}, vinkler_warps(scale));
  m.lanes_per_warp = 1;
  m.rounds = 10;
  return {m};
}

std::vector<bench_measurement> widmer(const bench_scale& scale) {
  bench_measurement m =
      measurement_at(bench_workload::batch, 0, "16 x 64 B", {64, 64}, scale.lanes / 16);
  m.batch = 16;
  return {m};
}

/// The heap is a sixteenth of --heap, since filling takes long.
std::vector<bench_measurement> fill(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t n : sizes_or(scale, {256, 1000})) {
    list.push_back(
        measurement_at_size(bench_workload::fill, n, std::min(scale.lanes, max_fill_lanes)));
    list.back().heap_bytes = scale.heap / 16;
  }
  return list;
}

constexpr experiment_axis no_axis{"", "", "category"};
constexpr std::string_view group = "workloads";

}  // namespace

std::vector<experiment> workload_experiments() {
  const std::vector<experiment_y> both = {milliseconds, free_milliseconds};
  constexpr experiment_axis by_range{"sizes", "", "category"};
  std::vector<experiment> all;
  const auto add = [&](experiment e) { all.push_back(std::move(e)); };

  add(experiment{"alloc", group,
                 "every lane allocates a block in one kernel and frees it in the next", "", "",
                 by_size, both, alloc}
          .accepting(size_option::sizes));
  add(experiment{"mixed", group, "every lane allocates, then frees a block of a random size", "",
                 "", by_range, both, mixed}
          .accepting(size_option::ranges)
          .as("bars"));
  add(experiment{"one-lane", group, "the first lane of each warp allocates a block, then frees it",
                 "", "", by_size, both, one_lane}
          .accepting(size_option::sizes)
          .as("bars"));
  add(experiment{"churn",
                 group,
                 "each lane runs malloc, write, free 32 times; one kernel",
                 "",
                 "",
                 no_axis,
                 {milliseconds},
                 churn}
          .as("bars"));
  add(experiment{"xmalloc",
                 group,
                 "malloc of 4 B, write, free by 1 to 32 lanes of each warp; one kernel",
                 "Huang et al. 2013",
                 "",
                 {"calling lanes per warp", "", "log"},
                 {milliseconds},
                 xmalloc});
  add(experiment{"acd",
                 group,
                 "the first lane of 960 warps: 10 or 100 mallocs, then all frees",
                 "Vinkler, Havran 2014",
                 "",
                 {"mallocs per lane", "", "linear"},
                 {milliseconds},
                 acd}
          .as("bars"));
  add(experiment{"p",
                 group,
                 "ten launches of 960 warps: malloc or free with probability 0.75",
                 "Vinkler, Havran 2014",
                 "",
                 no_axis,
                 {milliseconds},
                 p}
          .as("bars"));
  add(experiment{"widmer",
                 group,
                 "16 mallocs of 64 B per lane, then all frees; one kernel",
                 "Widmer et al. 2013",
                 "",
                 no_axis,
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
                 workload_fragmentation}
          .accepting(size_option::ranges)
          .as("bars"));
  add(experiment{"fill",
                 group,
                 "usable fraction: live bytes when the first malloc fails / bytes of the heap",
                 "",
                 "heap: 1/16 of --heap",
                 by_size,
                 {{"usable_fraction", "usable fraction", "", "linear"}, milliseconds},
                 fill}
          .accepting(size_option::sizes)
          .as("bars"));
  return all;
}

}  // namespace quarry::tool

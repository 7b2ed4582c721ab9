// SPDX-License-Identifier: Apache-2.0
/// The survey of the field (Winter et al. 2021), and what it leaves out: heaps that are used for long, that
/// were full, that are nearly full, and how long a single call may take.

#include "bench/experiments/cells.hpp"

#include <quarry/core/bytes.hpp>

namespace quarry::tool {
namespace {

// ---- Winter et al. 2021: 100,000 threads, 10,000 warps, 8 GB, sizes of 4 to 8192 bytes ---------------

std::vector<std::uint64_t> survey_sizes(const bench_scale& scale) {
  return thinned(steps(4, 8192, scale.gpu ? 2 : 4), scale);
}
bench_cell surveyed(bench_cell c, const bench_scale& scale) {
  c.heap = scale.heap_of((8_GiB).value());
  return c;
}

std::vector<bench_cell> per_thread(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t size : sizes_or(scale, survey_sizes(scale)))
    cells.push_back(
        surveyed(cell_at_size(bench_shape::blocks, size, scale.lanes_of(100'000)), scale));
  return cells;
}
std::vector<bench_cell> per_warp(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t size : sizes_or(scale, survey_sizes(scale))) {
    cells.push_back(
        surveyed(cell_at_size(bench_shape::blocks, size, scale.lanes_of(10'000)), scale));
    cells.back().working = 1;
  }
  return cells;
}
std::vector<bench_cell> mixed_sizes(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t most : survey_sizes(scale))
    cells.push_back(surveyed(cell_at(bench_shape::blocks, static_cast<double>(most),
                                     size_text({4, most}), {4, most}, scale.lanes_of(100'000)),
                             scale));
  return cells;
}

std::vector<bench_cell> by_thread_count(const bench_scale& scale, bench_shape shape,
                                        size_range sizes) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t threads : thinned(steps(1, scale.lanes, 4), scale))
    cells.push_back(cell_at_count(shape, threads, sizes, threads));
  return cells;
}
template <std::uint64_t Size>
std::vector<bench_cell> scaling(const bench_scale& scale) {
  return by_thread_count(scale, bench_shape::blocks, {Size, Size});
}
template <std::uint64_t Most>
std::vector<bench_cell> work(const bench_scale& scale) {
  return by_thread_count(scale, bench_shape::generate, {4, Most});
}
std::vector<bench_cell> writing(const bench_scale& scale) {
  return by_thread_count(scale, bench_shape::write, {4, 64});
}

std::vector<bench_cell> fragmentation(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t size : sizes_or(scale, survey_sizes(scale))) {
    cells.push_back(
        surveyed(cell_at_size(bench_shape::extent, size, scale.lanes_of(100'000)), scale));
    cells.back().rounds = scale.quick ? 5 : 20;
    cells.back().turnover = 100;
  }
  return cells;
}

/// Filling takes long, so these heaps are small.
std::uint64_t small_heap(const bench_scale& scale) {
  return std::max<std::uint64_t>(scale.heap / 256, (1_MiB).value());
}
std::vector<bench_cell> out_of_memory_at(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t size : sizes_or(scale, thinned(steps(16, 8192, 2), scale))) {
    cells.push_back(
        cell_at_size(bench_shape::fill, size, std::min<std::uint64_t>(scale.lanes, 1 << 14)));
    cells.back().heap = small_heap(scale);
  }
  return cells;
}

// ---- ours -------------------------------------------------------------------------------------------

std::vector<bench_cell> steady(const bench_scale& scale) {
  const std::uint64_t heap = small_heap(scale);
  // Four fifths of the heap are asked for when sizes are at their largest, 520 bytes on average.
  bench_cell c = cell_at(bench_shape::steady, 0, "all rounds", {16, 1024}, heap / 5 * 4 / 520);
  c.rounds = scale.quick ? 16 : 64;
  c.heap = heap;
  return {c};
}
std::vector<bench_cell> recovery(const bench_scale& scale) {
  bench_cell c = cell_at(bench_shape::recovery, 0, "all turns", {64, 4096},
                         std::min<std::uint64_t>(scale.lanes, 1 << 14));
  c.rounds = 8;
  c.heap = small_heap(scale);
  return {c};
}
/// As many lanes as find room in the last hundredth.
std::vector<bench_cell> levels(const bench_scale& scale) {
  const std::uint64_t heap = small_heap(scale);
  bench_cell c = cell_at(bench_shape::levels, 0, "all levels", {256, 256}, heap / 256 / 128);
  c.heap = heap;
  return {c};
}
std::vector<bench_cell> latency(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t size : sizes_or(scale, thinned(steps(16, 4096, 4), scale)))
    cells.push_back(cell_at_size(bench_shape::latency, size, scale.lanes));
  return cells;
}
std::vector<bench_cell> cold_and_warm(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const bool cold : {false, true})
    for (const std::uint64_t size : sizes_or(scale, thinned(steps(16, 4096, 4), scale))) {
      cells.push_back(cell_at_size(bench_shape::blocks, size, scale.lanes));
      cells.back().cold = cold;
      cells.back().variant = cold ? "cold" : "warm";
    }
  return cells;
}

constexpr experiment_y usable_fraction{"usable_fraction", "usable fraction", "", "linear"};
constexpr experiment_y failed_fraction{"failed_fraction", "failed allocations / requests", "",
                                       "linear"};

}  // namespace

std::vector<experiment> field_experiments() {
  std::vector<experiment> all;
  const auto add = [&](experiment e) { all.push_back(std::move(e)); };
  const std::vector<experiment_y> both = {milliseconds, free_milliseconds};
  const auto survey = [&](std::string_view id, std::string_view title, std::string_view figure,
                          std::string_view note, experiment_axis x, std::vector<experiment_y> y,
                          std::vector<bench_cell> (*cells)(const bench_scale&)) {
    return experiment{id, "survey", title, figure, note, x, std::move(y), cells};
  };
  add(survey("survey-thread", "100,000 threads allocate, then free",
             "Winter et al. 2021, Figure 9a, b", "heap 8 GiB", by_size, both, per_thread)
          .taking(takes::sizes));
  add(survey("survey-warp", "one lane of 10,000 warps allocates, then frees",
             "Winter et al. 2021, Figure 9c", "heap 8 GiB", by_size, both, per_warp)
          .taking(takes::sizes));
  add(survey("survey-mixed", "100,000 threads, sizes from 4 B up to a limit",
             "Winter et al. 2021, Figure 9d", "heap 8 GiB", {"largest size", "B", "log"}, both,
             mixed_sizes));
  add(survey("survey-scaling-16", "1 to 2^20 threads allocate 16 B, then free",
             "Winter et al. 2021, Figure 10", "", by_threads, both, scaling<16>));
  add(survey("survey-scaling-64", "1 to 2^20 threads allocate 64 B, then free",
             "Winter et al. 2021, Figure 10", "", by_threads, both, scaling<64>));
  add(survey("survey-scaling-512", "1 to 2^20 threads allocate 512 B, then free",
             "Winter et al. 2021, Figure 10", "", by_threads, both, scaling<512>));
  add(survey("survey-scaling-8192", "1 to 2^20 threads allocate 8192 B, then free",
             "Winter et al. 2021, Figure 10", "", by_threads, both, scaling<8192>));
  add(survey("survey-fragmentation", "address-range fragmentation after rounds of malloc and free",
             "Winter et al. 2021, Figure 11a", "100,000 threads allocate and free, 20 times",
             by_size,
             {{"fragmentation", "address-range fragmentation", "", "log"},
              {"max_fragmentation", "maximum of all rounds", "", "log"}},
             fragmentation)
          .taking(takes::sizes));
  add(survey("survey-oom",
             "usable fraction: live bytes when the first malloc fails / bytes of the heap",
             "Winter et al. 2021, Figure 11b", "a heap of a 256th of the others' size", by_size,
             {usable_fraction, milliseconds}, out_of_memory_at)
          .taking(takes::sizes));
  add(survey("survey-work-64", "every thread produces 4 to 64 bytes: malloc and write",
             "Winter et al. 2021, Figure 11c", "prefix sum: lengths, sum and writing, no malloc",
             by_threads, both, work<64>)
          .with_baseline());
  add(survey("survey-work-4096", "every thread produces 4 to 4096 bytes: malloc and write",
             "Winter et al. 2021, Figure 11d", "prefix sum: lengths, sum and writing, no malloc",
             by_threads, both, work<4096>)
          .with_baseline());
  add(survey("survey-write", "every thread writes the 4 to 64 bytes that it was given",
             "Winter et al. 2021, Figure 11e", "prefix sum: one packed array", by_threads,
             {milliseconds}, writing)
          .with_baseline());

  const auto ours = [&](std::string_view id, std::string_view title, std::string_view note,
                        experiment_axis x, std::vector<experiment_y> y,
                        std::vector<bench_cell> (*cells)(const bench_scale&)) {
    return experiment{id, "ours", title, "", note, x, std::move(y), cells};
  };
  add(ours("steady", "long use: sizes drift, lifetimes mix",
           "16 B to 1 KiB, drifting with a period of 32 rounds; a quarter of the blocks each live "
           "for 1, 2, 8 and 32 rounds; at most four fifths of the heap are asked for",
           {"round", "", "linear"},
           {{"live", "live bytes / heap", "", "linear"},
            failed_fraction,
            {"fragmentation", "address-range fragmentation", "", "linear"},
            milliseconds},
           steady));
  add(ours("recovery", "fill the heap, free all, fill it with another size",
           "64, 1024, 256, 4096 bytes in turn, twice", {"turn", "", "linear"},
           {usable_fraction, milliseconds}, recovery));
  add(ours("levels", "what a call costs in a heap that is nearly full",
           "256 B; holes at random places; percent of what could be had", {"full", "%", "linear"},
           {milliseconds, free_milliseconds, failed_fraction}, levels));
  add(ours("latency", "how long single calls take when all lanes call",
           "clock cycles on a GPU, shared accesses on the CPU", by_size,
           {{"p50", "malloc, median", "", "log"},
            {"p90", "malloc, 90 %", "", "log"},
            {"p99", "malloc, 99 %", "", "log"},
            {"p999", "malloc, 99.9 %", "", "log"},
            {"max", "malloc, the slowest", "", "log"},
            {"free_p50", "free, median", "", "log"},
            {"free_p99", "free, 99 %", "", "log"},
            {"free_max", "free, the slowest", "", "log"}},
           latency)
          .taking(takes::sizes));
  add(ours("cold", "the first launch on a new heap, and later ones",
           "all lanes allocate, then free", by_size,
           {unranked(milliseconds), unranked(free_milliseconds)}, cold_and_warm)
          .taking(takes::sizes));
  return all;
}

}  // namespace quarry::tool

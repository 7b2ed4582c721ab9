// SPDX-License-Identifier: Apache-2.0
/// The experiments of a survey (Winter et al. 2021), and experiments of ours on what the survey
/// leaves out: heaps in long use, heaps after exhaustion, nearly full heaps, and the latency of
/// single calls.

#include "bench/experiments/measurements.hpp"

#include <quarry/core/bytes.hpp>

namespace quarry::tool {
namespace {

// ---- Winter et al. 2021: 100,000 threads, 10,000 warps, 8 GB, sizes of 4 to 8192 bytes ----------

std::vector<std::uint64_t> survey_sizes(const bench_scale& scale) {
  return thinned(powers(4, 8192, scale.gpu ? 2 : 4), scale);
}
/// Sets the heap of the survey.
bench_measurement surveyed(bench_measurement m, const bench_scale& scale) {
  m.heap_bytes = scale.heap_of((8_GiB).value());
  return m;
}

std::vector<bench_measurement> per_thread(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t size : sizes_or(scale, survey_sizes(scale)))
    list.push_back(surveyed(
        measurement_at_size(bench_workload::malloc_then_free, size, scale.lanes_of(100'000)),
        scale));
  return list;
}
std::vector<bench_measurement> per_warp(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t size : sizes_or(scale, survey_sizes(scale))) {
    list.push_back(surveyed(
        measurement_at_size(bench_workload::malloc_then_free, size, scale.lanes_of(10'000)),
        scale));
    list.back().lanes_per_warp = 1;
  }
  return list;
}
std::vector<bench_measurement> mixed_sizes(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t most : survey_sizes(scale))
    list.push_back(
        surveyed(measurement_at(bench_workload::malloc_then_free, static_cast<double>(most),
                                size_text({4, most}), {4, most}, scale.lanes_of(100'000)),
                 scale));
  return list;
}

std::vector<bench_measurement> by_thread_count(const bench_scale& scale, bench_workload workload,
                                               size_range sizes) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t threads : thinned(powers(1, scale.lanes, 4), scale))
    list.push_back(measurement_at_count(workload, threads, sizes, threads));
  return list;
}
template <std::uint64_t Size>
std::vector<bench_measurement> scaling(const bench_scale& scale) {
  return by_thread_count(scale, bench_workload::malloc_then_free, {Size, Size});
}
template <std::uint64_t Most>
std::vector<bench_measurement> produce(const bench_scale& scale) {
  return by_thread_count(scale, bench_workload::produce, {4, Most});
}
std::vector<bench_measurement> writing(const bench_scale& scale) {
  return by_thread_count(scale, bench_workload::write, {4, 64});
}

std::vector<bench_measurement> fragmentation(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t size : sizes_or(scale, survey_sizes(scale))) {
    list.push_back(surveyed(
        measurement_at_size(bench_workload::fragmentation, size, scale.lanes_of(100'000)), scale));
    list.back().rounds = scale.quick ? 5 : 20;
    list.back().turnover = 100;
  }
  return list;
}

/// Returns the size of heaps that are filled. Filling takes long, so these heaps are small.
std::uint64_t small_heap(const bench_scale& scale) {
  return std::max<std::uint64_t>(scale.heap / 256, (1_MiB).value());
}
std::vector<bench_measurement> out_of_memory_at(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t size : sizes_or(scale, thinned(powers(16, 8192, 2), scale))) {
    list.push_back(measurement_at_size(bench_workload::fill, size,
                                       std::min<std::uint64_t>(scale.lanes, 1 << 14)));
    list.back().heap_bytes = small_heap(scale);
  }
  return list;
}

// ---- ours ---------------------------------------------------------------------------------------

std::vector<bench_measurement> steady(const bench_scale& scale) {
  const std::uint64_t heap = small_heap(scale);
  // Live blocks need four fifths of the heap when sizes are at their maximum, 520 bytes on average.
  bench_measurement m =
      measurement_at(bench_workload::steady_state, 0, "all rounds", {16, 1024}, heap / 5 * 4 / 520);
  m.rounds = scale.quick ? 16 : 64;
  m.heap_bytes = heap;
  return {m};
}
std::vector<bench_measurement> recovery(const bench_scale& scale) {
  bench_measurement m = measurement_at(bench_workload::recovery, 0, "all rounds", {64, 4096},
                                       std::min<std::uint64_t>(scale.lanes, 1 << 14));
  m.rounds = 8;
  m.heap_bytes = small_heap(scale);
  return {m};
}
/// The lanes request what fits into the last hundredth of the heap.
std::vector<bench_measurement> fill_levels(const bench_scale& scale) {
  const std::uint64_t heap = small_heap(scale);
  bench_measurement m =
      measurement_at(bench_workload::fill_levels, 0, "all levels", {256, 256}, heap / 256 / 128);
  m.heap_bytes = heap;
  return {m};
}
std::vector<bench_measurement> latency(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t size : sizes_or(scale, thinned(powers(16, 4096, 4), scale)))
    list.push_back(measurement_at_size(bench_workload::latency, size, scale.lanes));
  return list;
}
std::vector<bench_measurement> cold_and_warm(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const bool cold : {false, true})
    for (const std::uint64_t size : sizes_or(scale, thinned(powers(16, 4096, 4), scale))) {
      list.push_back(measurement_at_size(bench_workload::malloc_then_free, size, scale.lanes));
      list.back().cold = cold;
      list.back().variant = cold ? "cold" : "warm";
    }
  return list;
}

constexpr experiment_y usable_fraction{"usable_fraction", "usable fraction", "", "linear"};
constexpr experiment_y failed_fraction{"failed_fraction", "failed allocations / requests", "",
                                       "linear"};

}  // namespace

std::vector<experiment> survey_experiments() {
  std::vector<experiment> all;
  const auto add = [&](experiment e) { all.push_back(std::move(e)); };
  const std::vector<experiment_y> both = {milliseconds, free_milliseconds};
  const auto survey = [&](std::string_view id, std::string_view title, std::string_view figure,
                          std::string_view note, experiment_axis x, std::vector<experiment_y> y,
                          std::vector<bench_measurement> (*list)(const bench_scale&)) {
    return experiment{id, "survey", title, figure, note, x, std::move(y), list};
  };
  add(survey("survey-thread", "100,000 threads allocate, then free",
             "Winter et al. 2021, Figure 9a, b", "heap 8 GiB", by_size, both, per_thread)
          .accepting(size_option::sizes));
  add(survey("survey-warp", "one lane of 10,000 warps allocates, then frees",
             "Winter et al. 2021, Figure 9c", "heap 8 GiB", by_size, both, per_warp)
          .accepting(size_option::sizes));
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
          .accepting(size_option::sizes));
  add(survey("survey-oom",
             "usable fraction: live bytes when the first malloc fails / bytes of the heap",
             "Winter et al. 2021, Figure 11b", "heap: 1/256 of --heap", by_size,
             {usable_fraction, milliseconds}, out_of_memory_at)
          .accepting(size_option::sizes));
  add(survey("survey-work-64", "every thread allocates and writes 4 to 64 bytes",
             "Winter et al. 2021, Figure 11c",
             "prefix sum: lengths, sum and writes, without malloc", by_threads, both, produce<64>)
          .with_baseline());
  add(survey("survey-work-4096", "every thread allocates and writes 4 to 4096 bytes",
             "Winter et al. 2021, Figure 11d",
             "prefix sum: lengths, sum and writes, without malloc", by_threads, both, produce<4096>)
          .with_baseline());
  add(survey("survey-write", "every thread writes to its block of 4 to 64 bytes",
             "Winter et al. 2021, Figure 11e", "prefix sum: one packed array", by_threads,
             {milliseconds}, writing)
          .with_baseline());

  const auto ours = [&](std::string_view id, std::string_view title, std::string_view note,
                        experiment_axis x, std::vector<experiment_y> y,
                        std::vector<bench_measurement> (*list)(const bench_scale&)) {
    return experiment{id, "ours", title, "", note, x, std::move(y), list};
  };
  add(ours("steady", "steady state: drifting sizes, mixed lifetimes",
           "16 B to 1 KiB, drifting with a period of 32 rounds; a quarter of the blocks each live "
           "for 1, 2, 8 and 32 rounds; live blocks need at most four fifths of the heap",
           {"round", "", "linear"},
           {{"live", "live bytes / heap", "", "linear"},
            failed_fraction,
            {"fragmentation", "address-range fragmentation", "", "linear"},
            milliseconds},
           steady));
  add(ours("recovery", "recovery: fill the heap, free all, fill it with another size",
           "64, 1024, 256, 4096 bytes, twice", {"round", "", "linear"},
           {usable_fraction, milliseconds}, recovery));
  add(ours("levels", "time of calls in a heap that is 0 to 99 % full",
           "256 B; free blocks at random addresses; percent of the usable blocks",
           {"fill level", "%", "linear"}, {milliseconds, free_milliseconds, failed_fraction},
           fill_levels));
  add(ours("latency", "latency of single calls while all lanes call",
           "clock cycles on a GPU, shared-memory accesses on the CPU backend", by_size,
           {{"p50", "malloc, median", "", "log"},
            {"p90", "malloc, 90 %", "", "log"},
            {"p99", "malloc, 99 %", "", "log"},
            {"p999", "malloc, 99.9 %", "", "log"},
            {"max", "malloc, maximum", "", "log"},
            {"free_p50", "free, median", "", "log"},
            {"free_p99", "free, 99 %", "", "log"},
            {"free_max", "free, maximum", "", "log"}},
           latency)
          .accepting(size_option::sizes));
  add(ours("cold", "the first launch on a new heap, and later launches",
           "all lanes allocate, then free", by_size,
           {unranked(milliseconds), unranked(free_milliseconds)}, cold_and_warm)
          .accepting(size_option::sizes));
  return all;
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// The speed of the CPU executor: lanes per second, collectives, scheduling points.

#include <quarry/heap.hpp>
#include <quarry/simt/explore.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>

namespace {

using namespace quarry;

// Lanes per second. Each lane starts, executes an active mask, a scan and a shuffle, and exits.
void warp_bump_lanes(benchmark::State& state) {
  heap<warp_bump, cpu> h(1_GiB);
  constexpr std::uint32_t blocks = 1024;
  constexpr std::uint32_t threads = 256;
  for (auto _ : state) {
    launch<cpu>(
        {.blocks = blocks, .threads = threads, .workers = static_cast<unsigned>(state.range(0))},
        [ref = h.ref()] { benchmark::DoNotOptimize(ref.malloc(64)); });
    h.reset();
  }
  state.SetItemsProcessed(state.iterations() * blocks * threads);
}
BENCHMARK(warp_bump_lanes)
    ->ArgName("workers")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void full_warp_ballot(benchmark::State& state) {
  constexpr std::uint32_t rounds = 10'000;
  for (auto _ : state)
    launch<cpu>({.blocks = 1, .threads = 32, .workers = 1}, [] {
      for (std::uint32_t i = 0; i < rounds; ++i)
        benchmark::DoNotOptimize(simt::ballot(simt::full_warp, i % 2 == 0));
    });
  state.SetItemsProcessed(state.iterations() * rounds);
}
BENCHMARK(full_warp_ballot)->UseRealTime()->Unit(benchmark::kMillisecond);

// The time per scheduling point in explore mode. Items are scheduling points.
void explored_points(benchmark::State& state) {
  simt::explorer explorer;
  const auto how = static_cast<simt::strategy>(state.range(0));
  std::uint32_t word = 0;
  std::uint64_t seed = 0;
  std::uint64_t points = 0;
  for (auto _ : state) {
    const auto result =
        explorer.run({.seed = ++seed, .how = how, .expected_steps = 6400}, {1, 32}, [&word] {
          for (int i = 0; i < 200; ++i) simt::atomic_ref<std::uint32_t>(word).add(1, simt::relaxed);
        });
    points += result.steps;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(points));
  state.counters["time_per_scheduling_point"] = benchmark::Counter(
      static_cast<double>(points), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(explored_points)->ArgName("pct")->Arg(0)->Arg(1)->UseRealTime();

}  // namespace

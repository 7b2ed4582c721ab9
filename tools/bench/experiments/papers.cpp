// SPDX-License-Identifier: Apache-2.0
/// The figures of the three papers on allocation in kernels, with their settings where this machine has room.

#include "bench/experiments/cells.hpp"
#include "bench/kernels/variants.hpp"

#include <quarry/core/bytes.hpp>

namespace quarry::tool {
namespace {

bench_subject own(std::string_view name, std::string_view series = {}) {
  return {std::string(name), std::string(name), std::string(series.empty() ? name : series)};
}
template <class Variant>
bench_subject variant_of(std::string_view allocator) {
  const std::string name(label_of<Variant>.name);
  return {name, std::string(allocator), name};
}

// ---- Huang et al. 2013 ------------------------------------------------------------------------------
// A million workers allocate an int, write to it and free it; 1 to 32 of them in each warp; 500 MB.

std::vector<bench_cell> workers_a_warp(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t working : thinned(steps(1, 32, 2), scale)) {
    cells.push_back(cell_at_count(bench_shape::churn, working, {4, 4}, scale.lanes));
    cells.back().working = static_cast<std::uint32_t>(working);
    cells.back().heap = scale.heap_of((500_MiB).value());
  }
  return cells;
}
std::vector<bench_cell> workers_in_a_fuller_heap(const bench_scale& scale) {
  std::vector<bench_cell> cells = workers_a_warp(scale);
  for (bench_cell& c : cells) c.occupied = 25;
  return cells;
}

// ---- Widmer et al. 2013 -----------------------------------------------------------------------------
// X threads allocate N times S bytes, then everything is freed.

std::vector<bench_cell> widmer_sizes(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t size : sizes_or(scale, thinned(steps(16, 8192, 2), scale))) {
    cells.push_back(cell_at_size(bench_shape::batch, size, 64));
    cells.back().batch = 16;
    cells.back().heap = scale.heap_of((1_GiB).value());
  }
  return cells;
}

/// All pairs of N and S that ask for no more than half of the heap.
std::vector<bench_load> widmer_loads(const bench_scale& scale, std::uint64_t threads) {
  const std::vector<std::uint64_t> set = scale.gpu && !scale.quick ? steps(16, 512, 2)
                                         : scale.quick             ? std::vector<std::uint64_t>{16}
                                                       : std::vector<std::uint64_t>{16, 64};
  std::vector<bench_load> loads;
  for (const std::uint64_t n : set)
    for (const std::uint64_t size : scale.gpu ? steps(16, 512, 2) : steps(16, 512, 32))
      if (threads * n * size <= scale.heap / 2)
        loads.push_back({static_cast<std::uint32_t>(n), size});
  return loads;
}
std::vector<bench_cell> widmer_threads(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  const std::uint64_t most = std::max<std::uint64_t>(scale.lanes / 16, 1);
  for (const std::uint64_t threads : thinned(steps(1, most, scale.gpu ? 2 : 4), scale)) {
    cells.push_back(cell_at_count(bench_shape::batch, threads, {16, 512}, threads));
    cells.back().loads = widmer_loads(scale, threads);
  }
  return cells;
}

std::vector<bench_cell> widmer_blocks(const bench_scale& scale) {
  constexpr std::uint32_t threads = 1024;
  const std::uint64_t most =
      std::max<std::uint64_t>(scale.lanes / 2 / threads, scale.quick ? 2 : 8);
  std::vector<bench_cell> cells;
  for (const std::uint32_t batch : {1u, 16u, 128u}) {
    if (!scale.gpu && batch > 16) continue;
    for (const std::uint64_t blocks : thinned(steps(1, most, 2), scale)) {
      cells.push_back(cell_at_count(bench_shape::batch, blocks, {16, 16}, blocks * threads));
      cells.back().threads = threads;
      cells.back().batch = batch;
      cells.back().variant = std::to_string(batch) + " a thread";
    }
  }
  return cells;
}

// ---- Vinkler, Havran 2014 ---------------------------------------------------------------------------
// Table 1: 120 blocks of 8 warps, the first lane of each allocates; a heap of 2 GB.

std::uint64_t vinkler_blocks(const bench_scale& scale) { return scale.quick ? 12 : 120; }
bench_cell vinkler(bench_cell c, const bench_scale& scale) {
  c.working = 1;
  c.heap = scale.heap_of((2_GiB).value());
  return c;
}
std::vector<std::uint64_t> payloads(const bench_scale& scale, std::uint64_t most) {
  return sizes_or(scale, thinned(steps(4, most, scale.gpu ? 2 : 8), scale));
}

std::vector<bench_cell> alloc_dealloc(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t size : payloads(scale, 128 << 10))
    cells.push_back(
        vinkler(cell_at_size(bench_shape::churn, size, vinkler_blocks(scale) * 8), scale));
  return cells;
}
bench_cell alloc_cycle_dealloc(const bench_scale& scale, double x, std::string row,
                               std::uint64_t size, std::uint32_t batch) {
  bench_cell c = vinkler(
      cell_at(bench_shape::batch, x, std::move(row), {size, size}, vinkler_blocks(scale) * 8),
      scale);
  c.batch = batch;
  return c;
}
std::vector<bench_cell> by_heap(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  const std::uint64_t most = scale.heap_of((2_GiB).value());
  for (const std::uint64_t heap : thinned(steps(128 << 10, most, 4), scale)) {
    cells.push_back(
        alloc_cycle_dealloc(scale, static_cast<double>(heap), size_text({heap, heap}), 4, 10));
    cells.back().heap = heap;
  }
  return cells;
}
std::vector<bench_cell> by_iterations(const bench_scale& scale) {
  std::vector<std::uint64_t> counts;
  for (std::uint64_t n = 10; n <= 100; n += 10) counts.push_back(n);
  std::vector<bench_cell> cells;
  for (const std::uint64_t n : thinned(counts, scale))
    cells.push_back(alloc_cycle_dealloc(scale, static_cast<double>(n), std::to_string(n), 4,
                                        static_cast<std::uint32_t>(n)));
  return cells;
}
std::vector<bench_cell> probability(const bench_scale& scale) {
  std::vector<std::uint64_t> counts{1};
  for (std::uint64_t n = 10; n <= vinkler_blocks(scale); n += 10) counts.push_back(n);
  std::vector<bench_cell> cells;
  for (const std::uint64_t blocks : thinned(counts, scale)) {
    cells.push_back(vinkler(cell_at_count(bench_shape::chance, blocks, {4, 4}, blocks * 8), scale));
    cells.back().rounds = 10;
  }
  return cells;
}
std::vector<bench_cell> by_page_size(const bench_scale& scale) {
  std::vector<bench_cell> cells;
  for (const std::uint64_t size : payloads(scale, scale.gpu ? 128 << 10 : 16 << 10))
    cells.push_back(
        alloc_cycle_dealloc(scale, static_cast<double>(size), size_text({size, size}), size, 10));
  return cells;
}

}  // namespace

std::vector<experiment> paper_experiments() {
  std::vector<experiment> all;
  const auto add = [&](experiment e) { all.push_back(std::move(e)); };
  constexpr experiment_axis lanes{"working lanes a warp", "", "log"};
  constexpr std::string_view huang =
      "a million workers allocate 4 bytes, write and free; heap 500 MiB";
  add(experiment{"xmalloc-2",
                 "huang-2013",
                 "malloc, write, free by 1 to 32 lanes of each warp",
                 "Huang et al. 2013, Figure 2",
                 huang,
                 lanes,
                 {per_object, milliseconds},
                 workers_a_warp});
  add(experiment{"xmalloc-2-quarter",
                 "huang-2013",
                 "malloc, write, free by 1 to 32 lanes of each warp, a quarter of the heap taken",
                 "Huang et al. 2013, Figure 2 and Section 5",
                 "blocks of 1 KiB lie in the heap",
                 lanes,
                 {per_object, milliseconds},
                 workers_in_a_fuller_heap});
  add(experiment{"xmalloc-5",
                 "huang-2013",
                 "what coalescing alone does for the system's malloc",
                 "Huang et al. 2013, Figure 5",
                 huang,
                 lanes,
                 {per_object, milliseconds},
                 workers_a_warp}
          .for_only({own("CudaMalloc"), own("CudaMalloc-warp", "CudaMalloc, coalesced"),
                     own("XMalloc")}));
  add(experiment{"xmalloc-6",
                 "huang-2013",
                 "time for each request that reaches the FIFOs",
                 "Huang et al. 2013, Figure 6",
                 "a coalesced request is one",
                 lanes,
                 {{"ns_per_request", "time a request", "ns", "log"}, milliseconds},
                 workers_a_warp}
          .for_only({own("CudaMalloc-warp", "no FIFOs"), variant_of<fifo_variant<1>>("XMalloc"),
                     variant_of<fifo_variant<2>>("XMalloc"), variant_of<fifo_variant<4>>("XMalloc"),
                     variant_of<fifo_variant<8>>("XMalloc"),
                     variant_of<fifo_variant<16>>("XMalloc"),
                     variant_of<fifo_variant<32>>("XMalloc"),
                     variant_of<fifo_variant<64>>("XMalloc"), own("XMalloc")}));

  add(experiment{"fdgmalloc-4",
                 "widmer-2013",
                 "64 threads allocate 16 blocks each, then free all",
                 "Widmer et al. 2013, Figure 4",
                 "",
                 by_size,
                 {milliseconds},
                 widmer_sizes}
          .taking(takes::sizes)
          .by_arenas());
  add(experiment{
      "fdgmalloc-5",
      "widmer-2013",
      "1 to 65,536 threads allocate N x S bytes, then free all",
      "Widmer et al. 2013, Figure 5",
      "mean over N and S of 16, 32 ... 512, as far as half the heap holds them; fewer on "
      "the CPU",
      by_threads,
      {milliseconds},
      widmer_threads}
          .by_arenas());
  add(experiment{"fdgmalloc-6",
                 "widmer-2013",
                 "1 to 512 blocks of 1024 threads allocate N x 16 bytes",
                 "Widmer et al. 2013, Figure 6",
                 "N is 1, 16 and 128",
                 {"blocks", "", "log"},
                 {unranked(milliseconds)},
                 widmer_blocks}
          .for_only({{std::string(label_of<fdg_arenas>.name), "FDGMalloc", "FDGMalloc"},
                     variant_of<fdg_over_system>("FDGMalloc"),
                     own("Quarry")}));

  constexpr std::string_view vinkler_grid =
      "the first lane of each warp; 120 blocks of 8 warps, 2 GiB";
  add(experiment{"cmalloc-3a",
                 "vinkler-2014",
                 "allocate and free at once, 4 B to 128 KiB",
                 "Vinkler, Havran 2014, Figure 3a",
                 vinkler_grid,
                 by_size,
                 {milliseconds},
                 alloc_dealloc}
          .taking(takes::sizes)
          .by_arenas());
  add(experiment{"cmalloc-3b",
                 "vinkler-2014",
                 "allocate ten times, free all: heaps of 128 KiB to 2 GiB",
                 "Vinkler, Havran 2014, Figure 3b",
                 "4 bytes each",
                 {"heap", "B", "log"},
                 {milliseconds},
                 by_heap}
          .by_arenas());
  add(experiment{"cmalloc-3c",
                 "vinkler-2014",
                 "allocate 10 to 100 times, free all",
                 "Vinkler, Havran 2014, Figure 3c",
                 vinkler_grid,
                 {"mallocs of a lane", "", "linear"},
                 {milliseconds},
                 by_iterations}
          .by_arenas());
  add(experiment{"cmalloc-3d",
                 "vinkler-2014",
                 "malloc or free with probability 0.75, ten launches",
                 "Vinkler, Havran 2014, Figure 3d",
                 "8 lanes a block",
                 {"blocks", "", "linear"},
                 {milliseconds},
                 probability});
  add(experiment{"cmalloc-4",
                 "vinkler-2014",
                 "ScatterAlloc with pages of 4 KiB to 64 MiB",
                 "Vinkler, Havran 2014, Figure 4",
                 "allocate ten times, free all",
                 by_size,
                 {milliseconds},
                 by_page_size}
          .taking(takes::sizes)
          .for_only({own("ScatterAlloc", "ScatterAlloc, 4 KiB"),
                     variant_of<page_variant<16>>("ScatterAlloc"),
                     variant_of<page_variant<64>>("ScatterAlloc"),
                     variant_of<page_variant<256>>("ScatterAlloc"),
                     variant_of<page_variant<1024>>("ScatterAlloc"),
                     variant_of<page_variant<4096>>("ScatterAlloc"),
                     variant_of<page_variant<16384>>("ScatterAlloc"),
                     variant_of<page_variant<65536>>("ScatterAlloc")}));
  add(experiment{"cmalloc-registers",
                 "vinkler-2014",
                 "registers of a kernel with one malloc and one free",
                 "Vinkler, Havran 2014, Table 2",
                 "counted by ptxas, kept in the ledger of costs",
                 {"", "", "category"},
                 {{"registers", "registers", "", "linear"}},
                 nullptr}
          .as("bars"));
  return all;
}

}  // namespace quarry::tool

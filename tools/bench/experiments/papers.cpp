// SPDX-License-Identifier: Apache-2.0
/// The figures of three papers on allocation in kernels, with the published settings as far as the
/// backend has room for them.

#include "bench/experiments/measurements.hpp"
#include "bench/kernels/variants.hpp"

#include <quarry/core/bytes.hpp>

namespace quarry::tool {
namespace {

/// An allocator of the library.
bench_subject own(std::string_view name, std::string_view series = {}) {
  return {std::string(name), std::string(name), std::string(series.empty() ? name : series)};
}
template <class Variant>
bench_subject variant_of(std::string_view allocator) {
  const std::string name(label_of<Variant>.name);
  return {name, std::string(allocator), name};
}

// ---- Huang et al. 2013 --------------------------------------------------------------------------
// A million lanes allocate an int, write to it and free it; 1 to 32 lanes of each warp call; 500
// MB.

std::vector<bench_measurement> lanes_per_warp(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t calling : thinned(powers(1, 32, 2), scale)) {
    list.push_back(measurement_at_count(bench_workload::churn, calling, {4, 4}, scale.lanes));
    list.back().lanes_per_warp = static_cast<std::uint32_t>(calling);
    list.back().heap_bytes = scale.heap_of((500_MiB).value());
  }
  return list;
}
std::vector<bench_measurement> lanes_per_warp_in_a_quarter_full_heap(const bench_scale& scale) {
  std::vector<bench_measurement> list = lanes_per_warp(scale);
  for (bench_measurement& m : list) m.occupied = 25;
  return list;
}

// ---- Widmer et al. 2013 -------------------------------------------------------------------------
// X threads allocate N blocks of S bytes each, then all blocks are freed.

std::vector<bench_measurement> widmer_sizes(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t size : sizes_or(scale, thinned(powers(16, 8192, 2), scale))) {
    list.push_back(measurement_at_size(bench_workload::batch, size, 64));
    list.back().batch = 16;
    list.back().heap_bytes = scale.heap_of((1_GiB).value());
  }
  return list;
}

/// Returns all pairs of N and S that request at most half of the heap.
std::vector<bench_load> widmer_loads(const bench_scale& scale, std::uint64_t threads) {
  const std::vector<std::uint64_t> set = scale.gpu && !scale.quick ? powers(16, 512, 2)
                                         : scale.quick             ? std::vector<std::uint64_t>{16}
                                                       : std::vector<std::uint64_t>{16, 64};
  std::vector<bench_load> loads;
  for (const std::uint64_t n : set)
    for (const std::uint64_t size : scale.gpu ? powers(16, 512, 2) : powers(16, 512, 32))
      if (threads * n * size <= scale.heap / 2)
        loads.push_back({static_cast<std::uint32_t>(n), size});
  return loads;
}
std::vector<bench_measurement> widmer_threads(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  const std::uint64_t most = std::max<std::uint64_t>(scale.lanes / 16, 1);
  for (const std::uint64_t threads : thinned(powers(1, most, scale.gpu ? 2 : 4), scale)) {
    list.push_back(measurement_at_count(bench_workload::batch, threads, {16, 512}, threads));
    list.back().loads = widmer_loads(scale, threads);
  }
  return list;
}

std::vector<bench_measurement> widmer_blocks(const bench_scale& scale) {
  constexpr std::uint32_t threads = 1024;
  const std::uint64_t most =
      std::max<std::uint64_t>(scale.lanes / 2 / threads, scale.quick ? 2 : 8);
  std::vector<bench_measurement> list;
  for (const std::uint32_t batch : {1u, 16u, 128u}) {
    if (!scale.gpu && batch > 16) continue;
    for (const std::uint64_t blocks : thinned(powers(1, most, 2), scale)) {
      list.push_back(
          measurement_at_count(bench_workload::batch, blocks, {16, 16}, blocks * threads));
      list.back().threads_per_block = threads;
      list.back().batch = batch;
      list.back().variant = std::to_string(batch) + " per thread";
    }
  }
  return list;
}

// ---- Vinkler, Havran 2014 -----------------------------------------------------------------------
// Table 1: 120 thread blocks of 8 warps, the first lane of each warp allocates; a heap of 2 GB.

std::uint64_t vinkler_blocks(const bench_scale& scale) { return scale.quick ? 12 : 120; }
bench_measurement vinkler(bench_measurement m, const bench_scale& scale) {
  m.lanes_per_warp = 1;
  m.heap_bytes = scale.heap_of((2_GiB).value());
  return m;
}
std::vector<std::uint64_t> payloads(const bench_scale& scale, std::uint64_t most) {
  return sizes_or(scale, thinned(powers(4, most, scale.gpu ? 2 : 8), scale));
}

std::vector<bench_measurement> alloc_dealloc(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t size : payloads(scale, 128 << 10))
    list.push_back(vinkler(
        measurement_at_size(bench_workload::churn, size, vinkler_blocks(scale) * 8), scale));
  return list;
}
bench_measurement alloc_cycle_dealloc(const bench_scale& scale, double x, std::string x_label,
                                      std::uint64_t size, std::uint32_t batch) {
  bench_measurement m = vinkler(measurement_at(bench_workload::batch, x, std::move(x_label),
                                               {size, size}, vinkler_blocks(scale) * 8),
                                scale);
  m.batch = batch;
  return m;
}
std::vector<bench_measurement> by_heap(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  const std::uint64_t most = scale.heap_of((2_GiB).value());
  for (const std::uint64_t heap : thinned(powers(128 << 10, most, 4), scale)) {
    list.push_back(
        alloc_cycle_dealloc(scale, static_cast<double>(heap), size_text({heap, heap}), 4, 10));
    list.back().heap_bytes = heap;
  }
  return list;
}
std::vector<bench_measurement> by_iterations(const bench_scale& scale) {
  std::vector<std::uint64_t> counts;
  for (std::uint64_t n = 10; n <= 100; n += 10) counts.push_back(n);
  std::vector<bench_measurement> list;
  for (const std::uint64_t n : thinned(counts, scale))
    list.push_back(alloc_cycle_dealloc(scale, static_cast<double>(n), std::to_string(n), 4,
                                       static_cast<std::uint32_t>(n)));
  return list;
}
std::vector<bench_measurement> probability(const bench_scale& scale) {
  std::vector<std::uint64_t> counts{1};
  for (std::uint64_t n = 10; n <= vinkler_blocks(scale); n += 10) counts.push_back(n);
  std::vector<bench_measurement> list;
  for (const std::uint64_t blocks : thinned(counts, scale)) {
    list.push_back(vinkler(
        measurement_at_count(bench_workload::random_walk, blocks, {4, 4}, blocks * 8), scale));
    list.back().rounds = 10;
  }
  return list;
}
std::vector<bench_measurement> by_page_size(const bench_scale& scale) {
  std::vector<bench_measurement> list;
  for (const std::uint64_t size : payloads(scale, scale.gpu ? 128 << 10 : 16 << 10))
    list.push_back(
        alloc_cycle_dealloc(scale, static_cast<double>(size), size_text({size, size}), size, 10));
  return list;
}

}  // namespace

std::vector<experiment> paper_experiments() {
  std::vector<experiment> all;
  const auto add = [&](experiment e) { all.push_back(std::move(e)); };
  constexpr experiment_axis lanes{"calling lanes per warp", "", "log"};
  constexpr std::string_view huang =
      "a million lanes allocate 4 bytes, write and free; heap 500 MiB";
  add(experiment{"xmalloc-2",
                 "huang-2013",
                 "malloc, write, free by 1 to 32 lanes of each warp",
                 "Huang et al. 2013, Figure 2",
                 huang,
                 lanes,
                 {per_object, milliseconds},
                 lanes_per_warp});
  add(experiment{"xmalloc-2-quarter",
                 "huang-2013",
                 "malloc, write, free by 1 to 32 lanes of each warp, heap a quarter full",
                 "Huang et al. 2013, Figure 2 and Section 5",
                 "blocks of 1 KiB occupy a quarter of the heap",
                 lanes,
                 {per_object, milliseconds},
                 lanes_per_warp_in_a_quarter_full_heap});
  add(experiment{"xmalloc-5",
                 "huang-2013",
                 "effect of coalescing alone on CUDA's malloc",
                 "Huang et al. 2013, Figure 5",
                 huang,
                 lanes,
                 {per_object, milliseconds},
                 lanes_per_warp}
          .for_only({own("CudaMalloc"), own("CudaMalloc-warp", "CudaMalloc, coalesced"),
                     own("XMalloc")}));
  add(experiment{"xmalloc-6",
                 "huang-2013",
                 "time per request that reaches the FIFOs",
                 "Huang et al. 2013, Figure 6",
                 "a coalesced request counts once",
                 lanes,
                 {{"ns_per_request", "time per request", "ns", "log"}, milliseconds},
                 lanes_per_warp}
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
          .accepting(size_option::sizes)
          .with_arenas());
  add(experiment{
      "fdgmalloc-5",
      "widmer-2013",
      "1 to 65,536 threads allocate N x S bytes, then free all",
      "Widmer et al. 2013, Figure 5",
      "mean over N and S of 16, 32 ... 512, all pairs that request at most half of the heap; "
      "fewer pairs on the CPU",
      by_threads,
      {milliseconds},
      widmer_threads}
          .with_arenas());
  add(experiment{"fdgmalloc-6",
                 "widmer-2013",
                 "1 to 512 thread blocks of 1024 threads allocate N x 16 bytes",
                 "Widmer et al. 2013, Figure 6",
                 "N is 1, 16 and 128",
                 {"thread blocks", "", "log"},
                 {unranked(milliseconds)},
                 widmer_blocks}
          .for_only({{std::string(label_of<fdg_arenas>.name), "FDGMalloc", "FDGMalloc"},
                     variant_of<fdg_over_system>("FDGMalloc"),
                     own("Quarry")}));

  constexpr std::string_view vinkler_grid =
      "the first lane of each warp calls; 120 thread blocks of 8 warps, heap 2 GiB";
  add(experiment{"cmalloc-3a",
                 "vinkler-2014",
                 "malloc, then free at once, 4 B to 128 KiB",
                 "Vinkler, Havran 2014, Figure 3a",
                 vinkler_grid,
                 by_size,
                 {milliseconds},
                 alloc_dealloc}
          .accepting(size_option::sizes)
          .with_arenas());
  add(experiment{"cmalloc-3b",
                 "vinkler-2014",
                 "ten mallocs, then all frees; heaps of 128 KiB to 2 GiB",
                 "Vinkler, Havran 2014, Figure 3b",
                 "blocks of 4 bytes",
                 {"heap", "B", "log"},
                 {milliseconds},
                 by_heap}
          .with_arenas());
  add(experiment{"cmalloc-3c",
                 "vinkler-2014",
                 "10 to 100 mallocs, then all frees",
                 "Vinkler, Havran 2014, Figure 3c",
                 vinkler_grid,
                 {"mallocs per lane", "", "linear"},
                 {milliseconds},
                 by_iterations}
          .with_arenas());
  add(experiment{"cmalloc-3d",
                 "vinkler-2014",
                 "malloc or free with probability 0.75, ten launches",
                 "Vinkler, Havran 2014, Figure 3d",
                 "8 lanes per thread block call",
                 {"thread blocks", "", "linear"},
                 {milliseconds},
                 probability});
  add(experiment{"cmalloc-4",
                 "vinkler-2014",
                 "ScatterAlloc with pages of 4 KiB to 64 MiB",
                 "Vinkler, Havran 2014, Figure 4",
                 "ten mallocs, then all frees",
                 by_size,
                 {milliseconds},
                 by_page_size}
          .accepting(size_option::sizes)
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
                 "counted by ptxas; from the cost ledger",
                 {"", "", "category"},
                 {{"registers", "registers", "", "linear"}},
                 nullptr}
          .as("bars"));
  return all;
}

}  // namespace quarry::tool

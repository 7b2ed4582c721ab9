// SPDX-License-Identifier: Apache-2.0
/// The workload of quarry map, instantiated for every allocator that can report its layout.

#include "map/run.hpp"

#include <quarry/heap.hpp>
#include <quarry/heap/named.hpp>
#include <quarry/simt/random.hpp>

#include <algorithm>

namespace quarry::tool {
namespace {

template <class Ref>
struct map_kernel {
  Ref heap;
  map_plan plan;
  std::uint64_t round;
  void** blocks;

  void operator()() const {
    const std::uint64_t me = simt::global_thread();
    if (me >= plan.lanes) return;
    simt::lane_random draw(plan.seed * 1'000'003 + round * plan.lanes + me);
    for (std::uint64_t i = 0; i < plan.blocks_per_lane; ++i) {
      void*& block = blocks[me * plan.blocks_per_lane + i];
      if constexpr (Ref::can.frees_one) {
        if (block != nullptr && draw.below(100) < plan.free_percent) {
          heap.free(block);
          block = nullptr;
          continue;
        }
      }
      if (block != nullptr) continue;
      const auto spread = static_cast<std::uint32_t>(plan.sizes.most - plan.sizes.least + 1);
      block = heap.malloc(plan.sizes.least + draw.below(spread));
    }
  }
};

template <mapping_allocator Allocator>
map_result run_map(const map_plan& plan) {
  const heap<Allocator, cpu> h{bytes(plan.heap)};
  std::vector<void*> blocks(plan.lanes * plan.blocks_per_lane);
  const auto threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.lanes, 128));
  const auto count = static_cast<std::uint32_t>(ceil_div(plan.lanes, std::uint64_t{threads}));
  for (std::uint64_t round = 0; round < plan.rounds; ++round)
    launch<cpu>({.blocks = count, .threads = threads, .workers = 1},
                map_kernel<heap_ref<Allocator, cpu>>{h.ref(), plan, round, blocks.data()});
  map_result result{h.statistics(), {}, h.check_invariants()};
  h.on_host([&](const Allocator& a) {
    a.visit_pieces([&](const pool_piece& p) { result.pieces.push_back(p); });
  });
  return result;
}

}  // namespace

std::vector<mapping_entry> mapping_allocators() {
  std::vector<mapping_entry> all;
  for_each_allocator([&](auto entry) {
    using allocator_type = typename decltype(entry)::type;
    if constexpr (mapping_allocator<allocator_type>)
      all.push_back({entry.name, allocator_type::can.min_pool, run_map<allocator_type>});
  });
  return all;
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// buffer under explored schedules, with the number of FIFOs that the pool determines: several
/// FIFOs of one or two blocks, so that calls try more than one FIFO.
#include "check/effort.hpp"

#include <quarry/layer/buffer.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/pool/system_heap.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace buffer_explore_test {
namespace {

using namespace quarry;

template <freeing_allocator A, std::uint32_t BlocksPerFifo>
using many_fifos = buffer<A, 0, 512, 256 * BlocksPerFifo>;

/// Explores grids of 3, 8 and 32 lanes. The pool may fragment, so the number of blocks after a
/// refill is not checked.
template <allocator A>
void explore() {
  for (const std::uint32_t lanes : {3u, 8u, 32u})
    for (const exploration_strategy how :
         {exploration_strategy::both, exploration_strategy::lockstep})
      expect_survival<A>({.bounds = {.lanes = lanes},
                          .pool_bytes = 32'768,
                          .schedules = scaled(lanes == 32 ? 2000 : 10'000),
                          .strategy = how,
                          .step_limit = 400'000,
                          .refill_one_in = 0});
}

TEST(ExploreBuffer, OfOneBlockOverCircular) { explore<many_fifos<cfmalloc, 1>>(); }
TEST(ExploreBuffer, OfTwoBlocksOverCircular) { explore<many_fifos<cfmmalloc, 2>>(); }
TEST(ExploreBuffer, OverSystemHeap) { explore<many_fifos<system_heap, 1>>(); }
TEST(ExploreBuffer, BelowWarpAggregated) { explore<warp_aggregated<many_fifos<cfmalloc, 1>>>(); }

}  // namespace
}  // namespace buffer_explore_test

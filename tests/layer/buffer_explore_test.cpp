// SPDX-License-Identifier: Apache-2.0
/// buffer under explored schedules, with as many FIFOs as the pool allows: several, of one or two blocks
/// each, so that blocks are looked for and kept elsewhere.
#include "check/effort.hpp"

#include <quarry/layer/buffer.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/pool/system_heap.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using namespace quarry;

template <freeing_allocator A, std::uint32_t BlocksPerFifo>
using many_fifos = buffer<A, 0, 512, 256 * BlocksPerFifo>;

/// 3, 8 and 32 lanes. Gaps that no smallest block fills are the pool's own: no count of blocks.
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
TEST(ExploreBuffer, OverTheSystemsHeap) { explore<many_fifos<system_heap, 1>>(); }
TEST(ExploreBuffer, UnderCoalesce) { explore<warp_aggregated<many_fifos<cfmalloc, 1>>>(); }

}  // namespace

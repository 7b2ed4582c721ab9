// SPDX-License-Identifier: Apache-2.0
#pragma once
/// xmalloc: XMalloc of Huang et al. (2013). The requests of a warp become one, freed blocks are kept in
/// FIFOs, and CUDA's own malloc (std::malloc on the CPU) does the rest.
///
/// The functions of the paper, xmcInit, xmcMalloc and xmcFree, are in xmc.hpp.

#include <quarry/layer/buffer.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/system_heap.hpp>

namespace quarry {

using xmalloc = warp_aggregated<buffer<system_heap>>;

static_assert(freeing_allocator<xmalloc>);

}  // namespace quarry

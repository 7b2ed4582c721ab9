// SPDX-License-Identifier: Apache-2.0
#pragma once
/// xmalloc: XMalloc of Huang et al. (2013): warp-aggregated requests, FIFOs of freed blocks, and
/// CUDA's device malloc (std::malloc on the CPU) as the upstream.
///
/// xmc.hpp has the functions of the paper: xmcInit, xmcMalloc and xmcFree.

#include <quarry/layer/buffer.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/system_heap.hpp>

namespace quarry {

using xmalloc = warp_aggregated<buffer<system_heap>>;

static_assert(freeing_allocator<xmalloc>);

}  // namespace quarry

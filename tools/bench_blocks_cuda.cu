// SPDX-License-Identifier: Apache-2.0
/// The benchmark on an NVIDIA GPU: blocks that outlive a kernel.

#include "bench_blocks.hpp"
#include "bench_cuda.hpp"
#include "bench_curves.hpp"
#include "bench_dispatch.hpp"

namespace quarry::tool {

void run_bench_blocks_cuda(const bench_request& request, const bench_emit& emit) {
  if (kind_of(request) == bench_kind::curves)
    run_named<curve_bench, cuda>(request, emit);
  else
    run_named<block_bench, cuda>(request, emit);
}

}  // namespace quarry::tool

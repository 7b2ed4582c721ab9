// SPDX-License-Identifier: Apache-2.0
/// The benchmark on an NVIDIA GPU: workloads in which blocks outlive a kernel.

#include "bench/kernels/blocks.hpp"
#include "bench/kernels/cuda.hpp"
#include "bench/kernels/curves.hpp"
#include "bench/kernels/dispatch.hpp"

namespace quarry::tool {

void run_bench_blocks_cuda(const bench_request& request, const bench_callback& emit) {
  if (kind_of(request) == bench_runner_kind::curves)
    run_named<curve_bench, cuda>(request, emit);
  else
    run_named<block_bench, cuda>(request, emit);
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// The benchmark on an NVIDIA GPU: variants of allocators.

#include "bench/kernels/cuda.hpp"
#include "bench/kernels/dispatch.hpp"
#include "bench/kernels/loops.hpp"

namespace quarry::tool {

void run_bench_variants_cuda(const bench_request& request, const bench_callback& emit) {
  run_listed<loop_bench, cuda>(request, emit, bench_variants{});
}

}  // namespace quarry::tool

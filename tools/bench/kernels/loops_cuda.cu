// SPDX-License-Identifier: Apache-2.0
/// The benchmark on an NVIDIA GPU: kernels that both allocate and free.

#include "bench/kernels/cuda.hpp"
#include "bench/kernels/dispatch.hpp"
#include "bench/kernels/loops.hpp"

namespace quarry::tool {

void run_bench_loops_cuda(const bench_request& request, const bench_callback& emit) {
  if (!run_named<loop_bench, cuda>(request, emit)) run_bench_variants_cuda(request, emit);
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// The benchmark on an NVIDIA GPU: workloads about single calls.

#include "bench/kernels/calls.hpp"
#include "bench/kernels/cuda.hpp"
#include "bench/kernels/dispatch.hpp"

namespace quarry::tool {

void run_bench_calls_cuda(const bench_request& request, const bench_callback& emit) {
  run_named<call_bench, cuda>(request, emit);
}

}  // namespace quarry::tool

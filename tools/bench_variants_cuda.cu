// SPDX-License-Identifier: Apache-2.0
/// The benchmark on an NVIDIA GPU: allocators with other template arguments.

#include "bench_cuda.hpp"
#include "bench_dispatch.hpp"
#include "bench_loops.hpp"

namespace quarry::tool {

void run_bench_variants_cuda(const bench_request& request, const bench_emit& emit) {
  run_listed<loop_bench, cuda>(request, emit, bench_variants{});
}

}  // namespace quarry::tool

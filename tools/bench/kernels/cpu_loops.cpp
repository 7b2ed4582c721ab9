// SPDX-License-Identifier: Apache-2.0
/// The benchmark on the CPU backend: kernels that both allocate and free.

#include "bench/kernels/cpu.hpp"
#include "bench/kernels/dispatch.hpp"
#include "bench/kernels/loops.hpp"

namespace quarry::tool {

void run_bench_loops_cpu(const bench_request& request, const bench_callback& emit) {
  if (!run_named<loop_bench, cpu>(request, emit))
    run_listed<loop_bench, cpu>(request, emit, bench_variants{});
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// The benchmark on the CPU backend.

#include "bench/kernels/cpu.hpp"
#include "bench/kernels/baseline.hpp"
#include "bench/kernels/blocks.hpp"
#include "bench/kernels/calls.hpp"
#include "bench/kernels/curves.hpp"
#include "bench/kernels/dispatch.hpp"
#include "common/backend_info.hpp"

namespace quarry::tool {

void run_bench_cpu(const bench_request& request, const bench_callback& emit) {
  if (request.allocator == baseline_name)
    return run_measurements<baseline_bench<cpu>>(request, emit);
  switch (kind_of(request)) {
    case bench_runner_kind::blocks: run_named<block_bench, cpu>(request, emit); break;
    case bench_runner_kind::calls: run_named<call_bench, cpu>(request, emit); break;
    case bench_runner_kind::curves: run_named<curve_bench, cpu>(request, emit); break;
    case bench_runner_kind::loops: run_bench_loops_cpu(request, emit); break;
  }
}

bench_environment describe_bench_cpu() {
  bench_environment e;
  e.backend = "cpu";
  e.device = describe_cpu().description;
#if defined(__clang__)
  e.compiler = "clang++ " __clang_version__;
#else
  e.compiler = "g++ " __VERSION__;
#endif
  return e;
}

}  // namespace quarry::tool

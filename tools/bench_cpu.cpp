// SPDX-License-Identifier: Apache-2.0
/// The benchmark on the CPU executor.

#include "bench_blocks.hpp"
#include "bench_dispatch.hpp"
#include "bench_loops.hpp"
#include "demo.hpp"

namespace quarry::tool {

void run_bench_cpu(const bench_request& request, const bench_emit& emit) {
  if (is_loop(request)) {
    run_named<loop_bench, cpu>(request, emit);
  } else {
    run_named<block_bench, cpu>(request, emit);
  }
}

bench_environment describe_bench_cpu() {
  bench_environment e;
  e.machine = "cpu";
  e.device = describe_cpu().description;
#if defined(__clang__)
  e.compiler = "clang++ " __clang_version__;
#else
  e.compiler = "g++ " __VERSION__;
#endif
  return e;
}

}  // namespace quarry::tool

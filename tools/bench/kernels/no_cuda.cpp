// SPDX-License-Identifier: Apache-2.0
/// Takes the place of the benchmark's CUDA sources where there is no nvcc.

#include "bench/bench.hpp"

namespace quarry::tool {

void run_bench_cuda(const bench_request&, const bench_emit&) {
  throw error("this program was built without nvcc");
}

bench_environment describe_bench_cuda() { return {}; }

}  // namespace quarry::tool

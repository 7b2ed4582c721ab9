// SPDX-License-Identifier: Apache-2.0
/// Replaces the CUDA sources of the benchmark in a build without nvcc.

#include "bench/request.hpp"

namespace quarry::tool {

void run_bench_cuda(const bench_request&, const bench_callback&) {
  throw error("this program was built without nvcc");
}

bench_environment describe_bench_cuda() { return {}; }

}  // namespace quarry::tool

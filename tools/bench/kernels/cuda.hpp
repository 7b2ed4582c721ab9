// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of the benchmark on a GPU, a source each, so that several compilers can work at them.

#include "bench/bench.hpp"

namespace quarry::tool {

void run_bench_blocks_cuda(const bench_request& request, const bench_emit& emit);
void run_bench_loops_cuda(const bench_request& request, const bench_emit& emit);
void run_bench_calls_cuda(const bench_request& request, const bench_emit& emit);
void run_bench_variants_cuda(const bench_request& request, const bench_emit& emit);

}  // namespace quarry::tool

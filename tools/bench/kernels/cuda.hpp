// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of the benchmark on a GPU, one per source file, so that they compile in parallel.

#include "bench/request.hpp"

namespace quarry::tool {

void run_bench_blocks_cuda(const bench_request& request, const bench_callback& emit);
void run_bench_loops_cuda(const bench_request& request, const bench_callback& emit);
void run_bench_calls_cuda(const bench_request& request, const bench_callback& emit);
void run_bench_variants_cuda(const bench_request& request, const bench_callback& emit);

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the two halves of the benchmark on a GPU know of each other.

#include "bench.hpp"

namespace quarry::tool {

/// Of run_bench_cuda: workloads in which a kernel both allocates and frees.
void run_bench_loops_cuda(const bench_request& request, const bench_emit& emit);

}  // namespace quarry::tool

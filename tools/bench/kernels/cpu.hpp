// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the parts of the benchmark on the CPU executor know of each other.

#include "bench/bench.hpp"

namespace quarry::tool {

void run_bench_loops_cpu(const bench_request& request, const bench_emit& emit);

}  // namespace quarry::tool

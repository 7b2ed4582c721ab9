// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of the benchmark on the CPU backend, one per source file.

#include "bench/request.hpp"

namespace quarry::tool {

void run_bench_loops_cpu(const bench_request& request, const bench_callback& emit);

}  // namespace quarry::tool

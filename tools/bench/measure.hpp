// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs a plan: every experiment for every allocator, with a progress bar. Prints a table for each
/// experiment and writes the record.

#include "bench/plan.hpp"

namespace quarry::tool {

/// Returns an exit code.
int measure(const bench_options& options, const bench_plan& plan);

}  // namespace quarry::tool

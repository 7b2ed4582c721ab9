// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Maps the name of an allocator and a workload to the class that runs the workload.

#include "bench/kernels/run.hpp"
#include "bench/kernels/variants.hpp"

#include <quarry/heap/named.hpp>

namespace quarry::tool {

/// The class that runs a workload. All measurements of a request have the same kind.
enum class bench_runner_kind : std::uint8_t { blocks, loops, calls, curves };

inline bench_runner_kind kind_of(bench_workload workload) {
  switch (workload) {
    case bench_workload::churn:
    case bench_workload::batch: return bench_runner_kind::loops;
    case bench_workload::random_walk:
    case bench_workload::latency: return bench_runner_kind::calls;
    case bench_workload::steady_state:
    case bench_workload::recovery:
    case bench_workload::fill_levels: return bench_runner_kind::curves;
    default: return bench_runner_kind::blocks;
  }
}
inline bench_runner_kind kind_of(const bench_request& request) {
  return request.measurements.empty() ? bench_runner_kind::blocks
                                      : kind_of(request.measurements.front().workload);
}

/// Runs a request with Bench<Allocator, Backend>. Returns whether `list` has the allocator.
template <template <class, class> class Bench, class Backend, class List>
bool run_listed(const bench_request& request, const bench_callback& emit, List list) {
  bool found = false;
  for_each_allocator(
      [&](auto entry) {
        if (entry.name != request.allocator) return;
        found = true;
        run_measurements<Bench<typename decltype(entry)::type, Backend>>(request, emit);
      },
      list);
  return found;
}

template <template <class, class> class Bench, class Backend>
bool run_named(const bench_request& request, const bench_callback& emit) {
  return run_listed<Bench, Backend>(request, emit, all_allocators{});
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// From an allocator's name to its type.

#include "bench_run.hpp"

#include <quarry/heap/named.hpp>

namespace quarry::tool {

/// A request's cells are of one workload, so of one kind.
inline bool is_loop(const bench_request& request) {
  if (request.cells.empty()) return false;
  const bench_shape shape = request.cells.front().shape;
  return shape == bench_shape::churn || shape == bench_shape::batch || shape == bench_shape::chance;
}

template <template <class, class> class Bench, class Machine>
void run_named(const bench_request& request, const bench_emit& emit) {
  for_each_allocator([&](auto entry) {
    if (entry.name == request.allocator)
      run_cells<Bench<typename decltype(entry)::type, Machine>>(request, emit);
  });
}

}  // namespace quarry::tool

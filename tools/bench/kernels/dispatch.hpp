// SPDX-License-Identifier: Apache-2.0
#pragma once
/// From an allocator's name and a cell's shape to the code that runs it.

#include "bench/kernels/run.hpp"
#include "bench/kernels/variants.hpp"

#include <quarry/heap/named.hpp>

namespace quarry::tool {

/// Which of the classes runs a shape. The cells of a request are of one kind.
enum class bench_kind : std::uint8_t { blocks, loops, calls, curves };

inline bench_kind kind_of(bench_shape shape) {
  switch (shape) {
    case bench_shape::churn:
    case bench_shape::batch: return bench_kind::loops;
    case bench_shape::chance:
    case bench_shape::latency: return bench_kind::calls;
    case bench_shape::steady:
    case bench_shape::recovery:
    case bench_shape::levels: return bench_kind::curves;
    default: return bench_kind::blocks;
  }
}
inline bench_kind kind_of(const bench_request& request) {
  return request.cells.empty() ? bench_kind::blocks : kind_of(request.cells.front().shape);
}

/// Runs a request with Bench<Allocator, Backend>; says whether the list has the allocator.
template <template <class, class> class Bench, class Backend, class List>
bool run_listed(const bench_request& request, const bench_emit& emit, List list) {
  bool found = false;
  for_each_allocator(
      [&](auto entry) {
        if (entry.name != request.allocator) return;
        found = true;
        run_cells<Bench<typename decltype(entry)::type, Backend>>(request, emit);
      },
      list);
  return found;
}

template <template <class, class> class Bench, class Backend>
bool run_named(const bench_request& request, const bench_emit& emit) {
  return run_listed<Bench, Backend>(request, emit, all_allocators{});
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Requests in processes of their own, so that an allocator that hangs or crashes costs one cell.
///
///   parent                      child: this program again, as `quarry bench-cell REQUEST`
///   bench_in_children  ──JSON──▶  bench_child
///          emit       ◀──a line a cell──
///
/// A cell whose line does not come in time, or whose process dies, is lost; a new child goes on with the next.
/// After `most_lost` lost cells of a request the rest is not run: it would only take as long again.

#include "bench.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

inline constexpr std::string_view bench_child_command = "bench-cell";
inline constexpr unsigned most_lost = 2;

/// Emits every cell of the request once, in order.
void bench_in_children(const bench_request& request, const bench_emit& emit);

/// The child: does the request with `run` and writes a line a cell to stdout. Returns an exit code.
int bench_child(const char* request, const bench_runner& run);
/// With the allocators of the library.
int bench_child(const char* request);

/// What a program printed on its first line; empty where it failed or does not exist.
std::string first_line_of(const std::vector<std::string>& command);

}  // namespace quarry::tool

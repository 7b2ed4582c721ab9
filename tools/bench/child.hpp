// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Requests in processes of their own, so that an allocator that hangs or crashes costs one cell.
///
///   parent                      child: this program again, as `quarry bench-cell -`
///   bench_in_children  ──requests (JSON, stdin)──▶  bench_child
///          emit       ◀──────a line a cell───────
///
/// A cell whose line does not come in time, or whose process dies, is lost; a new child goes on with the next.
/// After `most_lost` lost cells of a request the rest of it is not run: it would only take as long again. What
/// has more to do than a cell that took too long is given up (bench_patience.hpp).

#include "bench/bench.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

inline constexpr std::string_view bench_child_command = "bench-cell";
inline constexpr unsigned most_lost = 2;

/// The number of a request, and what one of its cells gave.
using bench_emit_of =
    std::function<void(std::size_t request, const bench_cell&, const bench_figures&)>;

/// Emits every cell of the requests once, in order. One process does all of them, while none is lost.
void bench_in_children(const std::vector<bench_request>& requests, const bench_emit_of& emit);
void bench_in_children(const bench_request& request, const bench_emit& emit);

/// The child: does the requests with `run` and writes a line a cell to stdout. Returns an exit code.
/// `requests` is the text of one, of an array of them, or "-": it comes from stdin.
int bench_child(const char* requests, const bench_runner& run);
/// With the allocators of the library.
int bench_child(const char* requests);

}  // namespace quarry::tool

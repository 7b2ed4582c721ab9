// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs requests in child processes, so that an allocator that hangs or crashes costs one data
/// point.
///
///   parent                       child: this program again, as `quarry bench-child -`
///   measure_in_children  ── requests (JSON, stdin) ──▶  bench_child
///          emit          ◀── one line per result ─────
///
/// A measurement is lost if its line does not arrive within the timeout, or if the process dies.
/// The parent then starts a new child for the remaining measurements. After `max_lost` lost
/// measurements of a request, the parent does not run the rest of the request. Measurements with
/// more work than a slow one are given up (slow_filter.hpp).

#include "bench/request.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

inline constexpr std::string_view bench_child_command = "bench-child";
inline constexpr unsigned max_lost = 2;

/// Called with the index of a request, and with one of its measurements and the result.
using bench_request_callback =
    std::function<void(std::size_t request, const bench_measurement&, const bench_result&)>;

/// Calls `emit` once for each measurement of the requests, in order. One child runs all requests,
/// unless a measurement is lost.
void measure_in_children(const std::vector<bench_request>& requests,
                         const bench_request_callback& emit);
void measure_in_children(const bench_request& request, const bench_callback& emit);

/// The main function of the child: runs the requests with `run`, and writes one line per result to
/// stdout. `requests` is the JSON text of a request or of an array of requests, or "-": then the
/// child reads the text from stdin. Returns an exit code.
int bench_child(const char* requests, const bench_runner& run);
/// The same with the allocators of the library.
int bench_child(const char* requests);

}  // namespace quarry::tool

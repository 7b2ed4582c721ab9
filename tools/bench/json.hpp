// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Requests and results as JSON, for the pipe between parent and child (child.hpp). The keys are
/// the names of the members. The record on disk is another format: see points.hpp.
///
/// A member that is missing from its macro would silently keep its default value in the child.
/// tests/tools/bench/json_test.cpp compares the number of keys with the number of members.

#include "bench/request.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace quarry::tool {

NLOHMANN_JSON_SERIALIZE_ENUM(bench_workload,
                             {{bench_workload::malloc_then_free, "malloc then free"},
                              {bench_workload::churn, "churn"},
                              {bench_workload::batch, "batch"},
                              {bench_workload::random_walk, "random walk"},
                              {bench_workload::fragmentation, "fragmentation"},
                              {bench_workload::fill, "fill"},
                              {bench_workload::produce, "produce"},
                              {bench_workload::write, "write"},
                              {bench_workload::latency, "latency"},
                              {bench_workload::steady_state, "steady state"},
                              {bench_workload::recovery, "recovery"},
                              {bench_workload::fill_levels, "fill levels"}})

NLOHMANN_JSON_SERIALIZE_ENUM(bench_outcome, {{bench_outcome::ok, "ok"},
                                             {bench_outcome::skipped, "skipped"},
                                             {bench_outcome::given_up, "given up"},
                                             {bench_outcome::failed, "failed"},
                                             {bench_outcome::timed_out, "timed out"},
                                             {bench_outcome::crashed, "crashed"},
                                             {bench_outcome::not_run, "not run"}})

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(size_range, least, most)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(bench_load, batch, size)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(bench_measurement, experiment, x_label, x, variant, workload,
                                   sizes, lanes, lanes_per_warp, threads_per_block, batch, rounds,
                                   loads, turnover, occupied, heap_bytes, cold)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(bench_request, backend, allocator, heap_bytes, repeats, timeout,
                                   time_limit, queued, measurements)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(bench_time, median, min, max)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(bench_step, x, time, free_time, fields)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(bench_result, outcome, note, repeats, time, free_time, atomics,
                                   free_atomics, values, fields, curve, seconds, failures, corrupt,
                                   misaligned)

/// Returns the outcome as it appears in tables and records: "ok", "timed out", ...
inline std::string outcome_text(bench_outcome outcome) {
  return nlohmann::json(outcome).get<std::string>();
}

}  // namespace quarry::tool

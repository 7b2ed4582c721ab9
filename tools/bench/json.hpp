// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Requests and results as JSON, for the pipe between parent and child (child.hpp). The keys are
/// the names of the members. The record on disk is another format: see points.hpp.
///
/// A member that is missing from its macro would silently keep its default value in the child.
/// tests/tools/bench/json_test.cpp compares the number of keys with the number of members.

#include "bench/request.hpp"
#include "common/parse_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

namespace detail {

/// Returns whether `j` has the keys and the kinds of values of `form`. The first element of a list
/// describes all elements, and the key "" all keys. Integers must be written as such:
/// nlohmann/json converts other numbers without a check.
inline bool has_form(const nlohmann::json& j, const nlohmann::json& form) {
  const auto all_have = [&](const nlohmann::json& one) {
    return std::all_of(j.begin(), j.end(), [&](const auto& part) { return has_form(part, one); });
  };
  if (form.is_number_unsigned()) return j.is_number_unsigned();
  if (form.is_number()) return j.is_number();
  if (j.type() != form.type()) return false;
  if (form.is_array()) return all_have(form[0]);
  if (!form.is_object()) return true;
  if (form.contains("")) return all_have(form[""]);
  const auto items = form.items();
  return std::all_of(items.begin(), items.end(), [&](const auto& item) {
    return j.contains(item.key()) && has_form(j[item.key()], item.value());
  });
}

/// Returns the value that is written as `j`; nothing if there is none. `form` is a value whose
/// lists have an element.
template <class T>
std::optional<T> value_of(const nlohmann::json& j, const T& form) {
  if (!has_form(j, form)) return {};
  T value = j.get<T>();
  return nlohmann::json(value) == j ? std::optional<T>(std::move(value)) : std::nullopt;
}

inline bench_request request_form() {
  bench_measurement m;
  m.loads.resize(1);
  bench_request r;
  r.measurements = {m};
  return r;
}
inline bench_result result_form() {
  const bench_fields fields = {{"", 0.5}};
  bench_result r;
  r.values.resize(1);
  r.fields = fields;
  r.curve = {{0, {}, {}, fields}};
  return r;
}

}  // namespace detail

/// Reads a request or a list of requests. Throws input_error if the text is neither.
inline std::vector<bench_request> requests_of(const std::string& text) {
  nlohmann::json j = parse_json(text);
  if (!j.is_array()) j = nlohmann::json::array({std::move(j)});
  std::vector<bench_request> all;
  for (const nlohmann::json& one : j) {
    auto request = detail::value_of(one, detail::request_form());
    if (!request) throw input_error("the text is not a request, and not a list of requests");
    all.push_back(std::move(*request));
  }
  return all;
}

/// Reads a line of a child. Returns nothing if the line is not a result.
inline std::optional<bench_result> result_of(const std::string& line) {
  return detail::value_of(parse_json(line), detail::result_form());
}

/// Returns the outcome as it appears in tables and records: "ok", "timed out", ...
inline std::string outcome_text(bench_outcome outcome) {
  return nlohmann::json(outcome).get<std::string>();
}

}  // namespace quarry::tool

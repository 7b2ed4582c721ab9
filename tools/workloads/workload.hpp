// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Common parts of `quarry kd-tree` and `quarry graph`: options, one child process per measurement,
/// and the record file.
///
///   quarry kd-tree …      per scene and allocator              quarry workload-child REQUEST
///     measure_in_child  ──── request, as JSON ───────────────▶  workload_child
///                       ◀─── one line of JSON per data point ──
///
/// If a child hangs or crashes, its current data point and the following ones are recorded as lost.

#include "bench/record_file.hpp"
#include "bench/request.hpp"
#include "common/backend_info.hpp"
#include "common/command.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

using json = nlohmann::ordered_json;

inline constexpr std::string_view workload_child_command = "workload-child";

// ---- options -----------------------------------------------------------------------------------

struct workload_options {
  std::string backend;
  std::string allocators = "all";
  std::uint64_t heap = 0;  // bytes; 0: chosen by the workload
  std::uint64_t repeats = 5;
  std::uint64_t timeout = 120;  // seconds
  bool check = false;
  bool json = false;
  std::string out;
};
void add_workload_options(const command_line& command, workload_options& o);

/// The options, resolved: where to run, and with which allocators.
struct workload_setup {
  backend_info backend;
  bench_environment environment;
  std::vector<std::string_view> allocators;

  bool gpu() const { return backend.name == "cuda"; }
};
/// Throws input_error.
workload_setup resolve_setup(const workload_options& o);

// ---- measuring ---------------------------------------------------------------------------------

/// Receives the result of each data point.
using result_sink = std::function<void(const json&)>;

/// Executes a request for `points` data points in a child process with a time limit in seconds, and
/// emits one result per data point. A missing result has an outcome and a note with the reason.
void measure_in_child(const json& request, std::size_t points, double limit,
                      const result_sink& emit);
/// Returns whether a result contains measurements.
bool measured(const json& result);
/// Returns a result without measurements.
json missing_result(std::string_view outcome, const std::string& note);

/// Main function of the child: executes a request and writes its results to stdout. Returns an exit
/// code.
int workload_child(const char* text);

/// Execute a request of each workload. May throw; results emitted before the exception are valid.
void run_kd_tree_request(const json& request, const result_sink& emit);
void run_graph_request(const json& request, const result_sink& emit);

// ---- record ------------------------------------------------------------------------------------

/// A sequence of JSON lines: the description of an experiment, followed by its data points.
class workload_record {
 public:
  /// Throws input_error if the file cannot be written.
  workload_record(const workload_options& o, const bench_environment& environment);

  void experiment(const json& description);
  /// Appends a data point: `head` (experiment, allocator, series, x, command), the fields of the
  /// environment, then those of the result.
  void point(const json& head, const json& result);
  void claim(const json& line) { append(line); }
  /// Prints all lines as one JSON document (--json).
  void print(bool ok) const;

 private:
  void append(const json& line);

  json environment_;
  record_file file_;
  json lines_ = json::array();
};

/// Adds median, minimum and maximum of times in milliseconds, as `name`, least_`name` and
/// most_`name`.
void put_times(json& to, const std::string& name, std::vector<double> times);
/// Returns a result with the fields that all experiments have, and no measurements.
json empty_result();

/// "20k", "2M", "12345".
std::string short_count(std::uint64_t n);
/// Returns 16 hexadecimal digits, since JSON numbers are limited to 53 bits in some readers.
std::string to_hex(std::uint64_t n);

}  // namespace quarry::tool

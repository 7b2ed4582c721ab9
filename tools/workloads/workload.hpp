// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the commands for whole programs share: their options, a process for each measurement, and
/// the record.
///
///   quarry kd-tree …          for every scene and allocator                quarry workload-cell REQUEST
///     measure_in_child  ──── a request as JSON ──────────────────────────▶  workload_child
///                       ◀─── a line of JSON for each point ──────────────
///
/// A program that hangs or crashes costs its point and those after it in the same process; the
/// record says so.

#include "bench/record_file.hpp"
#include "bench/request.hpp"
#include "common/backend_info.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

using json = nlohmann::ordered_json;

inline constexpr std::string_view workload_child_command = "workload-cell";

// ---- options and what they mean ----------------------------------------------------------------

struct workload_options {
  std::string backend;
  std::string allocators = "all";
  std::uint64_t heap = 0;  // bytes; 0: as the work needs
  std::uint64_t repeats = 5;
  std::uint64_t timeout = 120;  // seconds
  bool check = false;
  bool json = false;
  std::string out;
};
void add_workload_options(CLI::App& command, workload_options& o);

struct workload_setup {
  backend_info backend;
  bench_environment where;
  std::vector<std::string_view> allocators;

  bool gpu() const { return backend.name == "cuda"; }
};
/// Throws input_error.
workload_setup resolve_setup(const workload_options& o);

// ---- measuring ---------------------------------------------------------------------------------

/// Called with what was measured at a point.
using workload_emit = std::function<void(const json&)>;

/// Emits the answers to a request of so many points; where there is none, an outcome and a note
/// that say why.
void measure_in_child(const json& request, std::size_t points, double limit,
                      const workload_emit& emit);
/// Whether an answer holds figures.
bool measured(const json& answer);
/// One that does not.
json no_answer(std::string_view outcome, const std::string& note);

/// The child: does a request and writes its answers to stdout. Returns an exit code.
int workload_child(const char* request);

/// What the child does, by the name in the request. They may throw; what was emitted counts.
void answer_kd_tree(const json& request, const workload_emit& emit);
void answer_graph(const json& request, const workload_emit& emit);

// ---- keeping -----------------------------------------------------------------------------------

/// Lines of JSON that describe themselves: what an experiment is, before its first point, then the
/// points.
class workload_record {
 public:
  /// Throws input_error where the file can not be written.
  workload_record(const workload_options& o, const bench_environment& where);

  void experiment(const json& description);
  /// `head`: experiment, allocator, series, x, command. The answer's fields follow the environment.
  void point(const json& head, const json& answer);
  void claim(const json& line) { keep(line); }
  /// --json: everything as one document.
  void print(bool ok) const;

 private:
  void keep(const json& line);

  json environment_;
  record_file file_;
  json lines_ = json::array();
};

/// ms, min_ms, max_ms of times in milliseconds; free_ms and so on for another name.
void put_times(json& to, const std::string& name, std::vector<double> times);
/// The keys that points of all experiments have, with nothing measured.
json empty_answer();

/// "20k", "2M", "12345".
std::string short_count(std::uint64_t n);
/// 16 digits: numbers of JSON do not hold 64 bits everywhere.
std::string hexadecimal(std::uint64_t n);

}  // namespace quarry::tool

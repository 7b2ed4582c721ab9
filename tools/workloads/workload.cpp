// SPDX-License-Identifier: Apache-2.0
#include "workloads/workload.hpp"

#include "bench/environment.hpp"
#include "common/catalogue.hpp"
#include "common/child_process.hpp"
#include "common/command.hpp"

#include <fmt/format.h>

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>

namespace quarry::tool {
namespace {

constexpr std::uint64_t min_heap = (1_MiB).value();

}  // namespace

// ---- options -----------------------------------------------------------------------------------

void add_workload_options(const command_line& command, workload_options& o) {
  add_choice(command, "--backend", o.backend, {"cpu", "cuda"},
             "Backend (default: cuda if there is a GPU, else cpu)");
  command.add_option("--allocators", o.allocators, "Names from quarry list, or all (default all)",
                     "A,B,...");
  const auto heap = [](const std::string& text) {
    const std::uint64_t n = parse_size(text).value();
    if (n < min_heap) throw input_error("the heap must have at least 1 MiB");
    return n;
  };
  add_parsed(command, "--heap", o.heap, heap, "Heap size (default: chosen by the workload)",
             "SIZE");
  add_count(command, "--repeats", o.repeats, "Measured passes, after one warm-up pass (default 5)",
            1, 1000);
  add_count(command, "--timeout", o.timeout, "Time limit per data point in seconds (default 120)",
            1, 86'400);
  command.add_flag("--check", o.check, "Also compare the result with a sequential reference");
  command.add_flag("--json", o.json, "Print JSON");
  command.add_option("--out", o.out, "Append one line of JSON per data point to this file", "FILE");
}

workload_setup resolve_setup(const workload_options& o) {
  workload_setup setup;
  for (const std::string& typed : split(o.allocators))
    for (const std::string_view name : find_allocators(typed))
      if (std::find(setup.allocators.begin(), setup.allocators.end(), name) ==
          setup.allocators.end())
        setup.allocators.push_back(name);
  setup.backend = choose_backend(o.backend);
  check_heap(o.heap, setup.backend);
  setup.environment = describe(setup.backend);
  return setup;
}

// ---- measuring ---------------------------------------------------------------------------------

json missing_result(std::string_view outcome, const std::string& note) {
  json result = empty_result();
  result["outcome"] = outcome;
  result["note"] = note;
  return result;
}

bool measured(const json& result) { return result.at("outcome") == "ok"; }

void measure_in_child(const json& request, std::size_t points, double limit,
                      const result_sink& emit) {
  child_process child({"/proc/self/exe", std::string(workload_child_command), request.dump()});
  std::size_t done = 0;
  auto state = child_process::read_status::line;
  bool failed = false;
  for (std::string line; done < points && !failed;) {
    state = child.read_line(line, limit);
    if (state != child_process::read_status::line) break;
    const json result = json::parse(line, nullptr, false);
    if (!result.is_object() || !result.contains("outcome")) continue;  // a kernel may print
    failed = result.at("outcome") == "failed";  // the child exits after a failed data point
    ++done;
    emit(result);
  }
  if (done < points && state == child_process::read_status::timed_out) {
    child.kill();
    (void)child.wait();
    ++done;
    emit(missing_result("timed out", fmt::format("after {} s", limit)));
  } else if (done < points && state == child_process::read_status::end_of_output) {
    const std::string why = child.wait();
    ++done;
    emit(missing_result("crashed", why.empty() ? "no exit status" : why));
  }
  for (; done < points; ++done) emit(missing_result("not run", "the previous data point was lost"));
}

int workload_child(const char* text) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // without the parent, the results have no reader
  const json request = json::parse(text);
  const result_sink emit = [](const json& result) {
    fmt::print("{}\n", result.dump());
    std::fflush(stdout);
  };
  try {
    (request.at("workload") == "graph" ? run_graph_request : run_kd_tree_request)(request, emit);
  } catch (const std::exception& e) {
    emit(missing_result("failed", e.what()));
    return exit_check_failed;
  }
  return exit_success;
}

// ---- record ------------------------------------------------------------------------------------

workload_record::workload_record(const workload_options& o, const bench_environment& environment)
    : environment_(environment_fields(environment)), file_(o.out) {}

void workload_record::append(const json& line) {
  file_.add(line);
  lines_.push_back(line);
}

void workload_record::experiment(const json& description) {
  json line = {{"kind", "experiment"}};
  line.update(description);
  append(line);
}

void workload_record::point(const json& head, const json& result) {
  json line = {{"kind", "point"}};
  line.update(head);
  line.update(environment_);
  line.update(result);
  append(line);
}

void workload_record::print(bool ok) const {
  fmt::print("{}\n", json{{"ok", ok}, {"lines", lines_}}.dump(2));
}

void put_times(json& to, const std::string& name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const bool none = times.empty();
  const std::size_t half = times.size() / 2;
  const auto median = [&] {
    return times.size() % 2 != 0 ? times[half] : (times[half - 1] + times[half]) / 2;
  };
  to[name] = none ? json() : json(median());
  to["min_" + name] = none ? json() : json(times.front());
  to["max_" + name] = none ? json() : json(times.back());
}

json empty_result() {
  json result = {{"outcome", "ok"}, {"note", ""}, {"repeats", 0}};
  put_times(result, "ms", {});
  put_times(result, "free_ms", {});
  result["atomics_per_call"] = nullptr;
  result["free_atomics_per_call"] = nullptr;
  result["values"] = json::array();
  for (const char* count : {"failures", "corrupt", "misaligned"}) result[count] = 0;
  return result;
}

std::string short_count(std::uint64_t n) {
  if (n != 0 && n % 1'000'000 == 0) return fmt::format("{}M", n / 1'000'000);
  if (n != 0 && n % 1000 == 0) return fmt::format("{}k", n / 1000);
  return std::to_string(n);
}

std::string to_hex(std::uint64_t n) { return fmt::format("{:016x}", n); }

}  // namespace quarry::tool

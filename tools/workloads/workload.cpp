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

constexpr std::uint64_t least_heap = (1_MiB).value();

}  // namespace

// ---- options -----------------------------------------------------------------------------------

void add_workload_options(CLI::App& command, workload_options& o) {
  add_choice(command, "--backend", o.backend, {"cpu", "cuda"},
             "Where to run (default: a GPU if there is one, else the CPU executor)");
  command
      .add_option("--allocators", o.allocators,
                  "Names that quarry list prints, or all (default all)")
      ->type_name("A,B,...");
  const auto heap = [](const std::string& text) {
    const std::uint64_t n = parse_size(text).value();
    if (n < least_heap) throw input_error("a heap to measure has 1 MiB at least");
    return n;
  };
  add_parsed(command, "--heap", o.heap, heap, "Bytes to allocate from (default: as the work needs)",
             "SIZE");
  add_count(command, "--repeats", o.repeats, "Timed passes, after one warm-up (default 5)", 1,
            1000);
  add_count(command, "--timeout", o.timeout, "Seconds a measurement may take (default 120)", 1,
            86'400);
  command.add_flag("--check", o.check, "Also hold the result against that of one thread");
  command.add_flag("--json", o.json, "Print JSON");
  command.add_option("--out", o.out, "Append a line of JSON for each point to this file")
      ->type_name("FILE");
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
  setup.where = describe(setup.backend);
  return setup;
}

// ---- measuring ---------------------------------------------------------------------------------

json no_answer(std::string_view outcome, const std::string& note) {
  json answer = empty_answer();
  answer["outcome"] = outcome;
  answer["note"] = note;
  return answer;
}

bool measured(const json& answer) { return answer.at("outcome") == "ok"; }

void measure_in_child(const json& request, std::size_t points, double limit,
                      const workload_emit& emit) {
  child_process child({"/proc/self/exe", std::string(workload_child_command), request.dump()});
  std::size_t done = 0;
  auto state = child_process::read_status::line;
  bool failed = false;
  for (std::string line; done < points && !failed;) {
    state = child.read_line(line, limit);
    if (state != child_process::read_status::line) break;
    if (!line.starts_with('{')) continue;
    const json answer = json::parse(line);
    failed = answer.at("outcome") == "failed";  // the child has ended with it
    ++done;
    emit(answer);
  }
  if (done < points && state == child_process::read_status::timed_out) {
    child.kill();
    (void)child.wait();
    ++done;
    emit(no_answer("timed out", fmt::format("after {} s", limit)));
  } else if (done < points && state == child_process::read_status::end_of_output) {
    const std::string why = child.wait();
    ++done;
    emit(no_answer("crashed", why.empty() ? "it said nothing" : why));
  }
  for (; done < points; ++done) emit(no_answer("not run", "the one before it was lost"));
}

int workload_child(const char* text) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read what we find
  const json request = json::parse(text);
  const workload_emit emit = [](const json& answer) {
    fmt::print("{}\n", answer.dump());
    std::fflush(stdout);
  };
  try {
    (request.at("workload") == "graph" ? answer_graph : answer_kd_tree)(request, emit);
  } catch (const std::exception& e) {
    emit(no_answer("failed", e.what()));
    return exit_check_failed;
  }
  return exit_success;
}

// ---- keeping -----------------------------------------------------------------------------------

workload_record::workload_record(const workload_options& o, const bench_environment& where)
    : environment_(environment_fields(where)), file_(o.out) {}

void workload_record::keep(const json& line) {
  file_.add(line);
  lines_.push_back(line);
}

void workload_record::experiment(const json& description) {
  json line = {{"kind", "experiment"}};
  line.update(description);
  keep(line);
}

void workload_record::point(const json& head, const json& answer) {
  json line = {{"kind", "point"}};
  line.update(head);
  line.update(environment_);
  line.update(answer);
  keep(line);
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

json empty_answer() {
  json answer = {{"outcome", "ok"}, {"note", ""}, {"repeats", 0}};
  put_times(answer, "ms", {});
  put_times(answer, "free_ms", {});
  answer["atomics_per_call"] = nullptr;
  answer["free_atomics_per_call"] = nullptr;
  answer["values"] = json::array();
  for (const char* count : {"failures", "corrupt", "misaligned"}) answer[count] = 0;
  return answer;
}

std::string short_count(std::uint64_t n) {
  if (n != 0 && n % 1'000'000 == 0) return fmt::format("{}M", n / 1'000'000);
  if (n != 0 && n % 1000 == 0) return fmt::format("{}k", n / 1000);
  return std::to_string(n);
}

std::string hexadecimal(std::uint64_t n) { return fmt::format("{:016x}", n); }

}  // namespace quarry::tool

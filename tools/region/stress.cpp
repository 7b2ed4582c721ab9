// SPDX-License-Identifier: Apache-2.0
/// quarry region stress: resident memory over time while threads free each other's objects.
///
/// The allocators run at the same time, each in a process of its own (region_peer): a process needs
/// its memory whether or not others run, and a run takes minutes.

#include "region/stress.hpp"

#include "common/text.hpp"
#include "region/command.hpp"
#include "region/peer_process.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <memory>

namespace quarry::tool {
namespace {

struct command_options {
  std::string peer;
  std::string malloc_library;
  std::string workload = "all";
  std::uint64_t seconds = 30;
  std::uint64_t threads = 4;
  std::uint64_t live_mib = 90;
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
  bool json = false;
};

/// What region_peer prints ten times a second.
struct stress_sample {
  double seconds, live, resident, steps;
};

struct stress_result {
  std::string name;
  std::vector<stress_sample> samples;

  double resident_at(double part) const {
    return samples[static_cast<std::size_t>(part * static_cast<double>(samples.size() - 1))]
        .resident;
  }
  double largest() const {
    return std::max_element(samples.begin(), samples.end(),
                            [](const auto& a, const auto& b) { return a.resident < b.resident; })
        ->resident;
  }
  /// Returns the mean over the second half of the run.
  double settled() const {
    const std::size_t begin = samples.size() / 2;
    double sum = 0;
    for (std::size_t i = begin; i < samples.size(); ++i) sum += samples[i].resident;
    return sum / static_cast<double>(samples.size() - begin);
  }
};

constexpr double mib = 1 << 20;
constexpr std::size_t own_results = 2;  // the first results are those of Quarry

std::vector<stress_result> run_all(const command_options& o, const std::string& workload) {
  std::vector<allocator_under_test> all = available_allocators(o.peer);
  all.insert(all.begin(), {"interposer", "malloc", o.malloc_library});
  std::vector<peer_process> processes;
  processes.reserve(all.size());
  for (const auto& who : all)
    processes.emplace_back(
        o.peer, who,
        fmt::format("stress {} {} {} {} {}", workload, o.seconds, o.threads, o.live_mib, o.steps));
  std::vector<stress_result> results;
  for (std::size_t i = 0; i < all.size(); ++i) {
    stress_result& r = results.emplace_back(stress_result{all[i].name, {}});
    const std::vector<double> numbers = processes[i].numbers();
    for (std::size_t at = 0; at + 4 <= numbers.size(); at += 4)
      r.samples.push_back({numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]});
  }
  return results;
}

/// Returns the value of each allocator, and that of Quarry divided by the best of the others.
template <class Value>
std::vector<double> compared(const std::vector<stress_result>& results, Value value) {
  std::vector<double> values;
  double best = 1e300;
  for (std::size_t i = 0; i < results.size(); ++i) {
    values.push_back(value(results[i]));
    if (i >= own_results) best = std::min(best, values.back());
  }
  for (std::size_t i = 0; i < own_results; ++i) values.push_back(values[i] / best);
  return values;
}

std::string table_of(const std::vector<stress_result>& results) {
  std::vector<table::column> columns{{"resident MiB", left}};
  for (const auto& r : results) columns.push_back({r.name, right});
  for (std::size_t i = 0; i < own_results; ++i)
    columns.push_back({results[i].name + " / best other", right});
  table t(columns);
  const auto add = [&](const std::string& title, auto value, double unit) {
    const std::vector<double> values = compared(results, value);
    std::vector<std::string> row{title};
    for (std::size_t i = 0; i < values.size(); ++i)
      row.push_back(i < results.size() ? fmt::format("{:.1f}", values[i] / unit)
                                       : fmt::format("{:.2f}", values[i]));
    t.add(row);
  };
  for (int part = 1; part <= 8; ++part)
    add(
        fmt::format("after {:.3g} s", results[0].samples.back().seconds * part / 8),
        [&](const stress_result& r) { return r.resident_at(part / 8.0); }, mib);
  add(
      "mean of the second half", [](const stress_result& r) { return r.settled(); }, mib);
  add(
      "largest", [](const stress_result& r) { return r.largest(); }, mib);
  add(
      "million steps", [](const stress_result& r) { return r.samples.back().steps; }, 1e6);
  return t.text();
}

nlohmann::ordered_json json_of(const std::string& workload,
                               const std::vector<stress_result>& results) {
  nlohmann::ordered_json out{{"workload", workload}};
  for (const auto& r : results) {
    nlohmann::ordered_json j{
        {"allocator", r.name}, {"settled_bytes", r.settled()}, {"largest_bytes", r.largest()}};
    for (const auto& s : r.samples)
      j["samples"].push_back({s.seconds, s.live, s.resident, s.steps});
    out["results"].push_back(j);
  }
  return out;
}

int run_stress(command_options o) {
  o.peer = peer_program(o.peer);
  if (o.malloc_library.empty()) o.malloc_library = own_library(o.peer, "libquarry_malloc.so");
  nlohmann::ordered_json all;
  for (const auto& [name, kind] : stress_kinds) {
    if (o.workload != "all" && o.workload != name) continue;
    const std::vector<stress_result> results = run_all(o, std::string(name));
    if (o.json)
      all.push_back(json_of(std::string(name), results));
    else
      fmt::print("{}, {} threads, {} MiB live\n{}\n", name, o.threads, o.live_mib,
                 table_of(results));
  }
  if (o.json) fmt::print("{}\n", all.dump(2));
  return exit_success;
}

}  // namespace

void add_region_stress(const command_line& region, action& chosen) {
  auto o = std::make_shared<command_options>();
  const command_line command = region.add_subcommand(
      "stress", "Resident memory while threads free each other's objects, beside other allocators");
  std::vector<std::string> choices{"all"};
  for (const auto& [name, kind] : stress_kinds) choices.emplace_back(name);
  add_choice(command, "--workload", o->workload, choices, "What the threads do");
  add_count(command, "--seconds", o->seconds, "Seconds per workload");
  add_count(command, "--threads", o->threads, "Threads per allocator", 1, 1024);
  add_count(command, "--live", o->live_mib, "MiB of live objects");
  add_count(command, "--steps", o->steps, "End after this many steps of an allocator, if earlier");
  command.add_option(
      "--peer", o->peer,
      "The program that runs one workload (default: region_peer in this program's folder)");
  command.add_option("--malloc", o->malloc_library,
                     "The interposer (default: libquarry_malloc.so near the program)");
  command.add_flag("--json", o->json, "Print JSON");
  command.callback([o, &chosen] { chosen = [o] { return run_stress(*o); }; });
}

}  // namespace quarry::tool

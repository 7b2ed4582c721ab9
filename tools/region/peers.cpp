// SPDX-License-Identifier: Apache-2.0
/// quarry region peers: compares regions with glibc, jemalloc and mimalloc.
///
/// Each data point is measured in a process of its own (region_peer). The allocators take turns, so
/// that other load on the machine affects all of them; the minimum over all rounds is reported.

#include "bench/environment.hpp"
#include "bench/record_file.hpp"
#include "common/text.hpp"
#include "region/command.hpp"
#include "region/peer_process.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>
#include <memory>

namespace quarry::tool {
namespace {

struct peers_options {
  std::string peer;
  std::uint64_t rounds = 5;
  std::uint64_t operations = 5'000'000;
  std::string out;
  bool json = false;
};

struct workload {
  const char* name;
  const char* unit;
  const char* what;
};

constexpr workload workloads[] = {
    {"192-20k", "ns", "192 B, 20,000 live"},
    {"192-1m", "ns", "192 B, 1,000,000 live"},
    {"six-20k", "ns", "64 ... 50048 B, 20,000 live"},
    {"grow", "ratio", "resident / live, 192 B growing; after a third is freed"},
    {"free-all", "ns", "1,000,000 objects freed one by one"},
    {"larson", "ns", "threads replace each other's objects"},
    {"pass", "ns", "half of the threads allocate, half free"},
    {"scratch", "ns", "64 B allocated, written, freed by each thread"},
};

/// Runs one workload on one allocator and returns the numbers that region_peer prints.
std::vector<double> measure(const peers_options& o, const allocator_under_test& who,
                            const std::string& what) {
  return peer_process(o.peer, who, what + " " + std::to_string(o.operations)).numbers();
}

using numbers_of_point = std::vector<double>;

void keep_minimum(numbers_of_point& best, const numbers_of_point& fresh) {
  if (best.empty()) best = fresh;
  for (std::size_t i = 0; i < std::min(best.size(), fresh.size()); ++i)
    best[i] = std::min(best[i], fresh[i]);
}

/// Two experiments for quarry report: times and memory have different units.
constexpr const char* times = "region-peers";
constexpr const char* memory = "region-peers-memory";

void describe_experiments(record_file& file) {
  const auto add = [&](const char* id, const char* title, const nlohmann::ordered_json& y) {
    file.add({{"kind", "experiment"},
              {"id", id},
              {"title", title},
              {"source", ""},
              {"x", {{"name", "workload"}, {"unit", ""}, {"scale", "category"}}},
              {"y", nlohmann::ordered_json::array({y})},
              {"form", "bars"},
              {"note", "one process per data point, allocators in turns; minimum of all rounds"}});
  };
  add(times, "Regions and general-purpose allocators: time of a malloc or free",
      {{"field", "ns"}, {"name", "time"}, {"unit", "ns"}, {"scale", "log"}});
  add(memory, "Regions and general-purpose allocators: resident memory / live bytes",
      {{"field", "ratio"},
       {"name", "resident / live"},
       {"unit", ""},
       {"scale", "linear"},
       {"better", "less"}});
}

void append_record(const peers_options& o, const workload& w, const std::string& row,
                   const std::string& who, double value, const bench_environment& where,
                   record_file& file) {
  const bool is_time = w.unit == std::string_view("ns");
  nlohmann::ordered_json point = {
      {"kind", "point"},
      {"experiment", is_time ? times : memory},
      {"allocator", who},
      {"series", who},
      {"x", row},
      {"command",
       fmt::format("quarry region peers --rounds {} --operations {}", o.rounds, o.operations)}};
  point.update(environment_fields(where));
  point.update({{"outcome", "ok"}, {"note", w.what}, {is_time ? "ns" : "ratio", value}});
  file.add(point);
}

int run_peers(peers_options o) {
  o.peer = peer_program(o.peer);
  record_file file(o.out);
  const auto all = available_allocators(o.peer);
  nlohmann::ordered_json out;
  out["rounds"] = o.rounds;
  out["operations"] = o.operations;
  std::vector<table::column> columns{{"workload", left}};
  for (const auto& who : all) columns.push_back({who.name, right});
  columns.push_back({"regions / best other", right});
  table t(columns);
  const bench_environment where = describe_host();
  describe_experiments(file);
  for (const workload& w : workloads) {
    std::map<std::string, numbers_of_point> best;
    for (std::uint64_t round = 0; round < o.rounds; ++round)
      for (const auto& who : all) keep_minimum(best[who.name], measure(o, who, w.name));
    for (std::size_t i = 0; i < best["glibc"].size(); ++i) {
      double other = 1e300;
      std::vector<std::string> row{i == 0 ? w.name : std::string(w.name) + ", after free"};
      nlohmann::ordered_json j{{"workload", row[0]}, {"unit", w.unit}, {"what", w.what}};
      for (const auto& who : all) {
        row.push_back(fmt::format("{:.4g}", best[who.name][i]));
        j[who.name] = best[who.name][i];
        append_record(o, w, row[0], who.name, best[who.name][i], where, file);
        if (who.name != "regions") other = std::min(other, best[who.name][i]);
      }
      row.push_back(fmt::format("{:.3f}", best["regions"][i] / other));
      j["ratio_to_best"] = best["regions"][i] / other;
      t.add(row);
      out["results"].push_back(j);
    }
  }
  numbers_of_point at_once, one_by_one, locked;
  for (std::uint64_t round = 0; round < o.rounds; ++round) {
    keep_minimum(at_once, measure(o, all[0], "free-region"));
    keep_minimum(one_by_one, measure(o, all[0], "free-all"));
    keep_minimum(locked, measure(o, all[0], "192-1m-shared"));
  }
  out["free_region_ns"] = at_once[0];
  out["free_one_by_one_ns"] = one_by_one[0];
  out["shared_192_1m_ns"] = locked[0];
  if (o.json) {
    fmt::print("{}\n", out.dump(2));
    return exit_success;
  }
  fmt::print("{}\n", t.text());
  fmt::print(
      "A region of 1,000,000 objects: destroyed in {:.1f} us; objects freed one by one in {:.1f} "
      "ms "
      "({:.0f} x).\n",
      at_once[0] / 1e3, one_by_one[0] / 1e6, one_by_one[0] / at_once[0]);
  fmt::print("192 B, 1,000,000 live, in a shared region (each call takes the lock): {:.1f} ns.\n",
             locked[0]);
  return exit_success;
}

}  // namespace

void add_region_peers(const command_line& region, action& chosen) {
  auto o = std::make_shared<peers_options>();
  const command_line command =
      region.add_subcommand("peers", "Compare regions with glibc, jemalloc and mimalloc");
  command.add_option(
      "--peer", o->peer,
      "The program that runs one workload (default: region_peer in this program's folder)");
  add_count(command, "--rounds", o->rounds, "Runs per data point; the minimum is reported");
  add_count(command, "--operations", o->operations, "Frees per run, and equally many mallocs", 10);
  command.add_option("--out", o->out, "Append lines of JSON to this file, for quarry report",
                     "FILE");
  command.add_flag("--json", o->json, "Print JSON");
  command.callback([o, &chosen] { chosen = [o] { return run_peers(*o); }; });
}

}  // namespace quarry::tool

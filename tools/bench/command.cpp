// SPDX-License-Identifier: Apache-2.0
/// quarry bench: experiments by which allocators are compared, on the machine that is there.

#include "bench/bench.hpp"

#include "bench/measure.hpp"
#include "bench/plan.hpp"
#include "common/command.hpp"
#include "common/text.hpp"

#include <fmt/format.h>

#include <memory>

namespace quarry::tool {
namespace {

constexpr std::uint64_t most_lanes = std::uint64_t{1} << 26;
constexpr std::uint64_t most_size = std::uint64_t{1} << 30;

int print_list() {
  table t({{"experiment"}, {"group"}, {"axis"}, {"what"}, {"from"}});
  for (const experiment& e : experiments())
    t.add({std::string(e.id), std::string(e.group), std::string(e.x.name), std::string(e.title),
           std::string(e.source)});
  fmt::print("{}", t.text());
  return exit_success;
}

std::vector<size_range> parse_sizes(const std::string& text) {
  std::vector<size_range> sizes;
  for (const std::string& part : split(text)) {
    const size_range r = parse_size_range(part);
    if (r.least == 0) throw input_error("a block has at least one byte");
    if (r.most > most_size)
      throw input_error(fmt::format("'{}': the most is {}", part, to_text(most_size)));
    sizes.push_back(r);
  }
  return sizes;
}

std::uint64_t parse_heap(const std::string& text) {
  const std::uint64_t n = parse_size(text).value();
  if (n < (1_MiB).value()) throw input_error("a heap to measure has 1 MiB at least");
  return n;
}

std::string names_of_groups() {
  std::string text;
  std::string_view last;
  for (const experiment& e : experiments()) {
    if (e.group != last) text += fmt::format("{}  {}:", last.empty() ? "" : "\n", e.group);
    text += fmt::format(" {}", e.id);
    last = e.group;
  }
  return text + "\n";
}

constexpr const char* about_cells =
    "\nEach cell is timed, then run once more with every block written and read back. Allocators "
    "run in\n"
    "processes of their own: one that hangs or crashes loses its cell, and after two the "
    "experiment's rest.\n"
    "The exit code is 1 if a cell was lost or a block was corrupt or misaligned.\n\n"
    "Examples:\n"
    "  quarry bench --quick\n"
    "  quarry bench --experiments xmalloc-2,widmer-2013 --allocators CudaMalloc,XMalloc,FDGMalloc\n"
    "  quarry bench --workloads alloc,mixed --sizes 16,64,1K,16-1K --allocators "
    "CudaMalloc,AtomicMalloc\n"
    "  quarry bench --backend cuda --out figures.jsonl && quarry report figures.jsonl -o "
    "report.html";

}  // namespace

void add_bench(CLI::App& app, action& chosen) {
  const auto o = std::make_shared<bench_options>();
  CLI::App& command = *app.add_subcommand(
      "bench", "Time the allocators in the experiments of the papers and of the field");
  add_choice(command, "--backend", o->backend, {"cpu", "cuda"},
             "Where to run (default: a GPU if there is one, else the CPU executor)");
  command
      .add_option("--allocators", o->allocators,
                  "Names that quarry list prints, baseline, or all (default all)")
      ->type_name("A,B,...");
  command
      .add_option("--experiments", o->experiments,
                  "From the list below, groups of it, or all (default all)")
      ->type_name("E,F,...");
  command.add_option("--workloads", o->workloads, "The same; all means the group workloads")
      ->type_name("W,X,...");
  command.add_flag("--list", o->list, "Print the experiments and what they are, and run nothing");
  const auto sizes = [o](const std::string& text) {
    o->sizes_text = text;
    return parse_sizes(text);
  };
  add_parsed(command, "--sizes", o->sizes, sizes,
             "Sizes in place of an experiment's own, where sizes or ranges are its axis",
             "SIZE|MIN-MAX,...");
  add_count(command, "--lanes,--threads", o->lanes,
            "Lanes of the largest grid; others follow (default 1048576 on a GPU, 16384 on the CPU)",
            1, most_lanes);
  command
      .add_option("--heap-state", o->heap_state,
                  "cold: every pass is the first on a new heap; warm (default); or both")
      ->type_name("cold,warm");
  add_count(command, "--repeats", o->repeats,
            "Timed passes of a cell, after one warm-up (default 5)", 1, 1000);
  add_parsed(
      command, "--heap", o->heap, parse_heap,
      "Bytes to allocate from (default 16G on a GPU, 512M on the CPU); what fills it takes less",
      "SIZE");
  add_parsed(
      command, "--time-limit", o->time_limit, parse_seconds,
      "Seconds a cell should take: repeats end after half of it, and after a cell that took three "
      "times as long larger ones are given up (default 1)",
      "SECONDS");
  add_count(command, "--timeout", o->timeout, "Seconds after which a cell is lost (default 20)", 1,
            86'400);
  command.add_flag("--quick", o->quick, "A sixteenth of the lanes, three repeats, fewer cells");
  command.add_flag("--json", o->json, "Print JSON");
  command
      .add_option("--out", o->out, "Append the record to this file, a line of JSON for each cell")
      ->type_name("FILE");
  command.footer("Experiments:\n" + names_of_groups() + about_cells);
  command.callback([o, &chosen] {
    chosen = [o] { return o->list ? print_list() : measure(*o, make_plan(*o)); };
  });
}

}  // namespace quarry::tool

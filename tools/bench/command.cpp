// SPDX-License-Identifier: Apache-2.0
/// quarry bench: measures allocators in the experiments of the papers, of the survey, and of ours.

#include "bench/request.hpp"

#include "bench/measure.hpp"
#include "bench/plan.hpp"
#include "common/command.hpp"
#include "common/text.hpp"

#include <fmt/format.h>

#include <memory>

namespace quarry::tool {
namespace {

constexpr std::uint64_t max_lanes = std::uint64_t{1} << 26;
constexpr std::uint64_t max_size = std::uint64_t{1} << 30;

int print_list() {
  table t({{"experiment"}, {"group"}, {"x axis"}, {"title"}, {"source"}});
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
    if (r.least == 0) throw input_error("a block has at least 1 byte");
    if (r.most > max_size)
      throw input_error(fmt::format("'{}': the maximum is {}", part, to_text(max_size)));
    sizes.push_back(r);
  }
  return sizes;
}

std::uint64_t parse_heap(const std::string& text) {
  const std::uint64_t n = parse_size(text).value();
  if (n < (1_MiB).value())
    throw input_error(fmt::format("'{}' is too small; the minimum is 1 MiB", text));
  return n;
}

/// Returns one line for each group of experiments: its name and the ids.
std::string experiments_by_group() {
  std::string text;
  std::string_view last;
  for (const experiment& e : experiments()) {
    if (e.group != last) text += fmt::format("{}  {}:", last.empty() ? "" : "\n", e.group);
    text += fmt::format(" {}", e.id);
    last = e.group;
  }
  return text + "\n";
}

constexpr const char* about_data_points =
    "\nEach data point is timed. One more, untimed pass writes every block and reads it back.\n"
    "Allocators run in child processes: an allocator that hangs or crashes loses one data point,\n"
    "and after two lost data points the rest of the experiment. The exit code is 1 if a data "
    "point\n"
    "was lost, or if a block was corrupt or misaligned.\n\n"
    "Examples:\n"
    "  quarry bench --quick\n"
    "  quarry bench --experiments xmalloc-2,widmer-2013 --allocators CudaMalloc,XMalloc,FDGMalloc\n"
    "  quarry bench --workloads alloc,mixed --sizes 16,64,1K,16-1K --allocators "
    "CudaMalloc,AtomicMalloc\n"
    "  quarry bench --backend cuda --out results.jsonl && quarry report results.jsonl -o "
    "report.html";

}  // namespace

void add_bench(const command_line& app, action& chosen) {
  const auto o = std::make_shared<bench_options>();
  const command_line command = app.add_subcommand(
      "bench", "Measure allocators in the experiments of the papers and of the survey");
  add_choice(command, "--backend", o->backend, {"cpu", "cuda"},
             "Backend (default: a GPU if there is one, else the CPU executor)");
  command.add_option("--allocators", o->allocators,
                     "Names as in quarry list, baseline, or all (default all)", "A,B,...");
  command.add_option("--experiments", o->experiments,
                     "Experiments or groups from the list below, or all (default all)", "E,F,...");
  command.add_option("--workloads", o->workloads,
                     "Experiments of the group workloads, or all of that group", "W,X,...");
  command.add_flag("--list", o->list, "Print the experiments, and measure nothing");
  const auto sizes = [o](const std::string& text) {
    o->sizes_text = text;
    return parse_sizes(text);
  };
  add_parsed(command, "--sizes", o->sizes, sizes,
             "Block sizes, for the experiments whose x axis is a size or a range of sizes",
             "SIZE|MIN-MAX,...");
  add_count(
      command, "--lanes,--threads", o->lanes,
      "Lanes of the largest grid; other grids scale with it (default 1048576 on a GPU, 16384 on "
      "the CPU)",
      1, max_lanes);
  command.add_option("--heap-state", o->heap_state,
                     "cold: every pass runs on a new heap; warm (default); or both", "cold,warm");
  add_count(command, "--repeats", o->repeats,
            "Timed passes per data point, after one warm-up pass (default 5)", 1, 1000);
  add_parsed(
      command, "--heap", o->heap, parse_heap,
      "Size of the heap (default 16G on a GPU, 512M on the CPU); experiments that fill the heap "
      "use a smaller one",
      "SIZE");
  add_parsed(command, "--time-limit", o->time_limit, parse_seconds,
             "Seconds per data point: no further pass starts after half of it, and after a data "
             "point that "
             "took three times as long, the larger ones of its curve are given up (default 1)",
             "SECONDS");
  add_count(command, "--timeout", o->timeout,
            "Seconds after which a data point is lost (default 20)", 1, 86'400);
  command.add_flag("--quick", o->quick,
                   "A sixteenth of the lanes, three passes, fewer data points");
  command.add_flag("--json", o->json, "Print JSON");
  command.add_option("--out", o->out,
                     "Append the records to this file, one line of JSON per data point", "FILE");
  command.footer("Experiments:\n" + experiments_by_group() + about_data_points);
  command.callback([o, &chosen] {
    chosen = [o] { return o->list ? print_list() : measure(*o, make_plan(*o)); };
  });
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// quarry bench: the workloads that allocators are compared by, on the machine that is there.

#include "bench.hpp"

#include "bench_cells.hpp"
#include "bench_child.hpp"
#include "bench_json.hpp"
#include "bench_table.hpp"
#include "catalogue.hpp"
#include "command.hpp"
#include "demo.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

namespace quarry::tool {
namespace {

constexpr std::uint64_t most_lanes = std::uint64_t{1} << 26;
constexpr std::uint64_t most_size = std::uint64_t{1} << 30;

struct options {
  std::string machine;
  std::string allocators = "all";
  std::string workloads = "all";
  std::vector<size_range> sizes;
  std::uint64_t lanes = 0;  // 0: as the machine and --quick say; so are the next two
  std::uint64_t repeats = 0;
  std::uint64_t heap = 0;
  std::uint64_t timeout = 20;
  bool quick = false;
  bool json = false;
  std::string out;
};

/// Everything that was decided before the first cell runs.
struct plan {
  demo_machine machine;
  bench_environment where;
  std::vector<std::string_view> allocators;
  std::vector<std::string_view> workloads;
  bench_scale scale;
  bench_request request;  // what all requests have in common

  bool gpu() const { return machine.name == "cuda"; }
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The names in a list with commas, each once.
template <class Find>
std::vector<std::string_view> names_in(const std::string& text, Find&& find) {
  std::vector<std::string_view> names;
  for (const std::string& part : split(text))
    for (const std::string_view name : find(part))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

std::vector<std::string_view> find_workloads(const std::string& typed) {
  if (typed != "all") return {find_workload(typed).name};
  std::vector<std::string_view> all;
  for (const bench_workload& w : bench_workloads()) all.push_back(w.name);
  return all;
}

demo_machine choose_machine(const std::string& wanted) {
  if (wanted == "cpu") return describe_cpu();
  demo_machine gpu = describe_cuda();
  if (gpu.problem.empty()) return gpu;
  if (wanted == "cuda") throw input_error("--machine cuda: " + gpu.problem);
  return describe_cpu();
}

bench_environment describe(const demo_machine& machine) {
  bench_environment e = machine.name == "cuda" ? describe_bench_cuda() : describe_bench_cpu();
  std::error_code none;
  const std::string folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  e.commit = first_line_of({"git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=12"});
  e.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::now()));
  return e;
}

plan make_plan(const options& o) {
  plan p;
  p.allocators =
      names_in(o.allocators, [](const std::string& typed) { return find_allocators(typed); });
  p.workloads = names_in(o.workloads, find_workloads);
  p.scale.quick = o.quick;
  p.scale.sizes = o.sizes;
  check_sizes(p.workloads, p.scale);
  p.machine = choose_machine(o.machine);
  const unsigned magnitude = (p.gpu() ? 20 : 14) - (o.quick ? 4 : 0);
  p.scale.lanes = o.lanes != 0 ? o.lanes : std::uint64_t{1} << magnitude;
  p.request.machine = p.machine.name;
  p.request.heap = o.heap != 0 ? o.heap : p.gpu() ? (16_GiB).value() : (512_MiB).value();
  p.request.repeats = o.repeats != 0 ? o.repeats : o.quick ? 3 : 5;
  p.request.limit = static_cast<double>(o.timeout);
  if (p.request.heap > p.machine.memory)
    throw input_error(fmt::format("--heap: {} is more than {} has: {}", to_text(p.request.heap),
                                  p.machine.name, to_text(p.machine.memory)));
  p.where = describe(p.machine);
  return p;
}

/// The heap that is filled is a sixteenth of the others': filling takes long.
bench_request request_for(const plan& p, std::string_view allocator, std::string_view workload) {
  bench_request r = p.request;
  r.allocator = allocator;
  r.cells = make_cells(workload, p.scale);
  if (find_workload(workload).shape == bench_shape::fill) r.heap /= 16;
  return r;
}

std::size_t table_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col == 0)
    return 120;
  return size.ws_col;
}

std::ofstream open_record(const std::string& name) {
  std::ofstream file;
  if (name.empty()) return file;
  file.open(name, std::ios::app);
  if (!file) throw input_error(fmt::format("--out: {} can not be written", name));
  return file;
}

void print_heading(const plan& p) {
  fmt::print("{} lanes on {}, heap {}, medians of {}.\n", grouped(p.scale.lanes),
             p.machine.description, to_text(p.request.heap), p.request.repeats);
  if (!p.gpu())
    fmt::print(
        "Times are the CPU executor's: they say nothing about a GPU; counts of atomics are "
        "exact.\n");
  std::fflush(stdout);
}

int run(const options& o) {
  const plan p = make_plan(o);
  std::ofstream file = open_record(o.out);
  if (!o.json) print_heading(p);
  std::size_t total = 0;
  for (const auto workload : p.workloads)
    total += make_cells(workload, p.scale).size() * p.allocators.size();

  progress bar;
  std::vector<bench_result> all;
  nlohmann::ordered_json records = nlohmann::ordered_json::array();
  for (const std::string_view workload : p.workloads) {
    const std::size_t first = all.size();
    for (const std::string_view allocator : p.allocators) {
      const bench_request request = request_for(p, allocator, workload);
      const auto show = [&] {
        bar.show(static_cast<double>(all.size()) / static_cast<double>(total),
                 fmt::format("{}: {}", workload, allocator));
      };
      show();
      bench_in_children(request, [&](const bench_cell& cell, const bench_figures& figures) {
        all.push_back({request.allocator, cell, figures});
        const nlohmann::ordered_json line = record(p.where, request, cell, figures);
        if (file.is_open())
          file << line << std::endl;  // NOLINT(performance-avoid-endl): a crash loses nothing
        if (o.json) records.push_back(line);
        show();
      });
    }
    if (o.json) continue;
    bar.clear();
    const std::vector<bench_result> these(all.begin() + static_cast<std::ptrdiff_t>(first),
                                          all.end());
    fmt::print("\n{}", workload_text(find_workload(workload), these, table_width()));
    std::fflush(stdout);
  }
  bar.clear();
  const bool ok =
      std::all_of(all.begin(), all.end(), [](const bench_result& r) { return r.figures.sound(); });
  if (o.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"ok", ok}, {"cells", records}}.dump(2));
  else
    fmt::print("\n{}", verdict_text(all));
  return ok ? all_well : found_wrong;
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

std::string workload_help() {
  std::string text = "Workloads:\n";
  for (const bench_workload& w : bench_workloads())
    text += fmt::format("  {:<9} {}\n", w.name, w.summary);
  return text;
}

}  // namespace

void add_bench(CLI::App& app, action& chosen) {
  const auto o = std::make_shared<options>();
  CLI::App& command =
      *app.add_subcommand("bench", "Time the allocators under the workloads of the literature");
  add_choice(command, "--machine", o->machine, {"cpu", "cuda"},
             "Where to run (default: a GPU if there is one, else the CPU executor)");
  command
      .add_option("--allocators", o->allocators,
                  "Names that quarry list prints, or all (default all)")
      ->type_name("A,B,...");
  command.add_option("--workloads", o->workloads, "From the list below, or all (default all)")
      ->type_name("W,X,...");
  add_parsed(command, "--sizes", o->sizes, parse_sizes,
             "Rows: sizes for alloc, one-lane and fill, ranges for mixed and extent",
             "SIZE|MIN-MAX,...");
  add_count(command, "--lanes", o->lanes,
            "Lanes of alloc; other grids follow (default 1048576 on a GPU, 16384 on the CPU)", 1,
            most_lanes);
  add_count(command, "--repeats", o->repeats,
            "Timed passes of a cell, after one warm-up (default 5)", 1, 1000);
  const auto heap = [](const std::string& text) {
    const std::uint64_t n = parse_size(text).value();
    if (n < (1_MiB).value()) throw input_error("a heap to measure has 1 MiB at least");
    return n;
  };
  add_parsed(
      command, "--heap", o->heap, heap,
      "Bytes to allocate from (default 16G on a GPU, 512M on the CPU); fill takes a sixteenth",
      "SIZE");
  add_count(command, "--timeout", o->timeout, "Seconds a cell may take (default 20)", 1, 86'400);
  command.add_flag("--quick", o->quick, "A sixteenth of the lanes, three repeats, fewer rows");
  command.add_flag("--json", o->json, "Print JSON");
  command.add_option("--out", o->out, "Append a line of JSON for each cell to this file")
      ->type_name("FILE");
  command.footer(workload_help() +
                 "\nEach cell is timed, then run once more with every block written and read back. "
                 "Allocators run in\n"
                 "processes of their own: one that hangs or crashes loses its cell, and after two "
                 "the workload's rest.\n"
                 "The exit code is 1 if a cell was lost or a block was corrupt or misaligned.\n\n"
                 "Examples:\n"
                 "  quarry bench --quick\n"
                 "  quarry bench --workloads alloc,mixed --sizes 16,64,1K,16-1K --allocators "
                 "CudaMalloc,AtomicMalloc\n"
                 "  quarry bench --machine cuda --lanes 4194304 --workloads alloc --sizes 64\n"
                 "  quarry bench --machine cuda --out figures.jsonl");
  command.callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace quarry::tool

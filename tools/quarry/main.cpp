// SPDX-License-Identifier: Apache-2.0
/// quarry: the library from the command line. One file a subcommand; this one reads what was typed.

#include "bench/child.hpp"
#include "cluster/command.hpp"
#include "common/command.hpp"
#include "common/parse.hpp"
#include "demo/demo.hpp"
#include "region/command.hpp"
#include "workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace quarry::tool;

constexpr const char* about =
    "Dynamic memory for massively parallel machines: look at the allocators, see them work, hunt "
    "for\n"
    "interleavings that break them.";

constexpr const char* examples =
    "Examples:\n"
    "  quarry demo                        every allocator at work on this machine, checked\n"
    "  quarry list                        what there is and what each can do\n"
    "  quarry explore AtomicMalloc        schedules drawn at random, an oracle beside them\n"
    "  quarry bench --quick               times under the workloads of the literature\n"
    "  quarry kd-tree                     a kd-tree built inside a kernel, with each allocator\n"
    "  quarry graph                       a graph that changes inside kernels, with each "
    "allocator\n"
    "  quarry report results.jsonl        what bench --out wrote, as a page to look at\n"
    "  quarry costs                       atomics and collectives a call, exact\n"
    "  quarry map --output heap.svg       what a heap looks like inside after a while\n"
    "  quarry region fragmentation        regions on the host: slabs, packing, snapshots\n"
    "  quarry cluster scaling             regions across processes, here simulated\n"
    "\n"
    "quarry COMMAND --help says more.\n"
    "Exit code: 0 all is well; 1 a check failed; 2 the command line makes no sense.";

std::string version() {
  return fmt::format("quarry {} (backends: {})", QUARRY_TOOL_VERSION,
                     built_with_cuda() ? "cpu, cuda" : "cpu");
}

/// One line for people who mistyped; where possible with what they meant.
std::string complaint(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view nearest = nearest_name(argv[1], views);
    return fmt::format("no command '{}'{}; there are {}", argv[1],
                       nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                       fmt::join(names, ", "));
  }
  std::string what = e.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr)
    what = "unexpected:" + what.substr(what.find(':') + 1);
  return fmt::format("{} (see quarry{} --help)", what,
                     chosen.empty() ? "" : " " + chosen[0]->get_name());
}

int run(CLI::App& app, int argc, char** argv) {
  action chosen;
  app.set_version_flag("--version", version(),
                       "Print the version and the backends of this program");
  app.set_help_flag("-h,--help", "Print this");
  app.footer(examples);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(32);
  add_demo(app, chosen);
  add_list(app, chosen);
  add_explore(app, chosen);
  add_costs(app, chosen);
  add_map(app, chosen);
  add_region(app, chosen);
  add_cluster(app, chosen);
  add_bench(app, chosen);
  add_kd_tree(app, chosen);
  add_graph(app, chosen);
  add_report(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    throw input_error(complaint(app, e, argc, argv));
  }
  if (chosen) return chosen();
  fmt::print("{}", app.help());
  return exit_success;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3 && argv[1] == bench_child_command) return bench_child(argv[2]);
    if (argc == 3 && argv[1] == workload_child_command) return workload_child(argv[2]);
    CLI::App app(about, "quarry");
    return run(app, argc, argv);
  } catch (const input_error& e) {
    std::fprintf(stderr, "quarry: %s\n", e.what());
    return exit_bad_input;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quarry: %s\n", e.what());
    return exit_check_failed;
  }
}

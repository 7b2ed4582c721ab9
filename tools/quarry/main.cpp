// SPDX-License-Identifier: Apache-2.0
/// quarry: the command-line tool of the library. This file parses the command line; each subcommand
/// has its own file.

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
    "Dynamic memory for massively parallel machines: compare, check and benchmark the allocators.";

constexpr const char* examples =
    "Examples:\n"
    "  quarry demo                        run every allocator on this machine and check it\n"
    "  quarry list                        list the allocators and their capabilities\n"
    "  quarry explore AtomicMalloc        search random schedules for contract violations\n"
    "  quarry bench --quick               measure workloads of the literature\n"
    "  quarry kd-tree                     measure a kd-tree build inside a kernel\n"
    "  quarry graph                       measure a dynamic graph inside kernels\n"
    "  quarry report results.jsonl        make a web page from the records of bench --out\n"
    "  quarry costs                       count atomics and round trips per call\n"
    "  quarry map --output heap.svg       draw the layout of a heap\n"
    "  quarry region fragmentation        measure regions on the host\n"
    "  quarry cluster scaling             measure regions across processes, simulated\n"
    "\n"
    "quarry COMMAND --help describes a command.\n"
    "Exit code: 0 success; 1 a check failed; 2 invalid command line.";

std::string version() {
  return fmt::format("quarry {} (backends: {})", QUARRY_TOOL_VERSION,
                     built_with_cuda() ? "cpu, cuda" : "cpu");
}

/// Returns a one-line error message for an invalid command line, with a suggestion if possible.
std::string message_for(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view nearest = nearest_name(argv[1], views);
    return fmt::format("no command '{}'{}; the commands are {}", argv[1],
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
  app.set_help_flag("-h,--help", "Print this help");
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
    throw input_error(message_for(app, e, argc, argv));
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

// SPDX-License-Identifier: Apache-2.0
/// quarry: the command-line tool of the library. Each subcommand has its own file.

#include "bench/child.hpp"
#include "cluster/command.hpp"
#include "common/command.hpp"
#include "common/output.hpp"
#include "demo/demo.hpp"
#include "region/command.hpp"
#include "workloads/workload.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <system_error>

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

void add_commands(const command_line& app, action& chosen) {
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
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3 && argv[1] == bench_child_command) return bench_child(argv[2]);
    if (argc == 3 && argv[1] == workload_child_command) return workload_child(argv[2]);
    const int code =
        run_command_line({"quarry", about, examples, version()}, argc, argv, add_commands);
    flush_standard_output();
    return code;
  } catch (const input_error& e) {
    std::fprintf(stderr, "quarry: %s\n", e.what());
    return exit_bad_input;
  } catch (const std::system_error& e) {  // fmt::print throws it, for example
    if (std::ferror(stdout) != 0)
      std::fprintf(stderr, "quarry: cannot write standard output: %s\n",
                   e.code().message().c_str());
    else
      std::fprintf(stderr, "quarry: %s\n", e.what());
    return exit_check_failed;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quarry: %s\n", e.what());
    return exit_check_failed;
  }
}

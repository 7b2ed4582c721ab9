// SPDX-License-Identifier: Apache-2.0
/// quarry costs: counts the memory operations of malloc and free.

#include "costs/costs.hpp"

#include "common/command.hpp"
#include "common/text.hpp"

#include <fmt/format.h>

#include <memory>

namespace quarry::tool {
namespace {

nlohmann::ordered_json to_json(const call_costs& c) {
  if (c.calls == 0) return nullptr;
  return {{"calls", c.calls},
          {"failed", c.failed},
          {"atomics", c.atomics},
          {"loads", c.loads},
          {"stores", c.stores},
          {"collectives", c.collectives},
          {"round_trips", c.round_trips},
          {"longest", c.longest}};
}

std::string title_of(const cost_case& c) {
  const std::string_view name = c.name;
  if (name == "lone") return "lone: one lane requests 64 bytes";
  if (name == "equal") return "equal: the 32 lanes of a warp request 64 bytes each";
  return "mixed: the 32 lanes of a warp request 16 to 1024 bytes, powers of two in turn";
}

void print_tables_costs() {
  const std::vector<allocator_costs> all = count_costs();
  fmt::print(
      "Memory operations per call, counted by the CPU executor; the counts do not depend on the "
      "hardware.\n");
  for (std::size_t i = 0; i < cost_ledger{}.cases.size(); ++i)
    fmt::print("\n{}\n{}", title_of(all.front().ledger.cases[i]),
               costs_table(all, i, detail_of::full));
  fmt::print(
      "\n"
      "Averages per call, as exact fractions: 1/32 is one operation per warp. collectives: "
      "warp-wide "
      "operations\n"
      "(ballot, shuffle, ...), counted at each lane. trips: dependent round trips to memory. The "
      "work "
      "of the\n"
      "system's malloc inside CudaMalloc is not visible and not counted.\n");
}

void print_json_costs() {
  nlohmann::ordered_json out;
  out["allocators"] = nlohmann::ordered_json::array();
  for (const allocator_costs& costs : count_costs())
    out["allocators"].push_back(tool::to_json(costs));
  fmt::print("{}\n", out.dump(2));
}

}  // namespace

std::string costs_table(const std::vector<allocator_costs>& all, std::size_t number,
                        detail_of detail) {
  const bool full = detail == detail_of::full;
  std::vector<table::column> columns{{"allocator"}};
  for (const char* call : {"malloc", "free"}) {
    columns.push_back({fmt::format("{}: atomics", call), right});
    if (full) columns.insert(columns.end(), {{"loads", right}, {"stores", right}});
    columns.insert(columns.end(), {{"collectives", right}, {"trips", right}});
  }
  table t(std::move(columns));
  for (const allocator_costs& costs : all) {
    const cost_case& c = costs.ledger.cases[number];
    std::vector<std::string> cells{std::string(costs.name)};
    for (const call_costs& call : {c.malloc, c.free}) {
      cells.push_back(per_call(call.atomics, call.calls));
      if (full) cells.push_back(per_call(call.loads, call.calls));
      if (full) cells.push_back(per_call(call.stores, call.calls));
      cells.push_back(per_call(call.collectives, call.calls));
      cells.push_back(per_call(call.round_trips, call.calls));
    }
    t.add(std::move(cells));
  }
  return t.text();
}

nlohmann::ordered_json to_json(const allocator_costs& costs) {
  nlohmann::ordered_json j;
  j["name"] = costs.name;
  j["type"] = costs.type;
  j["cases"] = nlohmann::ordered_json::object();
  for (const cost_case& c : costs.ledger.cases)
    j["cases"][c.name] = {
        {"lanes", c.lanes}, {"malloc", to_json(c.malloc)}, {"free", to_json(c.free)}};
  return j;
}

void add_costs(const command_line& app, action& chosen) {
  const auto json = std::make_shared<bool>(false);
  const command_line command =
      app.add_subcommand("costs", "Count the memory operations of malloc and free");
  command.add_flag("--json", *json, "Print JSON, with totals over all calls of a case");
  command.footer(
      "Counts atomics, other loads and stores of shared memory, collectives, and dependent round "
      "trips, in steady\n"
      "state. docs/costs.md lists these counts and the registers per thread.\n\n"
      "Examples:\n"
      "  quarry costs\n"
      "  quarry costs --json | jq '.allocators[] | {name, equal: .cases.equal.malloc}'");
  command.callback([json, &chosen] {
    chosen = [json] {
      *json ? print_json_costs() : print_tables_costs();
      return exit_success;
    };
  });
}

}  // namespace quarry::tool

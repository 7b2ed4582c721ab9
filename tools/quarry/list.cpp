// SPDX-License-Identifier: Apache-2.0
/// quarry list: describes every allocator.

#include "common/catalogue.hpp"
#include "common/command.hpp"
#include "common/text.hpp"
#include "costs/ledger_file.hpp"

#include <quarry/core/bytes.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <memory>
#include <optional>

namespace quarry::tool {
namespace {

struct list_options {
  bytes pool = 1_GiB;
  bool json = false;
};

constexpr std::uint64_t any_size = std::numeric_limits<std::uint64_t>::max();

/// Returns the metadata size for a pool, or nullopt if the pool is too small for the allocator.
template <class Allocator>
std::optional<std::uint64_t> metadata_beside(bytes pool) {
  if (pool < Allocator::can.min_pool) return std::nullopt;
  return metadata_bytes<Allocator>(pool.value());
}

template <class Allocator>
nlohmann::ordered_json list_json(const named_allocator<Allocator>& entry, const list_options& o) {
  constexpr abilities can = Allocator::can;
  nlohmann::ordered_json j;
  j["name"] = entry.name;
  j["type"] = entry.cpp_name;
  j["summary"] = entry.summary;
  j["trial"] = entry.trial.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(entry.trial);
  j["frees_one"] = can.frees_one;
  j["frees_all"] = can.frees_all;
  j["reuses"] = can.reuses;
  j["overwrites"] = can.overwrites;
  j["owns_pool"] = can.owns_pool;
  j["max_size"] =
      can.max_size == any_size ? nlohmann::ordered_json() : nlohmann::ordered_json(can.max_size);
  j["max_alignment"] = can.max_alignment;
  j["min_pool"] = can.min_pool;
  const auto metadata = metadata_beside<Allocator>(o.pool);
  j["metadata_bytes"] = metadata ? nlohmann::ordered_json(*metadata) : nlohmann::ordered_json();
  const auto registers = registers_of(entry.name);
  j["registers"] = registers ? nlohmann::ordered_json(*registers) : nlohmann::ordered_json();
  return j;
}

void print_json_list(const list_options& o) {
  nlohmann::ordered_json out;
  out["pool_bytes"] = o.pool.value();
  out["registers_compiler"] = register_compiler();
  out["allocators"] = nlohmann::ordered_json::array();
  for_each_allocator([&](auto entry) { out["allocators"].push_back(list_json(entry, o)); });
  fmt::print("{}\n", out.dump(2));
}

void print_tables_list(const list_options& o) {
  table what({{"allocator"}, {"C++ type"}, {"summary"}});
  std::string trials;
  table can({{"allocator"},
             {"frees"},
             {"memory"},
             {"memory from"},
             {"max size", right},
             {"max align", right},
             {"min pool", right},
             {"metadata", right},
             {"registers", right}});
  for_each_allocator([&](auto entry) {
    using allocator_type = typename decltype(entry)::type;
    constexpr abilities a = allocator_type::can;
    const auto registers = registers_of(entry.name);
    const auto metadata = metadata_beside<allocator_type>(o.pool);
    what.add({std::string(entry.name), std::string(entry.cpp_name),
              std::string(entry.summary) + (entry.trial.empty() ? "" : " (experimental)")});
    if (!entry.trial.empty()) trials += fmt::format("  {}: {}\n", entry.name, entry.trial);
    can.add({std::string(entry.name), frees_text(a), memory_text(a),
             a.owns_pool ? "the pool" : "the system",
             a.max_size == any_size ? "any" : to_text(a.max_size), to_text(a.max_alignment),
             to_text(a.min_pool), metadata ? to_text(*metadata) : "-",
             registers ? std::to_string(*registers) : "-"});
  });
  fmt::print("{}\n{}\n", what.text(), can.text());
  if (!trials.empty()) fmt::print("Experimental, not for production use on a GPU:\n{}\n", trials);
  fmt::print("frees      single blocks (free), all blocks at once (heap::reset), or both\n");
  fmt::print("metadata   bytes beside a pool of {} (--pool)\n", to_text(o.pool));
  if (const std::string compiler = register_compiler(); !compiler.empty())
    fmt::print(
        "registers  per thread of a kernel with one malloc and, if possible, one free; sm_90, nvcc "
        "{}\n",
        compiler);
}

}  // namespace

void add_list(const command_line& app, action& chosen) {
  const auto o = std::make_shared<list_options>();
  const command_line command =
      app.add_subcommand("list", "List the allocators and their capabilities");
  command.add_flag("--json", o->json, "Print JSON");
  add_parsed(command, "--pool", o->pool, parse_size,
             "Pool size for the metadata column (default 1GiB)", "SIZE");
  command.footer(
      "Examples:\n"
      "  quarry list\n"
      "  quarry list --pool 16G\n"
      "  quarry list --json | jq '.allocators[] | select(.frees_one) | .name'");
  command.callback([o, &chosen] {
    chosen = [o] {
      o->json ? print_json_list(*o) : print_tables_list(*o);
      return exit_success;
    };
  });
}

}  // namespace quarry::tool

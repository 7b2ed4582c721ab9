// SPDX-License-Identifier: Apache-2.0
/// quarry demo: runs every allocator on the available backend and checks every block.

#include "demo/demo.hpp"

#include "bench/environment.hpp"
#include "common/backend_info.hpp"
#include "common/catalogue.hpp"
#include "common/command.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "costs/costs.hpp"
#include "demo/kernels.hpp"

#include <quarry/core/bits.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace quarry::tool {
namespace {

constexpr std::uint64_t gpu_lanes = std::uint64_t{1} << 20;
constexpr std::uint64_t cpu_lanes = std::uint64_t{1} << 18;
constexpr std::uint64_t max_lanes = std::uint64_t{1} << 26;
constexpr std::uint64_t pool_factor = 4;  // pool size / requested bytes, before rounding up

struct demo_options {
  std::string backend;
  std::uint64_t lanes = 0;  // 0: default of the backend
  size_range sizes{16, 512};
  bool json = false;
};

struct report {
  backend_info backend;
  demo_plan plan;
  std::uint64_t requested = 0;
  std::vector<demo_row> rows;

  bool ok() const {
    return std::all_of(rows.begin(), rows.end(),
                       [](const demo_row& r) { return r.failure.empty(); });
  }
};

std::uint64_t total_of(const demo_plan& plan) {
  const demo_sizes sizes{plan.sizes.least, plan.sizes.most};
  std::uint64_t total = 0;
  for (std::uint64_t lane = 0; lane < plan.lanes; ++lane)
    total = saturating_add(total, sizes.of(lane));
  return total;
}

report make_plan(const demo_options& o) {
  report r;
  r.backend = choose_backend(o.backend);
  const bool gpu = r.backend.name == "cuda";
  r.plan.lanes = o.lanes != 0 ? o.lanes : gpu ? gpu_lanes : cpu_lanes;
  r.plan.sizes = o.sizes;
  r.plan.timed_rounds = gpu ? 3 : 1;
  r.requested = total_of(r.plan);
  const std::uint64_t needed = saturating_multiply(r.requested, pool_factor);
  if (needed > r.backend.memory / 2)
    throw input_error(fmt::format(
        "{} lanes request {}, and the demo's pool is {} times that; {} has {} of memory",
        grouped(r.plan.lanes), to_text(r.requested), pool_factor, r.backend.name,
        to_text(r.backend.memory)));
  r.plan.pool = std::max<std::uint64_t>((64_MiB).value(), std::uint64_t{1} << log2_ceil(needed));
  return r;
}

void run_demo(report& r) {
  progress bar;
  const auto listen = [&](std::string_view name, const char* stage, double done) {
    bar.show(done, fmt::format("{}: {}", name, stage));
  };
  const auto done = [&](const demo_row& row) {
    r.rows.push_back(row);
    if (row.failure.empty()) {
      bar.note(fmt::format("{}: {} blocks checked", row.name, grouped(row.checked)));
    } else {
      bar.clear();
      fmt::print(stderr, "{}: FAILED: {}\n", row.name, row.failure);
    }
  };
  (r.backend.name == "cuda" ? run_demo_cuda : run_demo_cpu)(r.plan, listen, done);
}

std::string rate(double per_second) { return per_second < 0 ? "-" : rounded(per_second); }

void print_tables_demo(const report& r) {
  table figures({{"allocator"},
                 {"mallocs/s", right},
                 {"frees/s", right},
                 {"metadata", right},
                 {"blocks checked", right},
                 {"frees"},
                 {"memory"},
                 {"check"}});
  for (const demo_row& row : r.rows) {
    abilities can;
    visit_allocator(row.name, [&](auto entry) { can = decltype(entry)::type::can; });
    figures.add({std::string(row.name), rate(row.mallocs_per_second), rate(row.frees_per_second),
                 to_text(row.metadata), grouped(row.checked), frees_text(can), memory_text(can),
                 row.failure.empty() ? "passed" : "FAILED"});
  }
  fmt::print("{}", figures.text());
}

std::string sizes_text(const size_range& s) {
  return s.least == s.most ? to_text(s.least)
                           : fmt::format("{} to {}", to_text(s.least), to_text(s.most));
}

void print_all(const report& r) {
  print_tables_demo(r);
  fmt::print(
      "\nCost per call, counted by the CPU executor while a warp requests mixed sizes (1/32: one "
      "per "
      "warp;\n"
      "trips: dependent round trips to memory; the work inside CudaMalloc cannot be "
      "counted):\n\n{}\n",
      costs_table(count_costs(), 2, detail_of::brief));
  if (!r.ok()) return;
  fmt::print(
      "Checked: every block is aligned, inside the pool and disjoint from all others; a later "
      "kernel "
      "found the\n"
      "contents that its lane had written; after all blocks were freed, each pool served the same "
      "requests again.\n");
  if (r.backend.name == "cpu")
    fmt::print("Rates are those of the CPU executor. They do not predict the rates on a GPU.\n");
  fmt::print(
      "\nNext: `quarry explore {}` searches for a schedule that violates the contract; `quarry "
      "list` "
      "describes the allocators.\n",
      r.rows.front().name);
}

void print_json_demo(const report& r) {
  nlohmann::ordered_json out;
  out["backend"] = r.backend.name;
  out["description"] = r.backend.description;
  out["lanes"] = r.plan.lanes;
  out["min_size"] = r.plan.sizes.least;
  out["max_size"] = r.plan.sizes.most;
  out["requested_bytes"] = r.requested;
  out["pool_bytes"] = r.plan.pool;
  out["ok"] = r.ok();
  out["allocators"] = nlohmann::ordered_json::array();
  for (const demo_row& row : r.rows) {
    const auto figure = [](double n) {
      return n < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(n);
    };
    nlohmann::ordered_json j;
    j["name"] = row.name;
    j["ok"] = row.failure.empty();
    j["failure"] = row.failure;
    j["checked_blocks"] = row.checked;
    j["metadata_bytes"] = row.metadata;
    j["mallocs_per_second"] = figure(row.mallocs_per_second);
    j["frees_per_second"] = figure(row.frees_per_second);
    out["allocators"].push_back(j);
  }
  for (const allocator_costs& costs : count_costs())
    for (auto& j : out["allocators"])
      if (j["name"] == costs.name) j["costs"] = to_json(costs)["cases"];
  fmt::print("{}\n", out.dump(2));
}

}  // namespace

void add_demo(const command_line& app, action& chosen) {
  const auto o = std::make_shared<demo_options>();
  const command_line command =
      app.add_subcommand("demo", "Run every allocator, check every block, and measure rates");
  command.add_flag("--json", o->json, "Print JSON");
  add_choice(command, "--backend", o->backend, {"cpu", "cuda"},
             "Backend (default: cuda if there is a GPU, else cpu)");
  add_count(command, "--lanes", o->lanes,
            "Lanes, one block each (default 1048576 on a GPU, 262144 on the CPU)", 1, max_lanes);
  const auto sizes = [](const std::string& text) {
    const size_range r = parse_size_range(text);
    if (r.least == 0) throw input_error("the minimum block size is 1 byte");
    return r;
  };
  add_parsed(command, "--size", o->sizes, sizes,
             "Block size, or range of block sizes (default 16-512)", "SIZE|MIN-MAX");
  command.footer(
      "Examples:\n"
      "  quarry demo\n"
      "  quarry demo --lanes 10000 --size 64\n"
      "  quarry demo --backend cpu --size 16-4K --json");
  command.callback([o, &chosen] {
    chosen = [o] {
      report r = make_plan(*o);
      if (!o->json)
        fmt::print("{} lanes on {}, one block of {} each, {} in total.\n\n", grouped(r.plan.lanes),
                   r.backend.description, sizes_text(r.plan.sizes), to_text(r.requested));
      std::fflush(stdout);
      run_demo(r);
      o->json ? print_json_demo(r) : print_all(r);
      return r.ok() ? exit_success : exit_check_failed;
    };
  });
}

}  // namespace quarry::tool

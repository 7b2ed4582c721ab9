// SPDX-License-Identifier: Apache-2.0
/// quarry explore: searches for a schedule under which an allocator violates its contract.

#include "common/command.hpp"
#include "common/catalogue.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "explore/run.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace quarry::tool {
namespace {

constexpr std::uint64_t max_explored_lanes = 1024;
constexpr std::uint64_t default_schedules = 200'000;
constexpr std::uint64_t all_schedules = std::numeric_limits<std::uint64_t>::max();

struct explore_options {
  std::string allocator;
  std::uint64_t lanes = 8;
  std::uint64_t blocks = 2;
  std::uint64_t operations = 4;
  std::uint64_t schedules = 0;  // 0: the default, or no limit if --seconds is given
  std::uint64_t seed = 1;
  bytes pool = 1_KiB;
  double seconds = 0;
  std::string strategy = "both";
  std::optional<trial> replayed;
  bool json = false;
};

exploration_options settings(const explore_options& o) {
  exploration_options e;
  e.bounds = {static_cast<std::uint32_t>(o.lanes), static_cast<std::uint32_t>(o.blocks),
              static_cast<std::uint32_t>(o.operations)};
  e.pool_bytes = o.pool.value();
  e.first_seed = o.seed;
  e.seconds = o.seconds;
  e.schedules = o.schedules != 0 ? o.schedules : o.seconds > 0 ? all_schedules : default_schedules;
  e.strategy = o.strategy == "random"     ? exploration_strategy::random
               : o.strategy == "pct"      ? exploration_strategy::pct
               : o.strategy == "lockstep" ? exploration_strategy::lockstep
                                          : exploration_strategy::both;
  e.step_limit = std::max<std::uint64_t>(e.step_limit, 1000 * o.lanes * o.operations);
  return e;
}

double fraction_done(const exploration& done, const exploration_options& e) {
  const double by_count = static_cast<double>(done.schedules) / static_cast<double>(e.schedules);
  return e.seconds > 0 ? std::max(by_count, done.seconds / e.seconds) : by_count;
}

exploration explore_one(std::string_view name, const explore_options& o, progress& bar,
                        double first, double span) {
  const exploration_options e = settings(o);
  const auto listen = [&](const exploration& done) {
    bar.show(first + span * fraction_done(done, e),
             fmt::format("{}: {} schedules", name, grouped(done.schedules)));
  };
  return explore_in_portions(e, explorer_of(name), listen);
}

nlohmann::ordered_json explore_json(std::string_view name, const exploration& found) {
  nlohmann::ordered_json j;
  j["name"] = name;
  j["ok"] = !found.first.has_value();
  j["schedules"] = found.schedules;
  j["steps"] = found.steps;
  j["served"] = found.served;
  j["failed"] = found.failed;
  j["freed"] = found.freed;
  j["seconds"] = found.seconds;
  j["failure"] = nullptr;
  if (!found.first) return j;
  const exploration_failure& f = *found.first;
  j["failure"] = {{"seed", f.seed},
                  {"text", f.text},
                  {"token", f.token},
                  {"small_token", f.small_token},
                  {"small_text", f.small_text},
                  {"small_script", f.small_script},
                  {"replay", replay_command(name, f.small_token)}};
  return j;
}

int explore(const explore_options& o, const std::vector<std::string_view>& names) {
  bool ok = true;
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  progress bar;
  const double span = 1.0 / static_cast<double>(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const exploration found = explore_one(names[i], o, bar, span * static_cast<double>(i), span);
    ok = ok && !found.first;
    results.push_back(explore_json(names[i], found));
    bar.clear();
    if (o.json) continue;
    fmt::print("{}", outcome_text(names[i], found));
    if (found.first) fmt::print("{}", failure_text(names[i], *found.first));
    std::fflush(stdout);
  }
  if (o.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"ok", ok}, {"allocators", results}}.dump(2));
  return ok ? exit_success : exit_check_failed;
}

trial read_token(const std::string& token) {
  try {
    trial t = trial::from_token(token);
    if (t.bounds.lanes > max_explored_lanes)
      throw error(
          fmt::format("\"{}\": the grid has more than {} lanes", token, max_explored_lanes));
    return t;
  } catch (const error& e) {
    throw input_error(e.what());
  }
}

int replay(const explore_options& o, const trial& t, const std::vector<std::string_view>& names) {
  if (names.size() != 1)
    throw input_error("--replay needs one allocator: the one that the token was printed for");
  std::vector<std::string> lines;
  const replay_result result = replay_trial(names[0], t, [&](const std::string& line) {
    if (o.json)
      lines.push_back(line);
    else
      fmt::print("{}\n", line);
  });
  if (o.json) {
    const nlohmann::ordered_json out = {{"name", names[0]},
                                        {"ok", result.ok()},
                                        {"failure", result.failure},
                                        {"steps", result.steps},
                                        {"lines", lines}};
    fmt::print("{}\n", out.dump(2));
  }
  return result.ok() ? exit_success : exit_check_failed;
}

}  // namespace

void add_explore(const command_line& app, action& chosen) {
  const auto o = std::make_shared<explore_options>();
  const command_line command =
      app.add_subcommand("explore", "Search for a schedule that breaks an allocator");
  command.add_required("ALLOCATOR", o->allocator, "A name from quarry list, or all");
  add_count(command, "--lanes", o->lanes, "Maximum number of lanes (default 8)", 1,
            max_explored_lanes);
  add_count(command, "--blocks", o->blocks, "Maximum number of thread blocks (default 2)", 1,
            max_explored_lanes);
  add_count(command, "--operations", o->operations, "Maximum number of calls per lane (default 4)",
            1, max_explored_lanes);
  add_count(command, "--schedules", o->schedules, "Number of schedules (default 200000)");
  add_count(command, "--seed", o->seed, "Seed of the first schedule; the others follow (default 1)",
            0);
  add_parsed(command, "--seconds", o->seconds, parse_seconds, "Time limit; overrides --schedules",
             "T");
  const auto pool = [](const std::string& text) {
    const bytes n = parse_size(text);
    if (n.value() < trial::min_pool_bytes || n.value() > trial::max_pool_bytes)
      throw input_error("the pool must have 64 B to 1 GiB");
    return n;
  };
  add_parsed(command, "--pool", o->pool, pool,
             "Maximum pool size; small pools run full (default 1K)", "SIZE");
  add_choice(command, "--strategy", o->strategy, {"random", "pct", "both", "lockstep"},
             "Scheduling strategy (default both: random and pct)");
  add_parsed(command, "--replay", o->replayed, read_token,
             "Replay the schedule of this token and print its trace", "TOKEN");
  command.add_flag("--json", o->json, "Print JSON");
  command.footer(
      "A small grid runs on one thread. At every atomic, a seeded scheduler selects the lane that "
      "continues, and an\n"
      "oracle checks every block. A failure prints its seed, the smallest script that still fails, "
      "and a token that\n"
      "replays it; the exit code is 1.\n\n"
      "Examples:\n"
      "  quarry explore AtomicMalloc\n"
      "  quarry explore all --seconds 10\n"
      "  quarry explore AWMalloc --lanes 3 --operations 2 --schedules 1000000 --strategy pct");
  command.callback([o, &chosen] {
    chosen = [o] {
      const auto names = find_allocators(o->allocator);
      return o->replayed ? replay(*o, *o->replayed, names) : explore(*o, names);
    };
  });
}

}  // namespace quarry::tool

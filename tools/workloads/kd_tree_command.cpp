// SPDX-License-Identifier: Apache-2.0
/// quarry kd-tree: a kd-tree built inside a kernel, with each allocator: [DS] of Vinkler and Havran
/// (2014).

#include "bench/claims.hpp"
#include "bench/environment.hpp"
#include "common/command.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "workloads/kd_tree.hpp"
#include "workloads/workload.hpp"

#include "apps/kd_tree/sequential.hpp"
#include "apps/scene/file.hpp"

#include <quarry/heap/named.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace quarry::tool {
namespace {

constexpr std::string_view reference = "AtomicMalloc";

struct options : workload_options {
  std::string scenes = "tessellated,clustered,thin";
  std::uint64_t triangles = 0;  // 0: as the machine takes
  std::uint64_t leaf_size = apps::kd_limits::default_leaf_size;
};

/// One scene for all allocators.
struct kd_case {
  std::string scene;  // as it was typed
  std::uint32_t triangles;
  std::string label;
  std::uint64_t heap;
};

/// As large as in the paper, 200 times the root's list, and something for small scenes.
std::uint64_t default_heap(std::uint64_t triangles) {
  return std::max((64_MiB).value(), 200 * apps::kd_list_bytes(triangles));
}

json description() {
  const auto column = [](const char* field, const char* name, const char* unit) {
    return json{{"field", field}, {"name", name}, {"unit", unit}, {"scale", "log"}};
  };
  return {{"id", "kd-tree"},
          {"title", "kd-tree build"},
          {"source", "Vinkler and Havran 2014, Table 2"},
          {"x", {{"name", "scene"}, {"unit", ""}, {"scale", "category"}}},
          {"y",
           {column("slowdown", "time by that of AtomicMalloc", "x"),
            column("ms", "build time", "ms"), column("triangles", "triangles", ""),
            column("references_per_triangle", "references a triangle", ""),
            column("allocations", "allocations", ""), column("mean_bytes", "mean of sizes", "B"),
            column("deviation_bytes", "deviation of sizes", "B"),
            column("registers", "registers of the kernel", "")}},
          {"form", "table"},
          {"note",
           "One kernel; a list of triangles a node, allocated for the children and freed for the "
           "parent, one lane asking for its warp."}};
}

std::string command_line(const options& o, const workload_setup& setup, const kd_case& c,
                         std::string_view allocator) {
  std::string text =
      fmt::format("quarry kd-tree --backend {} --scene {}", setup.backend.name, c.scene);
  if (apps::is_generated(c.scene)) text += fmt::format(" --triangles {}", c.triangles);
  if (o.leaf_size != apps::kd_limits::default_leaf_size)
    text += fmt::format(" --leaf {}", o.leaf_size);
  text += fmt::format(" --heap {} --repeats {} --allocators {}", c.heap, o.repeats, allocator);
  return text + (o.check ? " --check" : "");
}

/// All scenes are found before the first is built.
std::vector<kd_case> find_cases(const options& o, const workload_setup& setup) {
  std::vector<kd_case> cases;
  for (const std::string& name : split(o.scenes)) {
    const std::uint64_t wanted = o.triangles != 0 ? o.triangles : setup.gpu() ? 250'000 : 2000;
    kd_case c{name, static_cast<std::uint32_t>(wanted), name, 0};
    if (apps::is_generated(name)) {
      c.label = name + " " + short_count(wanted);
    } else {
      try {
        const apps::scene s = apps::load_scene(name);
        c.triangles = s.size();
        c.label = s.name;
      } catch (const apps::scene_error& e) {
        throw input_error(std::string("--scene: ") + e.what());
      }
    }
    c.heap = o.heap != 0 ? o.heap : default_heap(c.triangles);
    check_heap(c.heap, setup.backend, c.label);
    cases.push_back(c);
  }
  return cases;
}

bool overwrites(std::string_view allocator) {
  bool answer = false;
  for_each_allocator([&](auto entry) {
    if (entry.name == allocator) answer = decltype(entry)::type::can.overwrites;
  });
  return answer;
}

/// The scene with all allocators; the reference comes first.
class kd_comparison {
 public:
  kd_comparison(const options& o, const workload_setup& setup, const kd_case& c)
      : options_(&o), setup_(&setup), case_(&c) {}

  /// What one thread builds, for the others to be held against.
  void expect() {
    const apps::scene s = apps::find_scene(case_->scene, case_->triangles);
    const auto limits =
        apps::kd_limits::default_for(s.size(), static_cast<std::uint32_t>(options_->leaf_size));
    const apps::kd_input input = apps::make_kd_input(s);
    digest_ = hexadecimal(apps::statistics_of(apps::kd_sequential(input, limits).build()).digest);
    expected_by_ = "one thread";
  }

  json measure(std::string_view allocator) {
    if (overwrites(allocator)) {
      const json* asked = first_ && measured(*first_) ? &first_->at("bytes") : nullptr;
      if (asked == nullptr || asked->get<std::uint64_t>() > case_->heap)
        return no_answer("skipped", "would overwrite: its pool is not known to hold all lists");
    }
    json answer;
    measure_in_child({{"workload", "kd-tree"},
                      {"backend", setup_->backend.name},
                      {"allocator", allocator},
                      {"scene", case_->scene},
                      {"triangles", case_->triangles},
                      {"leaf", options_->leaf_size},
                      {"heap", case_->heap},
                      {"repeats", options_->repeats},
                      {"check", options_->check}},
                     1, static_cast<double>(options_->timeout),
                     [&](const json& only) { answer = only; });
    if (measured(answer)) judge(answer, allocator);
    if (!first_) first_ = answer;
    return answer;
  }

  const json& first() const { return *first_; }

 private:
  void judge(json& answer, std::string_view allocator) {
    if (digest_.empty()) digest_ = answer.at("digest"), expected_by_ = allocator;
    if (answer.at("digest") != digest_) {
      answer["corrupt"] = 1;
      answer["note"] = "the tree is not that of " + expected_by_;
    }
    const json& base = first_ ? *first_ : answer;
    answer["slowdown"] = nullptr;
    if (!base.at("ms").is_null())
      answer["slowdown"] = answer.at("ms").get<double>() / base.at("ms").get<double>();
  }

  const options* options_;
  const workload_setup* setup_;
  const kd_case* case_;
  std::optional<json> first_;
  std::string digest_;
  std::string expected_by_;
};

/// What the paper says of one allocator against another, and what the scenes measured here say.
class kd_claims {
 public:
  void note(std::string_view allocator, const std::string& scene, const json& answer) {
    if (!measured(answer) || answer.at("ms").is_null()) return;
    if (allocator == slower) slow_[scene] = answer.at("ms");
    if (allocator == faster) fast_[scene] = answer.at("ms");
  }
  std::vector<bench_claim> found() const {
    std::vector<std::pair<double, std::string>> ratios;
    for (const auto& [scene, ms] : slow_)
      if (const auto at = fast_.find(scene); at != fast_.end())
        ratios.emplace_back(ms / at->second, scene);
    if (ratios.empty()) return {};
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    const auto claim = [](const char* which, double paper, const auto& ratio) {
      return bench_claim{
          fmt::format("cfmalloc-kd-tree-{}", which),
          "Vinkler, Havran 2014",
          fmt::format("CFMalloc builds kd-trees 1.13 to 4.33 x faster than ScatterAlloc: the {}",
                      which),
          paper,
          ratio.first,
          fmt::format("median build time of {} / {}, {}", slower, faster, ratio.second)};
    };
    return {claim("least", 1.13, *least), claim("most", 4.33, *most)};
  }

 private:
  static constexpr std::string_view slower = "ScatterAlloc", faster = "CFMalloc";
  std::map<std::string, double> slow_, fast_;
};

void print_scene(const json& tree, const std::string& label) {
  if (!measured(tree)) return fmt::print("\n{}\n", label);
  fmt::print(
      "\n{}: {} triangles, {:.2f} references each; {} nodes, {} deep\n"
      "{} allocations of {:.1f} B on average, deviation {:.1f} B\n\n",
      label, grouped(tree.at("triangles")), tree.at("references_per_triangle").get<double>(),
      grouped(tree.at("nodes")), tree.at("depth").get<unsigned>(), grouped(tree.at("allocations")),
      tree.at("mean_bytes").get<double>(), tree.at("deviation_bytes").get<double>());
}

table make_table() {
  return table({{"allocator"},
                {"build ms", right},
                {"least", right},
                {"most", right},
                {"slowdown", right},
                {""}});
}

void add_row(table& rows, std::string_view allocator, const json& answer) {
  const auto number = [&](const char* key) {
    const auto at = answer.find(key);
    return at == answer.end() || at->is_null() ? std::string("-")
                                               : fmt::format("{:.3f}", at->get<double>());
  };
  const std::string outcome = answer.at("outcome"), note = answer.at("note");
  rows.add({std::string(allocator), number("ms"), number("min_ms"), number("max_ms"),
            number("slowdown"),
            outcome == "ok" ? note
            : note.empty()  ? outcome
                            : outcome + ": " + note});
}

int run(const options& o) {
  workload_setup setup = resolve_setup(o);
  std::erase(setup.allocators, reference);  // what others are compared with comes first
  setup.allocators.insert(setup.allocators.begin(), reference);
  const std::vector<kd_case> cases = find_cases(o, setup);
  workload_record record(o, setup.where);
  record.experiment(description());
  if (!o.json)
    fmt::print("kd-trees on {}, medians of {} builds{}\n", setup.backend.description, o.repeats,
               setup.gpu() ? "" : "; times are the CPU executor's and say nothing about a GPU");

  kd_claims claims;
  progress bar;
  bool ok = true;
  std::size_t done = 0;
  for (const kd_case& c : cases) {
    kd_comparison comparison(o, setup, c);
    if (o.check) comparison.expect();
    table rows = make_table();
    for (const std::string_view allocator : setup.allocators) {
      bar.show(
          static_cast<double>(done++) / static_cast<double>(cases.size() * setup.allocators.size()),
          fmt::format("{}: {}", c.label, allocator));
      const json answer = comparison.measure(allocator);
      ok = ok && (measured(answer) || answer.at("outcome") == "skipped") &&
           answer.at("corrupt") == 0;
      record.point({{"experiment", "kd-tree"},
                    {"allocator", allocator},
                    {"series", allocator},
                    {"x", c.label},
                    {"command", command_line(o, setup, c, allocator)}},
                   answer);
      claims.note(allocator, c.label, answer);
      add_row(rows, allocator, answer);
    }
    bar.clear();
    if (o.json) continue;
    print_scene(comparison.first(), c.label);
    fmt::print("{}", rows.text());
    std::fflush(stdout);
  }
  for (const bench_claim& c : claims.found()) record.claim(claim_record(c, setup.where));
  if (o.json)
    record.print(ok);
  else if (const std::string text = claims_text(claims.found()); !text.empty())
    fmt::print("\nWhat the paper says, and here:\n\n{}", text);
  return ok ? exit_success : exit_check_failed;
}

}  // namespace

void add_kd_tree(CLI::App& app, action& chosen) {
  const auto o = std::make_shared<options>();
  CLI::App& command = *app.add_subcommand(
      "kd-tree", "A kd-tree built inside a kernel, with each allocator: time, lists, slowdown");
  command
      .add_option("--scene", o->scenes,
                  "Files .obj or .ply, or tessellated, clustered, thin (default those three)")
      ->type_name("S,T,...");
  add_count(command, "--triangles", o->triangles,
            "Of scenes that are made (default 250000 on a GPU, 2000 on the CPU)", 1,
            apps::scene::max_triangles);
  add_count(command, "--leaf", o->leaf_size,
            fmt::format("A node of so many triangles is a leaf (default {})",
                        apps::kd_limits::default_leaf_size),
            1, apps::scene::max_triangles);
  add_workload_options(command, *o);
  command.footer(
      "AtomicMalloc is always measured: the slowdown of the others is their time by its time. "
      "Allocators that free no\nsingle block keep everything until the tree is done. All must "
      "build the same tree; with --check also the one\nthat a single thread builds, and random "
      "rays meet in it what they meet among all triangles.\nThe exit code is 1 if a tree was wrong "
      "or a build did not end well.\n\n"
      "Examples:\n"
      "  quarry kd-tree\n"
      "  quarry kd-tree --scene bunny.obj --allocators CFMalloc,ScatterAlloc --check\n"
      "  quarry kd-tree --backend cuda --scene thin --triangles 2000000 --out trees.jsonl");
  command.callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace quarry::tool

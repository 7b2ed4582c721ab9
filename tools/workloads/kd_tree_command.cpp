// SPDX-License-Identifier: Apache-2.0
/// quarry kd-tree: a kd-tree build inside a kernel, with each allocator; the workload [DS] of
/// Vinkler and Havran (2014).

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

constexpr std::string_view kd_tree_baseline = "AtomicMalloc";

struct kd_tree_options : workload_options {
  std::string scenes = "tessellated,clustered,thin";
  std::uint64_t triangles = 0;  // of generated scenes; 0: default of the backend
  std::uint64_t leaf_size = apps::kd_limits::default_leaf_size;
};

/// One scene, measured with all allocators.
struct kd_case {
  std::string scene;  // as given on the command line
  std::uint32_t triangles;
  std::string label;
  std::uint64_t heap;
};

/// Returns the heap size of the paper: 200 times the list of the root, and at least 64 MiB.
std::uint64_t default_heap(std::uint64_t triangles) {
  return std::max((64_MiB).value(), 200 * apps::kd_list_bytes(triangles));
}

json description() {
  const auto column = [](const char* field, const char* name, const char* unit) {
    return json{{"field", field}, {"name", name}, {"unit", unit}, {"scale", "log"}};
  };
  return {
      {"id", "kd-tree"},
      {"title", "kd-tree build"},
      {"source", "Vinkler and Havran 2014, Table 2"},
      {"x", {{"name", "scene"}, {"unit", ""}, {"scale", "category"}}},
      {"y",
       {column("slowdown", "slowdown against AtomicMalloc", "x"), column("ms", "build time", "ms"),
        column("triangles", "triangles", ""),
        column("references_per_triangle", "references per triangle", ""),
        column("allocations", "allocations", ""), column("mean_bytes", "mean allocation size", "B"),
        column("deviation_bytes", "standard deviation of the allocation size", "B"),
        column("registers", "registers per thread", "")}},
      {"form", "table"},
      {"note",
       "One kernel. Each split allocates two lists of triangles and frees one; one lane calls "
       "malloc and free for its warp."}};
}

std::string command_text(const kd_tree_options& o, const workload_setup& setup, const kd_case& c,
                         std::string_view allocator) {
  std::string text =
      fmt::format("quarry kd-tree --backend {} --scene {}", setup.backend.name, c.scene);
  if (apps::is_generated(c.scene)) text += fmt::format(" --triangles {}", c.triangles);
  if (o.leaf_size != apps::kd_limits::default_leaf_size)
    text += fmt::format(" --leaf {}", o.leaf_size);
  text += fmt::format(" --heap {} --repeats {} --allocators {}", c.heap, o.repeats, allocator);
  return text + (o.check ? " --check" : "");
}

/// Finds all scenes before the first build. Throws input_error.
std::vector<kd_case> resolve_cases(const kd_tree_options& o, const workload_setup& setup) {
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
  bool result = false;
  for_each_allocator([&](auto entry) {
    if (entry.name == allocator) result = decltype(entry)::type::can.overwrites;
  });
  return result;
}

/// Measures one scene with one allocator after the other. The first one is the baseline.
class kd_scene_comparison {
 public:
  kd_scene_comparison(const kd_tree_options& o, const workload_setup& setup, const kd_case& c)
      : options_(&o), setup_(&setup), case_(&c) {}

  /// Builds the expected tree by the sequential reference implementation.
  void compute_expected_tree() {
    const apps::scene s = apps::find_scene(case_->scene, case_->triangles);
    const auto limits =
        apps::kd_limits::default_for(s.size(), static_cast<std::uint32_t>(options_->leaf_size));
    const apps::kd_input input = apps::make_kd_input(s);
    digest_ = to_hex(apps::statistics_of(apps::kd_sequential(input, limits).build()).digest);
    expected_by_ = "the sequential reference";
  }

  json measure(std::string_view allocator) {
    if (overwrites(allocator)) {
      const json* allocated = first_ && measured(*first_) ? &first_->at("bytes") : nullptr;
      if (allocated == nullptr || allocated->get<std::uint64_t>() > case_->heap)
        return missing_result(
            "skipped", "would overwrite blocks in use: the heap may be smaller than all lists");
    }
    json result;
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
                     [&](const json& only) { result = only; });
    if (measured(result)) compare_with_reference(result, allocator);
    if (!first_) first_ = result;
    return result;
  }

  const json& first() const { return *first_; }

 private:
  void compare_with_reference(json& result, std::string_view allocator) {
    if (digest_.empty()) digest_ = result.at("digest"), expected_by_ = allocator;
    if (result.at("digest") != digest_) {
      result["corrupt"] = 1;
      result["note"] = "the tree differs from that of " + expected_by_;
    }
    const json& base = first_ ? *first_ : result;
    result["slowdown"] = nullptr;
    if (!base.at("ms").is_null())
      result["slowdown"] = result.at("ms").get<double>() / base.at("ms").get<double>();
  }

  const kd_tree_options* options_;
  const workload_setup* setup_;
  const kd_case* case_;
  std::optional<json> first_;
  std::string digest_;
  std::string expected_by_;
};

/// Compares a claim of the paper about two allocators with the scenes measured here.
class kd_claims {
 public:
  void note(std::string_view allocator, const std::string& scene, const json& result) {
    if (!measured(result) || result.at("ms").is_null()) return;
    if (allocator == slower) slow_[scene] = result.at("ms");
    if (allocator == faster) fast_[scene] = result.at("ms");
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
          fmt::format("CFMalloc builds kd-trees 1.13 to 4.33 x faster than ScatterAlloc: {} ratio",
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
      "\n{}: {} triangles, {:.2f} references per triangle; {} nodes, depth {}\n"
      "{} allocations, mean {:.1f} B, standard deviation {:.1f} B\n\n",
      label, grouped(tree.at("triangles")), tree.at("references_per_triangle").get<double>(),
      grouped(tree.at("nodes")), tree.at("depth").get<unsigned>(), grouped(tree.at("allocations")),
      tree.at("mean_bytes").get<double>(), tree.at("deviation_bytes").get<double>());
}

table make_table() {
  return table({{"allocator"},
                {"build ms", right},
                {"min ms", right},
                {"max ms", right},
                {"slowdown", right},
                {""}});
}

void add_row(table& rows, std::string_view allocator, const json& result) {
  const auto number = [&](const char* key) {
    const auto at = result.find(key);
    return at == result.end() || at->is_null() ? std::string("-")
                                               : fmt::format("{:.3f}", at->get<double>());
  };
  const std::string outcome = result.at("outcome"), note = result.at("note");
  rows.add({std::string(allocator), number("ms"), number("min_ms"), number("max_ms"),
            number("slowdown"),
            outcome == "ok" ? note
            : note.empty()  ? outcome
                            : outcome + ": " + note});
}

int run_kd_tree(const kd_tree_options& o) {
  workload_setup setup = resolve_setup(o);
  std::erase(setup.allocators, kd_tree_baseline);  // the baseline is measured first
  setup.allocators.insert(setup.allocators.begin(), kd_tree_baseline);
  const std::vector<kd_case> cases = resolve_cases(o, setup);
  workload_record record(o, setup.environment);
  record.experiment(description());
  if (!o.json)
    fmt::print("kd-tree builds on {}, median of {} builds{}\n", setup.backend.description,
               o.repeats,
               setup.gpu() ? "" : "; times of the CPU executor do not predict GPU times");

  kd_claims claims;
  progress bar;
  bool ok = true;
  std::size_t done = 0;
  for (const kd_case& c : cases) {
    kd_scene_comparison comparison(o, setup, c);
    if (o.check) comparison.compute_expected_tree();
    table rows = make_table();
    for (const std::string_view allocator : setup.allocators) {
      bar.show(
          static_cast<double>(done++) / static_cast<double>(cases.size() * setup.allocators.size()),
          fmt::format("{}: {}", c.label, allocator));
      const json result = comparison.measure(allocator);
      ok = ok && (measured(result) || result.at("outcome") == "skipped") &&
           result.at("corrupt") == 0;
      record.point({{"experiment", "kd-tree"},
                    {"allocator", allocator},
                    {"series", allocator},
                    {"x", c.label},
                    {"command", command_text(o, setup, c, allocator)}},
                   result);
      claims.note(allocator, c.label, result);
      add_row(rows, allocator, result);
    }
    bar.clear();
    if (o.json) continue;
    print_scene(comparison.first(), c.label);
    fmt::print("{}", rows.text());
    std::fflush(stdout);
  }
  for (const bench_claim& c : claims.found()) record.claim(claim_record(c, setup.environment));
  if (o.json)
    record.print(ok);
  else if (const std::string text = claims_text(claims.found()); !text.empty())
    fmt::print("\nClaims of the paper, and the measured values:\n\n{}", text);
  return ok ? exit_success : exit_check_failed;
}

}  // namespace

void add_kd_tree(const command_line& app, action& chosen) {
  const auto o = std::make_shared<kd_tree_options>();
  const command_line command = app.add_subcommand(
      "kd-tree", "Measure a kd-tree build that allocates inside a kernel, with each allocator");
  command.add_option("--scene", o->scenes,
                     "Files (.obj, .ply) or generated scenes (default tessellated,clustered,thin)",
                     "S,T,...");
  add_count(command, "--triangles", o->triangles,
            "Size of generated scenes (default 250000 on a GPU, 2000 on the CPU)", 1,
            apps::scene::max_triangles);
  add_count(command, "--leaf", o->leaf_size,
            fmt::format("Maximum number of triangles of a leaf (default {})",
                        apps::kd_limits::default_leaf_size),
            1, apps::scene::max_triangles);
  add_workload_options(command, *o);
  command.footer(
      "AtomicMalloc is always measured; it is the baseline of the slowdown. Allocators that cannot "
      "free single blocks\nkeep all lists until the tree is complete. All allocators must build "
      "the "
      "same tree. With --check, that tree\nmust also equal the tree of a sequential reference, and "
      "random rays must find the same hits as a brute-force\nsearch. Exit code 1: a tree was "
      "wrong, or "
      "a build failed.\n\n"
      "Examples:\n"
      "  quarry kd-tree\n"
      "  quarry kd-tree --scene bunny.obj --allocators CFMalloc,ScatterAlloc --check\n"
      "  quarry kd-tree --backend cuda --scene thin --triangles 2000000 --out trees.jsonl");
  command.callback([o, &chosen] { chosen = [o] { return run_kd_tree(*o); }; });
}

}  // namespace quarry::tool

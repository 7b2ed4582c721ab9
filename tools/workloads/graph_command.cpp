// SPDX-License-Identifier: Apache-2.0
/// quarry graph: a dynamic graph whose adjacency lists are reallocated inside kernels, with each
/// allocator, after the survey of Winter et al. (2021).

#include "common/command.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "workloads/graph_experiments.hpp"
#include "workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace quarry::tool {
namespace {

constexpr std::uint64_t most_batch = std::uint64_t{1} << 26;

struct graph_options : workload_options {
  std::string experiments = "all";
  std::uint64_t scale = 0;  // 2^scale vertices; 0: default of the backend, as in the next two
  std::uint64_t degree = 0;
  std::vector<std::uint64_t> batches;
};

std::vector<const graph_experiment*> find_graph_experiments(const std::string& typed) {
  std::vector<const graph_experiment*> chosen;
  for (const std::string& word : split(typed))
    for (const graph_experiment& e : graph_experiments())
      if ((word == "all" || &experiment_named(word) == &e) &&
          std::find(chosen.begin(), chosen.end(), &e) == chosen.end())
        chosen.push_back(&e);
  return chosen;
}

std::vector<std::uint64_t> graph_points_of(const graph_experiment& e, const graph_options& o,
                                           const graph_size& size, bool gpu) {
  if (e.name == "init") {
    std::vector<std::uint64_t> vertices;
    for (unsigned scale = size.scale > 6 ? size.scale - 6 : 0; scale <= size.scale; scale += 2)
      vertices.push_back(std::uint64_t{1} << scale);
    return vertices;
  }
  if (!o.batches.empty()) return o.batches;
  return gpu ? std::vector<std::uint64_t>{1000, 10'000, 100'000, 1'000'000}
             : std::vector<std::uint64_t>{100, 1000, 4000};
}

json description(const graph_experiment& e, const graph_size& size) {
  json y = {{{"field", "ms"}, {"name", e.time}, {"unit", "ms"}, {"scale", "log"}}};
  if (!e.free_time.empty())
    y.push_back({{"field", "free_ms"}, {"name", e.free_time}, {"unit", "ms"}, {"scale", "log"}});
  const std::string graph =
      e.name == "init"
          ? fmt::format("{} edges per vertex", size.degree)
          : fmt::format("{} vertices, {} edges", grouped(size.vertices()), grouped(size.edges()));
  return {{"id", "graph-" + std::string(e.name)},
          {"title", e.title},
          {"source", "Winter et al. 2021"},
          {"x", {{"name", e.x_name}, {"unit", ""}, {"scale", "log"}}},
          {"y", y},
          {"form", "lines"},
          {"note", fmt::format("{} R-MAT, {}.", e.note, graph)}};
}

/// Returns the default heap size: four times the memory of lists that double and are never freed.
std::uint64_t default_heap(const graph_size& size, const std::vector<std::uint64_t>& points) {
  const std::uint64_t most = *std::max_element(points.begin(), points.end());
  return std::max((64_MiB).value(),
                  64 * (size.edges() + most) + std::uint64_t{256} * size.vertices());
}

std::string command_text(const graph_options& o, const workload_setup& setup,
                         const graph_experiment& e, const graph_size& size, std::uint64_t heap,
                         std::uint64_t x, std::string_view allocator) {
  std::string text = fmt::format(
      "quarry graph --backend {} --experiments {} --scale {} --degree {}", setup.backend.name,
      e.name, e.name == "init" ? log2_floor(x) : size.scale, size.degree);
  if (e.name != "init") text += fmt::format(" --batches {}", x);
  text += fmt::format(" --heap {} --repeats {} --allocators {}", heap, o.repeats, allocator);
  return text + (o.check ? " --check" : "");
}

std::string point_summary(const json& result) {
  if (!measured(result)) return result.at("outcome");
  if (result.at("corrupt") != 0) return "WRONG";
  const json &ms = result.at("ms"), &free_ms = result.at("free_ms");
  return free_ms.is_null()
             ? fmt::format("{:.3f}", ms.get<double>())
             : fmt::format("{:.3f} / {:.3f}", ms.get<double>(), free_ms.get<double>());
}

/// Runs one experiment with all allocators. Returns false if a result is missing or wrong.
bool run_experiment(const graph_options& o, const workload_setup& setup, const graph_experiment& e,
                    const graph_size& size, workload_record& record, progress& bar) {
  const std::vector<std::uint64_t> points = graph_points_of(e, o, size, setup.gpu());
  const std::uint64_t heap = o.heap != 0 ? o.heap : default_heap(size, points);
  record.experiment(description(e, size));
  std::vector<table::column> columns = {{"allocator"}};
  for (const std::uint64_t x : points) columns.push_back({grouped(x), right});
  table rows(columns);
  std::string notes;
  bool ok = true;
  std::size_t done = 0;
  for (const std::string_view allocator : setup.allocators) {
    bar.show(static_cast<double>(done++) / static_cast<double>(setup.allocators.size()),
             fmt::format("{}: {}", e.name, allocator));
    std::vector<std::string> cells = {std::string(allocator)};
    measure_in_child({{"workload", "graph"},
                      {"backend", setup.backend.name},
                      {"allocator", allocator},
                      {"experiment", e.name},
                      {"scale", size.scale},
                      {"degree", size.degree},
                      {"points", points},
                      {"heap", heap},
                      {"repeats", o.repeats},
                      {"check", o.check}},
                     points.size(), static_cast<double>(o.timeout), [&](const json& result) {
                       const std::uint64_t x = points[cells.size() - 1];
                       cells.push_back(point_summary(result));
                       ok = ok && (measured(result) || result.at("outcome") == "skipped") &&
                            result.at("corrupt") == 0;
                       const auto note = result.at("note").get<std::string>();
                       if (!note.empty())
                         notes += fmt::format("{}, {}: {}\n", allocator, grouped(x), note);
                       record.point(
                           {{"experiment", "graph-" + std::string(e.name)},
                            {"allocator", allocator},
                            {"series", allocator},
                            {"x", x},
                            {"command", command_text(o, setup, e, size, heap, x, allocator)}},
                           result);
                     });
    rows.add(cells);
  }
  bar.clear();
  if (o.json) return ok;
  fmt::print("\n{}: {}{}{}, ms, by {}\n\n{}{}", e.title, e.time, e.free_time.empty() ? "" : " / ",
             e.free_time, e.x_name, rows.text(), notes);
  std::fflush(stdout);
  return ok;
}

int run_graph(const graph_options& o) {
  const std::vector<const graph_experiment*> chosen = find_graph_experiments(o.experiments);
  const workload_setup setup = resolve_setup(o);
  const graph_size size{static_cast<unsigned>(o.scale != 0  ? o.scale
                                              : setup.gpu() ? 17
                                                            : 10),
                        o.degree != 0 ? o.degree
                        : setup.gpu() ? 16
                                      : 8};
  if (size.edges() > most_batch)
    throw input_error(fmt::format("{} edges exceed the maximum of {}", grouped(size.edges()),
                                  grouped(most_batch)));
  workload_record record(o, setup.environment);
  if (!o.json)
    fmt::print("Dynamic graph of {} vertices on {}, median of {} passes{}\n",
               grouped(size.vertices()), setup.backend.description, o.repeats,
               setup.gpu() ? "" : "; times of the CPU executor do not predict GPU times");
  progress bar;
  bool ok = true;
  for (const graph_experiment* e : chosen)
    ok = run_experiment(o, setup, *e, size, record, bar) && ok;
  if (o.json) record.print(ok);
  return ok ? exit_success : exit_check_failed;
}

}  // namespace

void add_graph(const command_line& app, action& chosen) {
  const auto o = std::make_shared<graph_options>();
  const command_line command = app.add_subcommand(
      "graph", "Measure a dynamic graph that allocates inside kernels, with each allocator");
  command.add_option("--experiments", o->experiments,
                     "Names from the list below, or all (default all)", "E,F,...");
  add_count(command, "--scale", o->scale, "2^N vertices (default 17 on a GPU, 10 on the CPU)", 1,
            24);
  add_count(command, "--degree", o->degree,
            "Initial edges per vertex (default 16 on a GPU, 8 on the CPU)", 1, 4096);
  const auto batches = [](const std::string& text) {
    std::vector<std::uint64_t> counts;
    for (const std::string& word : split(text)) counts.push_back(parse_count(word, 1, most_batch));
    return counts;
  };
  add_parsed(command, "--batches", o->batches, batches,
             "Batch sizes in edges: the x values of all experiments except init", "N,M,...");
  add_workload_options(command, *o);
  std::string list = "Experiments:\n";
  for (const graph_experiment& e : graph_experiments())
    list += fmt::format("  {:<8} {}\n", e.name, e.note);
  command.footer(
      list +
      "\nThe graph is compared with a sequential reference after the first and the last pass, "
      "and with --check after\nevery kernel of the first pass. Exit code 1: the graph was wrong, "
      "or a "
      "pass failed.\n\n"
      "Examples:\n"
      "  quarry graph --experiments update,range --batches 100,1000\n"
      "  quarry graph --backend cuda --scale 20 --out graph.jsonl");
  command.callback([o, &chosen] { chosen = [o] { return run_graph(*o); }; });
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// quarry cluster plot: measured runs as the bars of Figures 4d to 4h in Lyberis et al. (2012).

#include "chart/svg_chart.hpp"
#include "cluster/command.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <memory>

namespace quarry::tool {

namespace {

struct run {
  unsigned workers, schedulers;
  std::string app, network;
  double computation, worker_communication, scheduler_communication;
};

std::vector<run> read_runs(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw input_error("can not read " + file);
  std::vector<run> all;
  std::string text;
  for (unsigned number = 1; std::getline(in, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      const auto line = nlohmann::json::parse(text);
      all.push_back({line.at("workers"), line.at("schedulers"), line.at("app"), line.at("network"),
                     line.at("computation"), line.at("worker_communication"),
                     line.at("scheduler_communication")});
    } catch (const nlohmann::json::exception&) {
      throw input_error(fmt::format("{}:{}: no line of a cluster run with --json", file, number));
    }
  }
  if (all.empty()) throw input_error(file + ": has no runs");
  return all;
}

int draw(const std::string& file, const std::string& output) {
  std::vector<run> runs = read_runs(file);
  for (const run& r : runs)
    if (r.app != runs[0].app) throw input_error(file + ": has runs of more than one application");
  chart c;
  c.title = fmt::format("{} ({})", runs[0].app, runs[0].network);
  c.subtitle = "mean seconds of a worker";
  c.form = chart_form::layers;
  c.x = {"workers (schedulers)", "", axis_scale::category, {}};
  c.y = {"time", "s", axis_scale::linear, {}};
  for (const char* name : {"computation", "worker communication", "scheduler communication"})
    c.curves.push_back({name, "", look_of(static_cast<unsigned>(c.curves.size()), 0), {}});
  for (const run& r : runs) {
    const auto x = static_cast<double>(c.x.categories.size());
    c.x.categories.push_back(fmt::format("{} ({})", r.workers, r.schedulers));
    c.curves[0].dots.push_back({x, r.computation});
    c.curves[1].dots.push_back({x, r.worker_communication});
    c.curves[2].dots.push_back({x, r.scheduler_communication});
  }
  std::ofstream out(output);
  out << chart_svg(c);
  if (!out) throw input_error("can not write " + output);
  return exit_success;
}

}  // namespace

void add_cluster_plot(CLI::App& cluster, action& chosen) {
  auto file = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>("cluster.svg");
  CLI::App* command = cluster.add_subcommand(
      "plot", "Bars from the JSON lines of runs: computation, worker and scheduler communication");
  command->add_option("FILE", *file, "Lines that runs with --json printed")->required();
  command->add_option("-o,--output", *output, "The SVG file to write")->capture_default_str();
  command->callback([=, &chosen] { chosen = [=] { return draw(*file, *output); }; });
}

}  // namespace quarry::tool

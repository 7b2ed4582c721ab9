// SPDX-License-Identifier: Apache-2.0
/// quarry cluster plot: measured runs as the bars of Figures 4d to 4h in Lyberis et al. (2012).

#include "cluster_plot.hpp"

#include "cluster_command.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>

namespace quarry::tool {

namespace {

constexpr const char* colours[] = {"#1b6ca8", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#555555"};

std::string begin_svg(double width, double height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-size=\"12\" "
      "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"20\" text-anchor=\"middle\" font-size=\"14\">{3}</text>\n",
      width, height, width / 2, title);
}

std::string short_number(double v) { return fmt::format("{:.3g}", v); }

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
      throw input_error(
          fmt::format("{}:{}: no line of a cluster run with --json", file, number));
    }
  }
  if (all.empty()) throw input_error(file + ": has no runs");
  return all;
}

int draw(const std::string& file, const std::string& output) {
  std::vector<run> runs = read_runs(file);
  for (const run& r : runs)
    if (r.app != runs[0].app) throw input_error(file + ": has runs of more than one application");
  std::vector<bar> bars;
  for (const run& r : runs)
    bars.push_back({fmt::format("{} ({})", r.workers, r.schedulers),
                    {r.computation, r.worker_communication, r.scheduler_communication}});
  std::ofstream out(output);
  out << bar_plot(fmt::format("{} ({}): mean seconds of a worker, by workers (schedulers)",
                              runs[0].app, runs[0].network),
                  {"computation", "worker communication", "scheduler communication"}, bars);
  if (!out) throw input_error("can not write " + output);
  return all_well;
}

}  // namespace

std::string log_plot(const std::string& title, const std::string& x_axis,
                     const std::vector<curve>& curves) {
  constexpr double width = 760, height = 460, left_edge = 70, right_edge = 560, top = 40, bottom = 410;
  double low_x = 1e300, high_x = 0, low_y = 1e300, high_y = 0;
  const auto is_drawn = [](const std::pair<double, double>& p) { return p.first > 0 && p.second > 0; };
  for (const curve& c : curves)
    for (const auto& p : c.points)
      if (is_drawn(p)) {
        low_x = std::min(low_x, p.first), high_x = std::max(high_x, p.first);
        low_y = std::min(low_y, p.second), high_y = std::max(high_y, p.second);
      }
  low_y = std::pow(10, std::floor(std::log10(low_y)));
  high_y = std::pow(10, std::ceil(std::log10(high_y) + 1e-9));
  high_x = std::max(high_x, 2 * low_x);
  const auto x = [&](double v) {
    return left_edge + (right_edge - left_edge) * std::log(v / low_x) / std::log(high_x / low_x);
  };
  const auto y = [&](double v) {
    return bottom - (bottom - top) * std::log(v / low_y) / std::log(high_y / low_y);
  };
  std::string out = begin_svg(width, height, title);
  for (double v = low_y; v <= high_y * 1.001; v *= 10)
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        left_edge, right_edge, y(v), left_edge - 6, y(v) + 4, short_number(v));
  for (double v = low_x; v <= high_x * 1.001; v *= 2)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(v),
                       bottom + 16, short_number(v));
  out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (left_edge + right_edge) / 2, bottom + 36, x_axis);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const char* colour = colours[i % std::size(colours)];
    std::string points;
    for (const auto& p : curves[i].points)
      if (is_drawn(p)) points += fmt::format("{:.1f},{:.1f} ", x(p.first), y(p.second));
    out += fmt::format(
        "<polyline fill=\"none\" stroke=\"{0}\" stroke-width=\"2\" points=\"{1}\"/>\n"
        "<rect x=\"{2}\" y=\"{3}\" width=\"14\" height=\"4\" fill=\"{0}\"/>\n"
        "<text x=\"{4}\" y=\"{5}\">{6}</text>\n",
        colour, points, right_edge + 14, top + 20.0 * static_cast<double>(i), right_edge + 34,
        top + 6 + 20.0 * static_cast<double>(i), curves[i].name);
  }
  return out + "</svg>\n";
}

std::string bar_plot(const std::string& title, const std::vector<std::string>& layers,
                     const std::vector<bar>& bars) {
  const double step = 56, left_edge = 70, top = 60, bottom = 380;
  const double width = std::max(left_edge + step * static_cast<double>(bars.size()) + 20, 640.0);
  double most = 0;
  for (const bar& b : bars) {
    double sum = 0;
    for (const double v : b.layers) sum += v;
    most = std::max(most, sum);
  }
  if (most <= 0) most = 1;
  std::string out = begin_svg(width, 430, title);
  for (std::size_t i = 0; i < layers.size(); ++i)
    out += fmt::format(
        "<rect x=\"{0}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{1}\"/>\n"
        "<text x=\"{2}\" y=\"45\">{3}</text>\n",
        left_edge + 190.0 * static_cast<double>(i), colours[i % std::size(colours)],
        left_edge + 16 + 190.0 * static_cast<double>(i), layers[i]);
  for (int i = 0; i <= 4; ++i) {
    const double at = bottom - (bottom - top) * i / 4;
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        left_edge, width - 10, at, left_edge - 6, at + 4, short_number(most * i / 4));
  }
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double x = left_edge + step * static_cast<double>(i) + 8;
    double base = bottom;
    for (std::size_t l = 0; l < bars[i].layers.size(); ++l) {
      const double size = (bottom - top) * bars[i].layers[l] / most;
      base -= size;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"40\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, base,
          size, colours[l % std::size(colours)]);
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x + 20,
                       bottom + 18, bars[i].label);
  }
  return out + "</svg>\n";
}

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

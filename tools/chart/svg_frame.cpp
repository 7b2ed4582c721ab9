// SPDX-License-Identifier: Apache-2.0
#include "chart/svg_frame.hpp"

#include "chart/svg_marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quarry::tool {
namespace {

constexpr double label_gap = 26, sample_width = 34;
constexpr double letter_width = 6.4;  // mean, for a font size of 12

double text_width(std::string_view text) {
  return letter_width * static_cast<double>(std::count_if(
                            text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// Moves the y coordinates apart by at least a row, inside the frame if they fit.
std::vector<double> without_overlap(std::vector<double> wanted, const svg_frame& f) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  double free = f.top;
  for (const std::size_t i : order) free = (wanted[i] = std::max(wanted[i], free)) + svg_row;
  free = f.bottom;
  std::for_each(order.rbegin(), order.rend(),
                [&](std::size_t i) { free = (wanted[i] = std::min(wanted[i], free)) - svg_row; });
  return wanted;
}

}  // namespace

double frame_height(const chart& c) {
  return std::max(350.0, svg_row * static_cast<double>(c.curves.size()));
}

double picture_width(const chart& c, double least) {
  return std::max({least, 32 + 1.3 * text_width(c.title), 32 + text_width(c.subtitle)});
}

double label_width(const chart& c) {
  double longest = 0;
  for (const chart_curve& curve : c.curves) longest = std::max(longest, text_width(curve.name));
  return label_gap + sample_width + longest + 12;
}

std::string svg_heading(const chart& c) {
  return fmt::format(
      "<g class=\"heading\">\n"
      "<text x=\"16\" y=\"22\" font-size=\"15\" "
      "font-weight=\"bold\">{}</text>\n"
      "<text x=\"16\" y=\"40\" fill=\"#555\">{}</text>\n</g>\n",
      xml_escaped(c.title), xml_escaped(c.subtitle));
}

std::string svg_y_axis(const svg_frame& f, const chart_scale& scale, const chart_axis& axis) {
  constexpr unsigned most = 9;
  std::string out;
  const auto add = [&](const chart_tick& t, std::string_view attributes) {
    out += fmt::format(
        "<g {}transform=\"translate(0 {:.1f})\"><line class=\"grid\" "
        "x1=\"{:.1f}\" "
        "x2=\"{:.1f}\" stroke=\"#e2e2e2\"/><text x=\"{:.1f}\" y=\"4\" "
        "text-anchor=\"end\">{}</text></g>\n",
        attributes, f.y(scale.position(t.value)), f.left, f.right, f.left - 7, xml_escaped(t.text));
  };
  for (const chart_tick& t : scale.ticks(most)) add(t, "class=\"tick\" ");
  for (const chart_tick& t : scale.minor_ticks(most))
    add(t, "class=\"tick minor\" display=\"none\" ");
  return out + fmt::format(
                   "<text class=\"axis\" x=\"18\" y=\"{0:.1f}\" "
                   "text-anchor=\"middle\" "
                   "transform=\"rotate(-90 18 {0:.1f})\">{1}</text>\n",
                   (f.top + f.bottom) / 2, xml_escaped(axis.title()));
}

svg_axis_text svg_x_axis(const svg_frame& f, const chart_scale& scale, const chart_axis& axis,
                         const std::vector<chart_tick>& ticks) {
  double longest = 0;
  for (const chart_tick& t : ticks) longest = std::max(longest, text_width(t.text));
  const bool rotated = (longest + 6) * static_cast<double>(ticks.size()) > f.right - f.left;
  std::string out = fmt::format(
      "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" "
      "y2=\"{2:.1f}\" stroke=\"#888\"/>\n",
      f.left, f.right, f.bottom);
  for (const chart_tick& t : ticks)
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" "
        "stroke=\"#888\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" {4}>{5}</text>\n",
        f.x(scale.position(t.value)), f.bottom, f.bottom + 4, f.bottom + 18,
        rotated ? fmt::format("text-anchor=\"end\" transform=\"rotate(-30 {:.1f} {:.1f})\"",
                              f.x(scale.position(t.value)), f.bottom + 14)
                : "text-anchor=\"middle\"",
        xml_escaped(t.text));
  const double below = rotated ? 24 + longest / 2 : 22;
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                     (f.left + f.right) / 2, f.bottom + below + 16, xml_escaped(axis.title()));
  return {out, below + 30};
}

std::vector<std::string> svg_labels(const chart& c, const svg_frame& f,
                                    const std::vector<double>& preferred) {
  const std::vector<double> rows = without_overlap(preferred, f);
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < c.curves.size(); ++i)
    labels.push_back(
        fmt::format("<g class=\"label\" transform=\"translate({:.1f} {:.1f})\">\n{}<text "
                    "x=\"{}\" y=\"4\" fill=\"#222\">{}</text></g>\n",
                    f.right + label_gap, rows[i], svg_sample(c.curves[i].style, c.form, 0, 0),
                    sample_width, xml_escaped(c.curves[i].name)));
  return labels;
}

std::string svg_curve_start(const chart_curve& curve, std::string_view attributes) {
  return fmt::format("<g class=\"curve c{}\" color=\"{}\" data-name=\"{}\"{}>\n",
                     curve.style.colour, light_colours[curve.style.colour], xml_escaped(curve.name),
                     attributes);
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// Scales, ticks and styles of charts, and the SVG that they are drawn as.

#include "chart/scale.hpp"
#include "chart/svg_chart.hpp"
#include "chart/svg_frame.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace chart_test {
namespace {

using namespace quarry::tool;

const chart_axis log_bytes{"size", "B", axis_scale::logarithmic, {}};
const chart_axis log_time{"time", "ms", axis_scale::logarithmic, {}};
const chart_axis plain{"share", "", axis_scale::linear, {}};

std::vector<std::string> texts(const std::vector<chart_tick>& ticks) {
  std::vector<std::string> all;
  for (const chart_tick& t : ticks) all.push_back(t.text);
  return all;
}

using list = std::vector<std::string>;

std::size_t count(const std::string& text, const std::string& what) {
  const std::regex pattern(what);
  return static_cast<std::size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), {}));
}

TEST(ChartScale, MapsValuesToPositionsBetweenZeroAndOne) {
  const chart_scale logarithmic(log_bytes, {16, 4096, 256}, false);
  EXPECT_DOUBLE_EQ(logarithmic.position(16), 0);
  EXPECT_DOUBLE_EQ(logarithmic.position(256), 0.5);
  EXPECT_DOUBLE_EQ(logarithmic.position(4096), 1);
  const chart_scale linear(plain, {5, 10}, false);
  EXPECT_DOUBLE_EQ(linear.position(7.5), 0.5);
  const chart_scale with_margin(plain, {5, 10}, true);
  EXPECT_DOUBLE_EQ(with_margin.position(0), 0);
  EXPECT_LT(with_margin.position(10), 1);
}

TEST(ChartScale, DoesNotShowZeroOnALogarithmicAxis) {
  EXPECT_FALSE(chart_scale::shows(axis_scale::logarithmic, 0));
  EXPECT_FALSE(chart_scale::shows(axis_scale::linear, missing));
  EXPECT_TRUE(chart_scale::shows(axis_scale::linear, 0));
}

TEST(ChartScale, TicksAreRoundNumbersOrMeasuredValues) {
  EXPECT_EQ(texts(chart_scale(log_time, {0.02, 3000}, false).ticks(9)),
            (list{"0.1", "1", "10", "100", "1,000"}));
  EXPECT_EQ(texts(chart_scale(log_time, {1.1, 30}, false).ticks(9)), (list{"2", "5", "10", "20"}));
  EXPECT_EQ(texts(chart_scale(plain, {0, 1}, false).ticks(5)),
            (list{"0", "0.2", "0.4", "0.6", "0.8", "1"}));
  EXPECT_EQ(texts(chart_scale(log_bytes, {16, 64, 1024, 8192}, false).measured_ticks(12)),
            (list{"16", "64", "1 KiB", "8 KiB"}));
  const chart_axis words{"", "", axis_scale::category, {"one", "two", "three"}};
  EXPECT_EQ(texts(chart_scale(words, {}, false).measured_ticks(12)), (list{"one", "two", "three"}));
}

TEST(ChartScale, NumbersHaveThreeSignificantDigits) {
  EXPECT_EQ(short_number(0.032416), "0.0324");
  EXPECT_EQ(short_number(5.4), "5.4");
  EXPECT_EQ(short_number(12345.67), "12,350");
  EXPECT_EQ(short_number(69451), "69,451");
  EXPECT_EQ(short_number(1.5e-7), "1.50e-07");
  EXPECT_EQ(short_number(missing), "–");
  EXPECT_EQ(tick_text(1 << 20, {"threads", "", axis_scale::logarithmic, {}}), "2²⁰");
  EXPECT_EQ(tick_text(1e-5, log_time), "10⁻⁵");
  EXPECT_EQ(tick_text(100000, plain), "100,000");
}

TEST(CurveStyle, StylesOfTwentySixCurvesDiffer) {
  std::set<std::tuple<unsigned, unsigned, unsigned>> seen;
  for (unsigned family = 0; family < 13; ++family)
    for (unsigned variant = 0; variant < 6; ++variant) {
      const curve_style style = style_of(family, variant);
      EXPECT_LT(style.colour, chart_colours);
      EXPECT_LT(style.marker, chart_markers);
      EXPECT_LT(style.dash, std::size(chart_dashes));
      if (variant < 2) {
        EXPECT_TRUE(seen.insert({style.colour, style.marker, style.dash}).second) << family;
      }
    }
}

chart lines() {
  chart c;
  c.title = "a < b & \"c\"";
  c.x = log_bytes;
  c.y = log_time;
  c.curves = {{"first", "", style_of(0, 0), {{16, 1, 0.5, 2}, {64, 2}, {256, 3}}},
              {"second", "", style_of(1, 1), {{16, 5}, {64, missing}, {256, 7}}}};
  return c;
}

TEST(SvgChart, DrawsLinesMarkersAndLabels) {
  const std::string svg = chart_svg(lines());
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_EQ(count(svg, "<polyline"), 1u);  // a gap leaves the second no line
  EXPECT_EQ(count(svg, "<path d=\"[^\"]+\" transform=\"scale"),
            5u + 2u);  // points, and samples in the legend
  EXPECT_NE(svg.find(">first<"), std::string::npos);
  EXPECT_NE(svg.find(">time [ms]<"), std::string::npos);
  EXPECT_NE(svg.find(">256<"), std::string::npos);
}

TEST(SvgChart, NamesThePartsThatTheReportPageUses) {
  const std::string svg = chart_svg(lines());
  EXPECT_EQ(count(svg,
                  "<g class=\"curve c[01]\" color=\"#[0-9a-f]{6}\" "
                  "data-name=\"(first|second)\">"),
            2u);
  EXPECT_EQ(count(svg, "class=\"point\" data-index=\"[0-2]\""), 5u);  // one of six has no value
  EXPECT_EQ(count(svg, "data-form=\"lines\" data-frame=\"[0-9. ]+\" data-y=\"log\""), 1u);
  EXPECT_EQ(count(svg, "<g class=\"label\""), 2u);
  EXPECT_GE(count(svg, "<g class=\"tick\""), 2u);
  EXPECT_EQ(count(svg, "<g class=\"tick minor\" display=\"none\""), count(svg, "tick minor"));
}

TEST(ChartScale, MinorTicksLieBetweenTheTicks) {
  const chart_scale scale(log_time, {0.95, 105}, false);
  EXPECT_EQ(texts(scale.ticks(9)), (list{"1", "10", "100"}));
  EXPECT_EQ(texts(scale.minor_ticks(9)).size(), 2u * 9u);  // 1.5, 2, …, 9 and ten times these
}

TEST(SvgChart, MarksUnsoundAndLostPoints) {
  chart c = lines();
  EXPECT_EQ(count(chart_svg(c), "#d00000"), 0u);
  c.curves[0].points[1].state = point_state::unsound;
  EXPECT_EQ(count(chart_svg(c), "<circle[^>]*#d00000"), 1u);
  c.curves[1].points[1].state = point_state::lost;
  EXPECT_EQ(count(chart_svg(c), "<path[^>]*#d00000"), 1u);
}

TEST(SvgChart, BarsAreHorizontalForASingleXValue) {
  chart c;
  c.y = log_time;
  c.curves = {{"slow", "", style_of(0, 0), {{0, 9}}},
              {"gone", "", style_of(1, 0), {{0, missing, missing, missing, point_state::lost}}},
              {"fast", "", style_of(2, 0), {{0, 1}}}};
  const std::string svg = chart_svg(c);
  EXPECT_EQ(count(svg, "<rect"), 3u);  // the background and two bars
  EXPECT_LT(svg.find(">fast<"), svg.find(">slow<"));
  EXPECT_LT(svg.find(">slow<"), svg.find(">gone<"));
  EXPECT_NE(svg.find(">lost<"), std::string::npos);
}

TEST(SvgChart, LayersAreStacked) {
  chart c;
  c.form = chart_form::layers;
  c.x = {"workers", "", axis_scale::category, {"1", "2"}};
  c.y = plain;
  c.curves = {{"below", "", style_of(0, 0), {{0, 3}, {1, 1}}},
              {"above", "", style_of(1, 0), {{0, 1}, {1, 1}}}};
  const std::string svg = chart_svg(c);
  const std::regex bar(
      "<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"[0-9.]+\" height=\"([0-9.]+)\" "
      "fill=\"currentColor\"");
  std::vector<std::pair<double, double>> first_group;  // top and height
  for (std::sregex_iterator at(svg.begin(), svg.end(), bar), end; at != end; ++at)
    first_group.push_back({std::stod((*at)[2]), std::stod((*at)[3])});
  ASSERT_GE(first_group.size(), 4u);  // and the legend's
  EXPECT_NEAR(first_group[2].first + first_group[2].second, first_group[0].first, 0.2);
  EXPECT_NEAR(first_group[0].second, 3 * first_group[2].second, 0.3);
}

TEST(SvgChart, DrawsChartsWithoutValues) {
  chart c;
  EXPECT_NE(chart_svg(c).find("</svg>"), std::string::npos);
  c = lines();
  for (chart_curve& curve : c.curves)
    for (chart_point& d : curve.points) d = {d.x, missing, missing, missing, point_state::lost};
  EXPECT_EQ(chart_svg(c).find("nan"), std::string::npos);
  c.form = chart_form::bars;
  EXPECT_EQ(chart_svg(c).find("nan"), std::string::npos);
  EXPECT_EQ(count(chart_svg({lines(), lines()}), "class=\"chart\""), 2u);
}

}  // namespace
}  // namespace chart_test

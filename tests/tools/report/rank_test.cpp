// SPDX-License-Identifier: Apache-2.0
/// Which allocator for which work: who takes part, who is best, and by how much.

#include "report/rank.hpp"
#include "report/grid.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace {

using namespace quarry::tool;
using namespace quarry::tool::report;

chart_curve curve(std::string name, const std::vector<double>& values) {
  chart_curve c{name, name, {}, {}};
  for (std::size_t i = 0; i < values.size(); ++i)
    c.dots.push_back({static_cast<double>(i), values[i], nothing, nothing, dot_state::good});
  return c;
}

view view_of(std::vector<chart_curve> curves, direction better = direction::less) {
  view v;
  v.field = "ms";
  v.better = better;
  v.picture.curves = std::move(curves);
  return v;
}

std::vector<std::string> names(const std::vector<standing>& list) {
  std::vector<std::string> all;
  for (const standing& s : list) all.push_back(s.series);
  return all;
}

using list = std::vector<std::string>;

TEST(ReportRank, SlowdownIsTheGeometricMeanToTheBest) {
  const ranking r = rank(view_of({curve("b", {4, 4}), curve("a", {1, 4}), curve("c", {8, 32})}),
                         field_of::everyone);
  EXPECT_EQ(names(r.whole), (list{"a", "b", "c"}));
  EXPECT_DOUBLE_EQ(r.whole[0].slowdown, 1);
  EXPECT_DOUBLE_EQ(r.whole[1].slowdown, 2);  // of 4 and 1
  EXPECT_DOUBLE_EQ(r.whole[2].slowdown, 8);
  EXPECT_EQ(r.of, 2u);
}

TEST(ReportRank, MoreCanBeBetter) {
  const ranking r = rank(view_of({curve("low", {0.2}), curve("high", {0.8})}, direction::more),
                         field_of::everyone);
  EXPECT_EQ(names(r.whole), (list{"high", "low"}));
  EXPECT_DOUBLE_EQ(r.whole[1].slowdown, 4);
}

TEST(ReportRank, WhatIsNotSoundIsNotBest) {
  for (const dot_state state : {dot_state::unsound, dot_state::lost}) {
    chart_curve quick = curve("quick", {1, 1});
    quick.dots[1].state = state;
    const ranking r =
        rank(view_of({quick, curve("slow", {5, 5}), curve("slower", {6, 6})}), field_of::everyone);
    EXPECT_EQ(names(r.whole), (list{"slow", "slower"}));
    EXPECT_EQ(r.unsound, list{"quick"});
  }
}

TEST(ReportRank, RefusedRequestsAreLessWork) {
  chart_curve quick = curve("quick", {1, 1});
  quick.dots[1].state = dot_state::refused;
  chart_curve slow = curve("slow", {5, 5});
  ranking r = rank(view_of({quick, slow}), field_of::everyone);
  EXPECT_EQ(names(r.whole), list{"slow"});
  EXPECT_EQ(names(r.in_part), list{"quick"});
  slow.dots[1].state = dot_state::refused;  // now it is in the nature of the work
  r = rank(view_of({quick, slow}), field_of::everyone);
  EXPECT_EQ(names(r.whole), (list{"quick", "slow"}));
}

TEST(ReportRank, WhereMoreIsBetterRefusalsAreInTheMeasure) {
  chart_curve full = curve("full", {0.9});
  full.dots[0].state = dot_state::refused;
  const ranking r =
      rank(view_of({full, curve("half", {0.5})}, direction::more), field_of::everyone);
  EXPECT_EQ(names(r.whole), (list{"full", "half"}));
}

TEST(ReportRank, NothingIsManyTimesWorseThanZero) {
  const view zero = view_of({curve("none", {0}), curve("some", {5}), curve("many", {9})});
  EXPECT_TRUE(rank(zero, field_of::everyone).whole.empty());
}

TEST(ReportRank, WhoDidOnlyTheEasyPartIsToldApart) {
  const ranking r = rank(view_of({curve("a", {2, 2}), curve("b", {4, 4}), curve("part", {1})}),
                         field_of::everyone);
  EXPECT_EQ(names(r.whole), (list{"a", "b"}));
  ASSERT_EQ(names(r.in_part), list{"part"});
  EXPECT_DOUBLE_EQ(r.in_part[0].slowdown, 0.5);
  EXPECT_EQ(r.in_part[0].at, 1u);
}

TEST(ReportRank, AnXThatFewHaveIsNotCompared) {
  const ranking r =
      rank(view_of({curve("a", {2}), curve("b", {4}), curve("c", {1, 900})}), field_of::everyone);
  EXPECT_EQ(r.of, 1u);
  EXPECT_EQ(names(r.whole), (list{"c", "a", "b"}));
}

TEST(ReportRank, GeneralMeansFreeingSingleBlocks) {
  const view v = view_of({curve("AtomicMalloc", {1}), curve("AWMalloc", {1}), curve("Quarry", {2}),
                          curve("SomebodyElses", {3})});
  EXPECT_EQ(names(rank(v, field_of::everyone).whole),
            (list{"AtomicMalloc", "AWMalloc", "Quarry", "SomebodyElses"}));
  EXPECT_EQ(names(rank(v, field_of::general).whole), (list{"Quarry", "SomebodyElses"}));
}

TEST(ReportRank, CurvesOfNoAllocatorAreNotCompared) {
  chart_curve tree = curve("a tree", {1}), sum = curve("prefix sum", {1});
  tree.owner.clear();
  sum.owner = "baseline";
  EXPECT_TRUE(rank(view_of({tree, sum}), field_of::everyone).whole.empty());
}

TEST(ReportRank, TheSummaryIsAMeanOverExperiments) {
  document d;
  d.backends.resize(1);
  const auto add = [&](std::vector<chart_curve> curves) {
    experiment e;
    e.figures.resize(1);
    e.figures[0].views = {view_of(std::move(curves))};
    d.experiments.push_back(e);
  };
  chart_curve broken = curve("broken", {1});
  broken.dots[0].state = dot_state::unsound;
  add({curve("a", {1}), curve("b", {2})});
  add({curve("a", {8}), curve("b", {1}), broken});
  add({curve("a", {1}), curve("b", {2}), curve("rare", {1})});
  const std::vector<summary> all = summarise(d, rank_all(d, field_of::everyone));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].experiments, 3u);
  ASSERT_EQ(all[0].often.size(), 2u);
  EXPECT_EQ(all[0].often[0].allocator, "b");
  EXPECT_NEAR(all[0].often[0].slowdown, std::cbrt(4.0), 1e-12);
  EXPECT_EQ(all[0].often[0].best, 1u);
  EXPECT_NEAR(all[0].often[1].slowdown, 2, 1e-12);
  ASSERT_EQ(all[0].seldom.size(), 2u);
  EXPECT_EQ(all[0].seldom[0].allocator, "rare");
  EXPECT_EQ(all[0].seldom[1].unsound, 1u);
  EXPECT_EQ(mean_text(all[0].seldom[1]), "–");
}

TEST(ReportRank, SlowdownsAreReadable) {
  EXPECT_EQ(slowdown_text(1), "equal");
  EXPECT_EQ(slowdown_text(1.012), "+1.2\u00a0%");
  EXPECT_EQ(slowdown_text(1.5), "+50\u00a0%");
  EXPECT_EQ(slowdown_text(3.44), "3.4\u00a0×");
  EXPECT_EQ(slowdown_text(12345.6), "12,346\u00a0×");
}

TEST(ReportGrid, CommandsThatDifferInTheAllocatorAreMerged) {
  EXPECT_EQ(merged({{"A", {"q --allocators A --quick"}},
                    {"B", {"q --allocators B --quick", "q --allocators B"}},
                    {"B again", {"q --allocators B"}},
                    {"C", {"other"}}}),
            (list{"q --allocators A,B --quick", "q --allocators B", "other"}));
}

}  // namespace

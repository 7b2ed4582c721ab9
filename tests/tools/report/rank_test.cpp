// SPDX-License-Identifier: Apache-2.0
/// Rankings: which curves are compared, which is first, and the slowdowns of the others.

#include "report/rank.hpp"
#include "report/grid.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rank_test {
namespace {

using namespace quarry::tool;
using namespace quarry::tool::report;

chart_curve curve(std::string name, const std::vector<double>& values) {
  chart_curve c{name, name, {}, {}};
  for (std::size_t i = 0; i < values.size(); ++i)
    c.points.push_back({static_cast<double>(i), values[i], missing, missing, point_state::good});
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

TEST(ReportRank, SlowdownIsTheGeometricMeanOfRatiosToTheFirst) {
  const ranking r = rank(view_of({curve("b", {4, 4}), curve("a", {1, 4}), curve("c", {8, 32})}),
                         compared_allocators::all);
  EXPECT_EQ(names(r.complete), (list{"a", "b", "c"}));
  EXPECT_DOUBLE_EQ(r.complete[0].slowdown, 1);
  EXPECT_DOUBLE_EQ(r.complete[1].slowdown, 2);  // of 4 and 1
  EXPECT_DOUBLE_EQ(r.complete[2].slowdown, 8);
  EXPECT_EQ(r.of, 2u);
}

TEST(ReportRank, LargerValuesRankFirstWhereMoreIsBetter) {
  const ranking r = rank(view_of({curve("low", {0.2}), curve("high", {0.8})}, direction::more),
                         compared_allocators::all);
  EXPECT_EQ(names(r.complete), (list{"high", "low"}));
  EXPECT_DOUBLE_EQ(r.complete[1].slowdown, 4);
}

TEST(ReportRank, CountsOfTheExecutorAreRankedAndItsTimesAreNot) {
  view times = view_of({curve("Quarry", {3}), curve("ScatterAlloc", {1})});
  times.picture.y.unit = "ms";
  view counts =
      view_of({curve("Quarry", {0.5}), curve("ScatterAlloc", {1}), curve("CudaMalloc", {0})});
  counts.field = "atomics_per_call";
  for (const std::string kind : {"cpu", "cuda"}) {
    document d;
    d.backends = {{kind, "", kind, kind}};
    d.experiments.resize(1);
    d.experiments[0].figures.resize(1);
    d.experiments[0].figures[0].views = {times, counts};
    const std::vector<ranking> all = rank_all(d, compared_allocators::all);
    ASSERT_EQ(all.size(), kind == "cpu" ? 1u : 2u);
    EXPECT_EQ(names(all.back().complete), (list{"Quarry", "ScatterAlloc"}))
        << "the executor cannot count the work inside CudaMalloc";
    EXPECT_EQ(all.back().view, 1u);
    EXPECT_EQ(all.back().main, kind == "cpu");
  }
}

TEST(ReportRank, CurvesWithFaultsAreNotRanked) {
  for (const point_state state : {point_state::unsound, point_state::lost}) {
    chart_curve quick = curve("quick", {1, 1});
    quick.points[1].state = state;
    const ranking r = rank(view_of({quick, curve("slow", {5, 5}), curve("slower", {6, 6})}),
                           compared_allocators::all);
    EXPECT_EQ(names(r.complete), (list{"slow", "slower"}));
    EXPECT_EQ(r.unsound, list{"quick"});
  }
}

TEST(ReportRank, PointsWithFailedAllocationsDoNotCountIfAnotherCurveHasNone) {
  chart_curve quick = curve("quick", {1, 1});
  quick.points[1].state = point_state::failed;
  chart_curve slow = curve("slow", {5, 5});
  ranking r = rank(view_of({quick, slow}), compared_allocators::all);
  EXPECT_EQ(names(r.complete), list{"slow"});
  EXPECT_EQ(names(r.partial), list{"quick"});
  slow.points[1].state = point_state::failed;  // now no curve is free of failed allocations
  r = rank(view_of({quick, slow}), compared_allocators::all);
  EXPECT_EQ(names(r.complete), (list{"quick", "slow"}));
}

TEST(ReportRank, PointsWithFailedAllocationsCountWhereMoreIsBetter) {
  chart_curve full = curve("full", {0.9});
  full.points[0].state = point_state::failed;
  const ranking r =
      rank(view_of({full, curve("half", {0.5})}, direction::more), compared_allocators::all);
  EXPECT_EQ(names(r.complete), (list{"full", "half"}));
}

TEST(ReportRank, MeasuresWithZerosAreNotRankedWhereLessIsBetter) {
  const view zero = view_of({curve("none", {0}), curve("some", {5}), curve("many", {9})});
  EXPECT_TRUE(rank(zero, compared_allocators::all).complete.empty());
}

TEST(ReportRank, CurvesThatLackAnXValueArePartial) {
  const ranking r = rank(view_of({curve("a", {2, 2}), curve("b", {4, 4}), curve("part", {1})}),
                         compared_allocators::all);
  EXPECT_EQ(names(r.complete), (list{"a", "b"}));
  ASSERT_EQ(names(r.partial), list{"part"});
  EXPECT_DOUBLE_EQ(r.partial[0].slowdown, 0.5);
  EXPECT_EQ(r.partial[0].at, 1u);
}

TEST(ReportRank, XValuesOfLessThanHalfOfTheCurvesDoNotCount) {
  const ranking r = rank(view_of({curve("a", {2}), curve("b", {4}), curve("c", {1, 900})}),
                         compared_allocators::all);
  EXPECT_EQ(r.of, 1u);
  EXPECT_EQ(names(r.complete), (list{"c", "a", "b"}));
}

TEST(ReportRank, GeneralPurposeAllocatorsFreeSingleBlocks) {
  const view v = view_of({curve("AtomicMalloc", {1}), curve("AWMalloc", {1}), curve("Quarry", {2}),
                          curve("Unknown", {3})});
  EXPECT_EQ(names(rank(v, compared_allocators::all).complete),
            (list{"AtomicMalloc", "AWMalloc", "Quarry", "Unknown"}));
  EXPECT_EQ(names(rank(v, compared_allocators::general).complete), (list{"Quarry", "Unknown"}));
}

TEST(ReportRank, CurvesWithoutAnAllocatorAreNotRanked) {
  chart_curve tree = curve("a tree", {1}), sum = curve("prefix sum", {1});
  tree.owner.clear();
  sum.owner = "baseline";
  EXPECT_TRUE(rank(view_of({tree, sum}), compared_allocators::all).complete.empty());
}

TEST(ReportRank, TheSummaryIsTheGeometricMeanOverExperiments) {
  document d;
  d.backends.resize(1);
  const auto add = [&](std::vector<chart_curve> curves) {
    experiment e;
    e.figures.resize(1);
    e.figures[0].views = {view_of(std::move(curves))};
    d.experiments.push_back(e);
  };
  chart_curve broken = curve("broken", {1});
  broken.points[0].state = point_state::unsound;
  add({curve("a", {1}), curve("b", {2})});
  add({curve("a", {8}), curve("b", {1}), broken});
  add({curve("a", {1}), curve("b", {2}), curve("rare", {1})});
  const std::vector<summary> all = summarise(d, rank_all(d, compared_allocators::all));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].experiments, 3u);
  ASSERT_EQ(all[0].in_most.size(), 2u);
  EXPECT_EQ(all[0].in_most[0].allocator, "b");
  EXPECT_NEAR(all[0].in_most[0].slowdown, std::cbrt(4.0), 1e-12);
  EXPECT_EQ(all[0].in_most[0].best, 1u);
  EXPECT_NEAR(all[0].in_most[1].slowdown, 2, 1e-12);
  ASSERT_EQ(all[0].in_few.size(), 2u);
  EXPECT_EQ(all[0].in_few[0].allocator, "rare");
  EXPECT_EQ(all[0].in_few[1].unsound, 1u);
  EXPECT_EQ(mean_text(all[0].in_few[1]), "–");
}

TEST(ReportRank, SlowdownsAreFormattedAsPercentOrFactor) {
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
}  // namespace rank_test

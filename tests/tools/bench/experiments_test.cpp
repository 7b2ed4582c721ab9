// SPDX-License-Identifier: Apache-2.0
/// The list of experiments, the plan of a run, the records, and the tables.

#include "bench/child.hpp"
#include "bench/claims.hpp"
#include "bench/experiments/experiment.hpp"
#include "bench/kernels/variants.hpp"
#include "bench/plan.hpp"
#include "bench/points.hpp"
#include "bench/table.hpp"
#include "common/catalogue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace quarry::tool::experiments_test {
namespace {

bench_scale scale_of(bool gpu, bool quick) {
  bench_scale s;
  s.gpu = gpu;
  s.quick = quick;
  s.lanes = std::uint64_t{1} << ((gpu ? 20 : 14) - (quick ? 4 : 0));
  s.heap = gpu ? (16_GiB).value() : quick ? (64_MiB).value() : (512_MiB).value();
  return s;
}
std::vector<bench_scale> all_scales() {
  return {scale_of(true, false), scale_of(true, true), scale_of(false, false),
          scale_of(false, true)};
}
std::vector<bench_measurement> list_of(const char* id,
                                       const bench_scale& scale = scale_of(true, false)) {
  return measurements_of(find_experiment(id), scale);
}
std::vector<std::string_view> all_subjects() {
  std::vector<std::string_view> names = allocator_names();
  names.push_back("baseline");
  return names;
}

TEST(Experiments, HaveDistinctNames) {
  std::set<std::string_view> names;
  for (const experiment& e : experiments()) {
    EXPECT_TRUE(names.insert(e.id).second) << e.id;
    EXPECT_FALSE(e.title.empty()) << e.id;
    EXPECT_FALSE(e.y.empty()) << e.id;
    EXPECT_NE(e.id, "all");
  }
  for (const experiment& e : experiments())
    EXPECT_TRUE(e.group == e.id || !names.contains(e.group)) << e.group;
}

TEST(Experiments, AreWellFormedAtEveryScale) {
  const std::set<std::string_view> scales = {"log", "linear", "category"};
  const std::set<std::string_view> forms = {"lines", "bars", "table"};
  for (const bench_scale& scale : all_scales())
    for (const experiment& e : experiments()) {
      EXPECT_TRUE(scales.contains(e.x.scale)) << e.id;
      EXPECT_TRUE(forms.contains(e.form)) << e.id;
      for (const experiment_y& y : e.y) EXPECT_TRUE(scales.contains(y.scale)) << e.id;
      if (e.from_ledger()) continue;
      const std::vector<bench_measurement> all = measurements_of(e, scale);
      ASSERT_FALSE(all.empty()) << e.id;
      std::map<std::string, double> last;
      std::set<std::string> labels;
      for (const bench_measurement& c : all) {
        EXPECT_EQ(c.experiment, e.id);
        EXPECT_FALSE(c.x_label.empty()) << e.id;
        EXPECT_TRUE(labels.insert(c.variant + "/" + c.x_label).second) << e.id << ": " << c.x_label;
        EXPECT_GT(c.lanes, 0u) << e.id;
        EXPECT_LE(c.lanes, std::uint64_t{1} << 20) << e.id;
        EXPECT_GT(c.sizes.least, 0u) << e.id;
        EXPECT_LE(c.heap_bytes, scale.heap) << e.id;
        EXPECT_EQ(c.threads_per_block % 32, 0u) << e.id;
        EXPECT_LE(c.threads_per_block, 1024u) << e.id;
        const auto [at, first] = last.try_emplace(c.variant, c.x);
        EXPECT_TRUE(first || at->second < c.x) << e.id << ": x grows";
        EXPECT_TRUE(c.x > 0 || e.x.scale != "log") << e.id;
        at->second = c.x;
      }
    }
}

TEST(Experiments, RequestNoMoreThanTheHeapHolds) {
  for (const bench_scale& scale : all_scales())
    for (const experiment& e : experiments())
      for (const bench_measurement& c : measurements_of(e, scale)) {
        if (c.workload == bench_workload::fill || c.workload >= bench_workload::steady_state)
          continue;
        const std::uint64_t heap = c.heap_bytes == 0 ? scale.heap : c.heap_bytes;
        const double mean = static_cast<double>(c.sizes.least + c.sizes.most) / 2;
        double asked = c.loads.empty() ? mean * static_cast<double>(c.batch * c.lanes) : 0;
        for (const bench_load& l : c.loads)
          asked = std::max(asked, static_cast<double>(l.batch * c.lanes * l.size));
        EXPECT_LE(asked, 0.75 * static_cast<double>(heap)) << e.id << ", " << c.x_label;
      }
}

TEST(Experiments, NameSubjectsThatExist) {
  std::set<std::string> known = {"prefix sum"};
  const auto add = [&](auto entry) { known.insert(std::string(entry.name)); };
  for_each_allocator(add);
  for_each_allocator(add, bench_variants{});
  for (const experiment& e : experiments()) {
    const std::vector<bench_subject> subjects = subjects_of(e, all_subjects());
    EXPECT_FALSE(subjects.empty()) << e.id;
    std::set<std::string> series;
    for (const bench_subject& s : subjects) {
      EXPECT_TRUE(known.contains(s.runner)) << e.id << ": " << s.runner;
      EXPECT_TRUE(series.insert(s.series).second) << e.id << ": " << s.series;
      const auto names = all_subjects();
      EXPECT_NE(std::find(names.begin(), names.end(), s.allocator), names.end()) << s.allocator;
    }
    EXPECT_EQ(subjects_of(e, {}).size(), 0u);
  }
  EXPECT_EQ(subjects_of(find_experiment("xmalloc-6"), {"XMalloc"}).size(), 8u);
  EXPECT_EQ(subjects_of(find_experiment("fdgmalloc-4"), {"FDGMalloc", "Quarry"}).size(), 4u);
}

TEST(Experiments, HaveTheSettingsOfThePapers) {
  EXPECT_EQ(list_of("xmalloc-2").size(), 6u);
  EXPECT_EQ(list_of("xmalloc-2").front().lanes_per_warp, 1u);
  EXPECT_EQ(list_of("xmalloc-2").back().lanes_per_warp, 32u);
  EXPECT_EQ(list_of("xmalloc-2").back().lanes, 1u << 20);
  EXPECT_EQ(list_of("xmalloc-2").back().heap_bytes, 500u << 20);
  EXPECT_EQ(list_of("xmalloc-2-quarter").back().occupied, 25u);
  EXPECT_EQ(list_of("fdgmalloc-4").front().lanes, 64u);
  EXPECT_EQ(list_of("fdgmalloc-4").front().batch, 16u);
  EXPECT_EQ(list_of("fdgmalloc-4").back().sizes.most, 8192u);
  EXPECT_EQ(list_of("fdgmalloc-5").size(), 17u);
  EXPECT_EQ(list_of("fdgmalloc-5").back().lanes, 65'536u);
  EXPECT_EQ(list_of("fdgmalloc-5").front().loads.size(), 36u);
  EXPECT_EQ(list_of("fdgmalloc-5").back().loads.size(), 35u);  // 512 x 512 B is 16 GiB
  EXPECT_EQ(list_of("fdgmalloc-6").size(), 30u);
  EXPECT_EQ(list_of("fdgmalloc-6").back().lanes, 512u * 1024);
  EXPECT_EQ(list_of("fdgmalloc-6").back().threads_per_block, 1024u);
  EXPECT_EQ(list_of("cmalloc-3a").front().lanes, 960u);
  EXPECT_EQ(list_of("cmalloc-3a").back().sizes.most, 128u << 10);
  EXPECT_EQ(list_of("cmalloc-3b").front().heap_bytes, 128u << 10);
  EXPECT_EQ(list_of("cmalloc-3b").back().heap_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(list_of("cmalloc-3c").size(), 10u);
  EXPECT_EQ(list_of("cmalloc-3d").back().lanes, 960u);
  EXPECT_EQ(list_of("survey-thread").front().lanes, 100'000u);
  EXPECT_EQ(list_of("survey-warp").front().lanes, 10'000u);
  EXPECT_EQ(list_of("survey-scaling-64").back().lanes, 1u << 20);
  EXPECT_EQ(list_of("churn")[0].lanes, 1u << 18);
  EXPECT_EQ(list_of("one-lane")[1].sizes.most, 64u << 10);
  EXPECT_EQ(list_of("widmer")[0].lanes, 1u << 16);
  EXPECT_EQ(list_of("p")[0].lanes, 960u);
}

TEST(Experiments, UseTheSizesOfTheCommandLine) {
  bench_scale scale = scale_of(false, false);
  scale.sizes = {{48, 48}, {10, 20}};
  EXPECT_EQ(list_of("alloc", scale).size(), 1u);
  EXPECT_EQ(list_of("alloc", scale)[0].x_label, "48 B");
  EXPECT_EQ(list_of("survey-oom", scale)[0].x_label, "48 B");
  EXPECT_EQ(list_of("mixed", scale)[0].x_label, "10-20 B");
  EXPECT_EQ(list_of("churn", scale)[0].sizes.least, 64u);
  const auto chosen = [](std::vector<std::string_view> ids) {
    std::vector<const experiment*> all;
    for (const auto id : ids) all.push_back(&find_experiment(id));
    return all;
  };
  EXPECT_THROW(check_sizes(chosen({"alloc", "churn"}), scale), input_error);
  EXPECT_NO_THROW(check_sizes(chosen({"alloc", "mixed"}), scale));
}

TEST(Experiments, HaveAMeasurementForEachHeapState) {
  bench_scale scale = scale_of(false, true);
  scale.cold = true;
  const std::vector<bench_measurement> both = list_of("alloc", scale);
  EXPECT_EQ(both.size(), 2 * list_of("alloc", scale_of(false, true)).size());
  EXPECT_EQ(both[0].variant + both[1].variant, "cold");
  EXPECT_TRUE(!both[0].cold && both[1].cold);
  scale.warm = false;
  for (const bench_measurement& c : list_of("alloc", scale)) EXPECT_TRUE(c.cold);
  for (const bench_measurement& c : list_of("steady", scale))
    EXPECT_FALSE(c.cold);  // this workload has no cold form
  std::set<std::string> states;
  for (const bench_measurement& c : list_of("cold")) states.insert(c.variant);
  EXPECT_EQ(states, (std::set<std::string>{"cold", "warm"}));
}

TEST(Experiments, AreFoundByNameAndByGroup) {
  EXPECT_EQ(find_experiments("all").size(), experiments().size());
  EXPECT_EQ(find_experiments("workloads").size(), 10u);
  EXPECT_EQ(find_experiments("xmalloc-2").size(), 1u);
  EXPECT_THROW(find_experiments("xmaloc-2"), input_error);
}

// ---- plan --------------------------------------------------------------------------------------

bench_options options_of(const std::string& experiments, const std::string& allocators) {
  bench_options o;
  o.backend = "cpu";
  o.quick = true;
  o.experiments = experiments;
  o.allocators = allocators;
  return o;
}

TEST(BenchPlan, LetsAllocatorsWithAPoolShareAProcess) {
  const bench_plan plan = make_plan(options_of("alloc", "Quarry,AtomicMalloc,CudaMalloc,CMalloc"));
  std::vector<std::vector<std::string>> names;
  for (const bench_job_batch& batch : jobs_of(plan, *plan.experiments[0])) {
    names.emplace_back();
    for (const bench_job& job : batch) names.back().push_back(job.subject.series);
  }
  EXPECT_EQ(names, (std::vector<std::vector<std::string>>{{"Quarry", "AtomicMalloc", "CMalloc"},
                                                          {"CudaMalloc"}}));
}

TEST(BenchPlan, MakesAJobForEachHeapSize) {
  const bench_plan plan = make_plan(options_of("cmalloc-3b", "Quarry,XMalloc"));
  std::vector<std::uint64_t> heaps;
  for (const bench_job_batch& batch : jobs_of(plan, *plan.experiments[0]))
    for (const bench_job& job : batch)
      if (job.subject.allocator == "XMalloc") {
        EXPECT_EQ(batch.size(), 1u);
        heaps.push_back(job.request.heap_bytes);
      }
  EXPECT_EQ(heaps.size(), 3u);
  EXPECT_EQ(heaps.front(), 128u << 10);
}

TEST(BenchPlan, ReturnsTheCommandThatMeasuresACurve) {
  bench_options o = options_of("xmalloc,alloc", "Quarry");
  o.lanes = 64;
  o.sizes = {{16, 16}};
  o.sizes_text = "16";
  const bench_plan plan = make_plan(o);
  EXPECT_EQ(plan.command(find_experiment("alloc"), "Quarry"),
            "quarry bench --backend cpu --quick --lanes 64 --sizes 16 --experiments alloc "
            "--allocators Quarry");
}

TEST(BenchPlan, TreatsWorkloadsAsAGroup) {
  bench_options o = options_of("", "Quarry");
  o.workloads = "all";
  EXPECT_EQ(make_plan(o).experiments.size(), 10u);
  o.workloads = "alloc,churn";
  EXPECT_EQ(make_plan(o).experiments.size(), 2u);
  o.experiments = "churn,xmalloc-2";
  EXPECT_EQ(make_plan(o).experiments.size(), 3u);
  o.heap_state = "hot";
  EXPECT_THROW(make_plan(o), input_error);
}

// ---- points, claims -----------------------------------------------------------------------------

bench_point point_of(const char* id, const char* series, double x, double ms) {
  bench_point p;
  p.of = &find_experiment(id);
  p.allocator = p.series = series;
  p.x = x;
  p.result.time = {ms, ms, ms};
  return p;
}

TEST(BenchPoints, ExistForEachStepOfACurve) {
  const experiment& e = find_experiment("recovery");
  bench_result f;
  f.curve = {{1, {5, 5, 5}, {2, 2, 2}, {{"usable_fraction", 0.9}, {"size", 64}}},
             {2, {}, {}, {{"usable_fraction", 0.8}}}};
  bench_measurement measurement = list_of("recovery").front();
  const auto points = points_of(e, {"Quarry", "Quarry", "Quarry"}, measurement, f);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].x_label, "1: 64 B");
  EXPECT_EQ(value_of(points[0], "usable_fraction"), 0.9);
  EXPECT_EQ(value_of(points[0], "ms"), 5);
  EXPECT_EQ(points[1].x, 2);
  EXPECT_FALSE(value_of(points[1], "ms").has_value());
}

TEST(BenchPoints, HaveAllKeysInTheRecord) {
  bench_environment where;
  where.backend = "cpu";
  bench_measurement measurement = list_of("cold").back();
  bench_result f;
  f.time = {2, 1, 3};
  f.fields = {{"extra", 7}};
  const auto points =
      points_of(find_experiment("cold"), {"XMalloc", "XMalloc", "XMalloc"}, measurement, f);
  const nlohmann::ordered_json j = point_record(points[0], where, "quarry bench …");
  EXPECT_EQ(j["kind"], "point");
  EXPECT_EQ(j["experiment"], "cold");
  EXPECT_EQ(j["series"], "XMalloc, cold");
  EXPECT_EQ(j["heap_state"], "cold");
  EXPECT_EQ(j["x"], 4096);
  EXPECT_EQ(j["extra"], 7);
  EXPECT_TRUE(j["free_ms"].is_null());
  for (const char* key : {"allocator",
                          "command",
                          "backend",
                          "device",
                          "driver",
                          "cuda",
                          "compiler",
                          "commit",
                          "date",
                          "outcome",
                          "note",
                          "repeats",
                          "ms",
                          "min_ms",
                          "max_ms",
                          "free_ms",
                          "min_free_ms",
                          "max_free_ms",
                          "atomics_per_call",
                          "free_atomics_per_call",
                          "values",
                          "failures",
                          "corrupt",
                          "misaligned",
                          "heap_bytes",
                          "lanes"})
    EXPECT_TRUE(j.contains(key)) << key;
  for (const char* inner : {"fields", "curve", "workload"})
    EXPECT_FALSE(j.contains(inner)) << inner;

  const nlohmann::ordered_json e = experiment_record(find_experiment("mixed"), false);
  EXPECT_EQ(e["kind"], "experiment");
  EXPECT_EQ(e["x"]["scale"], "category");
  EXPECT_EQ(e["y"][0]["field"], "ms");
  EXPECT_EQ(e["y"].size(), 4u);  // atomics are counted
  EXPECT_EQ(experiment_record(find_experiment("mixed"), true)["y"].size(), 2u);
}

TEST(BenchPoints, OfTheCostLedgerHaveRegisters) {
  const experiment& e = find_experiment("cmalloc-registers");
  const auto points = points_of_ledger(e, subjects_of(e, all_subjects()));
  EXPECT_EQ(points.size(), allocator_names().size());
  EXPECT_TRUE(std::any_of(points.begin(), points.end(), [](const bench_point& p) {
    return value_of(p, "registers").value_or(0) > 0;
  }));
}

TEST(BenchClaims, AreRatiosOfMeasuredTimes) {
  std::vector<bench_point> points = {point_of("xmalloc-2", "CudaMalloc", 32, 96),
                                     point_of("xmalloc-2", "XMalloc", 32, 2),
                                     point_of("xmalloc-2", "CudaMalloc", 1, 10),
                                     point_of("xmalloc-2", "XMalloc", 1, 10),
                                     point_of("fdgmalloc-5", "ScatterAlloc", 1, 20),
                                     point_of("fdgmalloc-5", "FDGMalloc, over CudaMalloc", 1, 4),
                                     point_of("fdgmalloc-5", "ScatterAlloc", 64, 900),
                                     point_of("fdgmalloc-5", "FDGMalloc, over CudaMalloc", 64, 3)};
  const std::vector<bench_claim> claims = claims_of(points);
  std::map<std::string, double> ours;
  for (const bench_claim& c : claims) ours[c.id] = c.ours;
  EXPECT_EQ(ours, (std::map<std::string, double>{{"xmalloc-48", 48},
                                                 {"fdgmalloc-beginning", 5},
                                                 {"fdgmalloc-least", 5},
                                                 {"fdgmalloc-most", 300}}));
  const nlohmann::ordered_json j = claim_record(claims.front(), {});
  EXPECT_EQ(j["kind"], "claim");
  EXPECT_EQ(j["paper"], 48);
  EXPECT_EQ(j["ours"], 48);
  EXPECT_EQ(j["unit"], "x");
  EXPECT_NE(claims_text(claims).find("48 x over CUDA's malloc"), std::string::npos);
}

TEST(BenchClaims, NeedBothSeries) {
  std::vector<bench_point> points = {point_of("xmalloc-2", "CudaMalloc", 32, 96),
                                     point_of("xmalloc-2", "XMalloc", 32, 2)};
  points[1].result.outcome = bench_outcome::timed_out;
  EXPECT_TRUE(claims_of(points).empty());
  EXPECT_EQ(claims_text({}), "");
}

TEST(BenchClaims, AreAboutExperimentsThatExist) {
  // Every series of a claim is a series of its experiment.
  std::vector<bench_point> points;
  for (const experiment& e : experiments())
    for (const bench_subject& s : subjects_of(e, all_subjects()))
      for (const bench_measurement& c : measurements_of(e, scale_of(true, false))) {
        bench_result f;
        f.time = {1, 1, 1};
        for (const bench_point& p : points_of(e, s, c, f)) points.push_back(p);
      }
  EXPECT_EQ(claims_of(points).size(), 9u);
}

TEST(BenchTables, HaveARowForEachXValueAndAColumnForEachCurve) {
  const experiment& e = find_experiment("survey-thread");
  std::vector<bench_point> points = {point_of("survey-thread", "A", 16, 1.5),
                                     point_of("survey-thread", "B", 16, 2.5),
                                     point_of("survey-thread", "B", 32, 0.25)};
  points[0].x_label = points[1].x_label = "16 B";
  points[2].x_label = "32 B";
  points[1].result.free_time = {4, 4, 4};
  points[1].result.outcome = bench_outcome::ok;
  points.push_back(points[2]);
  points[3].series = "A";
  points[3].result.outcome = bench_outcome::timed_out;
  points[3].result.note = "after 5 s";
  const std::string text = experiment_text(e, points, 80, true);
  EXPECT_NE(text.find("16 B      1.500  2.500 / 4.000"), std::string::npos) << text;
  EXPECT_NE(text.find("32 B  timed out          0.250"), std::string::npos) << text;
  EXPECT_NE(text.find("timed out (after 5 s): A"), std::string::npos) << text;
}

}  // namespace
}  // namespace quarry::tool::experiments_test

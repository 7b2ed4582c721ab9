// SPDX-License-Identifier: Apache-2.0
#include "bench/plan.hpp"

#include "bench/environment.hpp"
#include "bench/kernels/variants.hpp"
#include "common/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quarry::tool {
namespace {

constexpr std::string_view baseline = "baseline";

/// Looks up each part of a list with `find`. Returns the distinct values in the order of the list.
template <class Value, class Find>
std::vector<Value> find_each(const std::string& text, Find&& find) {
  std::vector<Value> all;
  for (const std::string& part : split(text))
    for (const Value& one : find(part))
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  return all;
}

std::vector<std::string_view> find_subjects(const std::string& typed) {
  if (typed == baseline) return {baseline};
  std::vector<std::string_view> found = find_allocators(typed);
  if (typed == "all") found.push_back(baseline);
  return found;
}

std::vector<const experiment*> choose_experiments(const bench_options& o) {
  if (o.experiments.empty() && o.workloads.empty()) return find_experiments("all");
  std::vector<const experiment*> chosen;
  if (!o.experiments.empty())
    chosen = find_each<const experiment*>(o.experiments, find_experiments);
  if (o.workloads.empty()) return chosen;
  const auto workloads = find_each<const experiment*>(o.workloads, [](const std::string& typed) {
    return find_experiments(typed == "all" ? "workloads" : typed);
  });
  for (const experiment* e : workloads)
    if (std::find(chosen.begin(), chosen.end(), e) == chosen.end()) chosen.push_back(e);
  return chosen;
}

void choose_heap_states(bench_scale& scale, const std::string& typed) {
  scale.warm = scale.cold = false;
  for (const std::string& part : split(typed)) {
    if (part != "warm" && part != "cold")
      throw input_error(fmt::format("--heap-state: '{}' not in {{cold,warm}}", part));
    (part == "warm" ? scale.warm : scale.cold) = true;
  }
}

std::uint64_t default_heap(bool gpu, bool quick) {
  if (gpu) return (16_GiB).value();
  return quick ? (64_MiB).value() : (512_MiB).value();
}

/// Returns the options that change the results, as the user typed them.
std::string relevant_options(const bench_options& o, const bench_plan& p) {
  std::string text = "--backend " + p.backend.name;
  if (o.quick) text += " --quick";
  if (o.lanes != 0) text += fmt::format(" --lanes {}", o.lanes);
  if (!o.sizes_text.empty()) text += " --sizes " + o.sizes_text;
  if (o.heap != 0) text += fmt::format(" --heap {}", o.heap);
  if (o.heap_state != "warm") text += " --heap-state " + o.heap_state;
  if (o.repeats != 0) text += fmt::format(" --repeats {}", o.repeats);
  if (o.time_limit != 0) text += fmt::format(" --time-limit {}", o.time_limit);
  return text;
}

/// True if the blocks come from the system's malloc, whose heap belongs to the process.
bool uses_system_heap(const std::string& runner) {
  bool system_heap = false;
  const auto look = [&](auto entry) {
    if (entry.name == runner) system_heap = !decltype(entry)::type::can.owns_pool;
  };
  for_each_allocator(look);
  for_each_allocator(look, bench_variants{});
  return system_heap;
}

/// Groups measurements into jobs. A new job starts where the heap changes.
std::vector<bench_job> jobs_of(const bench_plan& plan, const bench_subject& subject,
                               const std::vector<bench_measurement>& measurements,
                               bool system_heap) {
  std::vector<bench_job> jobs;
  for (bench_measurement measurement : measurements) {
    if (measurement.heap_bytes == 0) measurement.heap_bytes = plan.scale.heap;
    if (jobs.empty() || jobs.back().request.heap_bytes != measurement.heap_bytes ||
        (system_heap && measurement.cold)) {
      jobs.push_back({subject, plan.request});
      jobs.back().request.allocator = subject.runner;
      jobs.back().request.heap_bytes = measurement.heap_bytes;
    }
    jobs.back().request.measurements.push_back(measurement);
  }
  return jobs;
}

}  // namespace

std::string bench_plan::command(const experiment& e, std::string_view allocator) const {
  return fmt::format("quarry bench {} --experiments {} --allocators {}", common_options, e.id,
                     allocator);
}

bench_plan make_plan(const bench_options& o) {
  bench_plan p;
  p.allocators = find_each<std::string_view>(o.allocators, find_subjects);
  p.experiments = choose_experiments(o);
  p.scale.quick = o.quick;
  p.scale.sizes = o.sizes;
  choose_heap_states(p.scale, o.heap_state);
  check_sizes(p.experiments, p.scale);
  p.backend = choose_backend(o.backend);
  p.scale.gpu = p.gpu();
  const unsigned log2_lanes = (p.gpu() ? 20 : 14) - (o.quick ? 4 : 0);
  p.scale.lanes = o.lanes != 0 ? o.lanes : std::uint64_t{1} << log2_lanes;
  p.scale.heap = o.heap != 0 ? o.heap : default_heap(p.gpu(), o.quick);
  p.request.backend = p.backend.name;
  p.request.repeats = o.repeats != 0 ? o.repeats : o.quick ? 3 : 5;
  p.request.timeout = static_cast<double>(o.timeout);
  p.request.time_limit = o.time_limit != 0 ? o.time_limit : o.quick ? 0.25 : 1;
  check_heap(p.scale.heap, p.backend);
  p.where = describe(p.backend);
  p.common_options = relevant_options(o, p);
  return p;
}

std::vector<bench_job_batch> jobs_of(const bench_plan& plan, const experiment& e) {
  std::vector<bench_job_batch> batches(1);
  const std::vector<bench_measurement> measurements = measurements_of(e, plan.scale);
  for (const bench_subject& subject : subjects_of(e, plan.allocators)) {
    const bool system_heap = uses_system_heap(subject.runner);
    for (bench_job& job : jobs_of(plan, subject, measurements, system_heap)) {
      if (system_heap)
        batches.push_back({std::move(job)});
      else
        batches.front().push_back(std::move(job));
    }
  }
  if (batches.front().empty()) batches.erase(batches.begin());
  return batches;
}

}  // namespace quarry::tool

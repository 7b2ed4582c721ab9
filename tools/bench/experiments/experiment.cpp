// SPDX-License-Identifier: Apache-2.0
#include "bench/experiments/experiment.hpp"

#include "bench/experiments/measurements.hpp"
#include "bench/kernels/variants.hpp"
#include "common/catalogue.hpp"
#include "common/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quarry::tool {
namespace {

/// True if an experiment with this option uses the value `r` of --sizes.
bool accepts(size_option option, const size_range& r) {
  return option != size_option::none && (option == size_option::ranges) == (r.least != r.most);
}

std::vector<std::string_view> groups() {
  std::vector<std::string_view> all;
  for (const experiment& e : experiments())
    if (std::find(all.begin(), all.end(), e.group) == all.end()) all.push_back(e.group);
  return all;
}

std::string experiments_that_accept_sizes() {
  std::vector<std::string> ids;
  for (const experiment& e : experiments())
    if (e.accepted_sizes != size_option::none) ids.emplace_back(e.id);
  return joined(ids);
}

/// Returns FDGMalloc through its own interface: over CFMMalloc, over CUDA's malloc as in the paper,
/// and without superblocks.
const std::vector<bench_subject>& arena_subjects() {
  static const std::vector<bench_subject> all = [] {
    std::vector<bench_subject> subjects;
    for (const std::string_view runner :
         {label_of<fdg_arenas>.name, label_of<fdg_over_system>.name, label_of<fdg_bare>.name})
      subjects.push_back({std::string(runner), "FDGMalloc", std::string(runner)});
    subjects.front().series = "FDGMalloc";
    return subjects;
  }();
  return all;
}

}  // namespace

const std::vector<experiment>& experiments() {
  static const std::vector<experiment> all = [] {
    std::vector<experiment> list = paper_experiments();
    for (auto more : {survey_experiments(), workload_experiments()})
      list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
}

const experiment& find_experiment(std::string_view id) {
  const auto& all = experiments();
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.id == id; });
  if (at != all.end()) return *at;
  std::vector<std::string_view> names = groups();
  for (const experiment& e : all) names.push_back(e.id);
  const std::string_view nearest = nearest_name(id, names);
  throw input_error(
      fmt::format("no experiment '{}'{}; quarry bench --list prints all", id,
                  nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

std::vector<const experiment*> find_experiments(std::string_view typed) {
  std::vector<const experiment*> found;
  for (const experiment& e : experiments())
    if (typed == "all" || typed == e.group) found.push_back(&e);
  return found.empty() ? std::vector<const experiment*>{&find_experiment(typed)} : found;
}

void check_sizes(const std::vector<const experiment*>& chosen, const bench_scale& scale) {
  for (const size_range& r : scale.sizes)
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const experiment* e) { return accepts(e->accepted_sizes, r); }))
      throw input_error(
          fmt::format("--sizes {}: none of the chosen experiments uses it; these do: {}",
                      size_text(r), experiments_that_accept_sizes()));
}

std::vector<size_range> sizes_or(const bench_scale& scale, size_option option,
                                 const std::vector<size_range>& own) {
  std::vector<size_range> chosen;
  for (const size_range& r : scale.sizes)
    if (accepts(option, r)) chosen.push_back(r);
  return chosen.empty() ? own : chosen;
}

bool experiment::can_be_cold(const bench_measurement& m) {
  return m.workload == bench_workload::malloc_then_free || m.workload == bench_workload::churn ||
         m.workload == bench_workload::batch || m.workload == bench_workload::produce;
}

std::vector<bench_measurement> measurements_of(const experiment& e, const bench_scale& scale) {
  if (e.from_ledger()) return {};
  std::vector<bench_measurement> measurements = e.measurements(scale);
  for (bench_measurement& c : measurements) c.experiment = e.id;
  if (!scale.cold) return measurements;
  std::vector<bench_measurement> all;
  for (const bench_measurement& c : measurements) {
    if (scale.warm || c.cold || !experiment::can_be_cold(c)) all.push_back(c);
    if (c.cold || !experiment::can_be_cold(c)) continue;
    all.push_back(c);
    all.back().cold = true;
    all.back().variant += all.back().variant.empty() ? "cold" : ", cold";
  }
  return all;
}

std::vector<bench_subject> subjects_of(const experiment& e,
                                       const std::vector<std::string_view>& allocators) {
  std::vector<bench_subject> all = e.listed;
  if (e.allocators != allocator_set::none)
    for (const std::string_view name : allocator_names()) {
      if (e.allocators == allocator_set::all_with_arenas && name == "FDGMalloc")
        all.insert(all.end(), arena_subjects().begin(), arena_subjects().end());
      else
        all.push_back({std::string(name), std::string(name), std::string(name)});
    }
  if (e.baseline) all.push_back({"prefix sum", "baseline", "prefix sum"});
  const auto position = [&](const bench_subject& s) {
    return std::find(allocators.begin(), allocators.end(), s.allocator);
  };
  std::erase_if(all, [&](const bench_subject& s) { return position(s) == allocators.end(); });
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return position(a) < position(b); });
  return all;
}

std::string size_text(const size_range& sizes) {
  if (sizes.least != sizes.most) return fmt::format("{}-{} B", sizes.least, sizes.most);
  return sizes.least % 1024 == 0 ? to_text(sizes.least) : fmt::format("{} B", sizes.least);
}

}  // namespace quarry::tool

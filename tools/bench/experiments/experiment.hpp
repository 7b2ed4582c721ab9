// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The experiments of `quarry bench`: figures of the papers and of the survey, with the published
/// settings as far as the backend has room for them, and workloads of our own.
///
///   experiment   axes, measured fields, subjects, and a function that lists the measurements
///   scale        the size of a run: lanes, heap, and whether --quick was given
///   subject      what is measured: an allocator of the library, or a variant of an allocator
///                (kernels/variants.hpp)
///
/// experiments() joins the lists of papers.cpp, survey.cpp and workloads.cpp.

#include "bench/request.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quarry::tool {

/// The size of a run. The experiments derive grids and heaps from it.
struct bench_scale {
  std::uint64_t lanes = 0;  // of the largest grid; the maximum of x axes that count threads
  std::uint64_t heap = 0;   // bytes
  bool gpu = false;
  bool quick = false;             // fewer and smaller measurements
  std::vector<size_range> sizes;  // from --sizes; empty: each experiment uses its own sizes
  bool warm = true;               // measure warm heaps, cold heaps, or both
  bool cold = false;

  /// Scales a published number of lanes: unchanged if `lanes` is 2^20.
  std::uint64_t lanes_of(std::uint64_t published) const {
    return std::max<std::uint64_t>(published * lanes >> 20, 1);
  }
  /// Returns a published heap size, at most the heap of this run.
  std::uint64_t heap_of(std::uint64_t published) const { return std::min(published, heap); }
};

struct experiment_axis {
  std::string_view name;
  std::string_view unit;
  std::string_view scale;  // "log", "linear", or "category": x is the text x_label
};

struct experiment_y {
  std::string_view field;  // key in the records
  std::string_view name;
  std::string_view unit;
  std::string_view scale;
  std::string_view better = {};  // "none": do not rank; empty: the report infers the direction
};

struct bench_subject {
  std::string runner;     // the name that selects the C++ type
  std::string allocator;  // the allocator of the library that the subject is a variant of
  std::string series;     // name of the curve
};

/// Which values of --sizes replace the sizes of an experiment.
enum class size_option : std::uint8_t { none, sizes, ranges };

/// Which allocators of the library an experiment measures, in addition to its listed variants.
enum class allocator_set : std::uint8_t {
  none,
  all,
  all_with_arenas  // FDGMalloc through its own interface (start, alloc, end), over three upstreams
};

struct experiment {
  std::string_view id;
  std::string_view group;  // "huang-2013", …, "survey", "ours", "workloads"
  std::string_view title;
  std::string_view source;  // author, year, figure; empty for our own experiments
  std::string_view note;    // settings of the experiment, as text
  experiment_axis x;
  std::vector<experiment_y> y;
  std::vector<bench_measurement> (*measurements)(const bench_scale&);
  std::string_view form = "lines";
  allocator_set allocators = allocator_set::all;
  std::vector<bench_subject> listed = {};  // variants
  size_option accepted_sizes = size_option::none;
  bool baseline = false;  // also measure the prefix sum

  /// True if the values come from the cost ledger, and nothing is run.
  bool from_ledger() const { return measurements == nullptr; }

  // Modifiers, for the lists of experiments.
  experiment as(std::string_view f) && { return form = f, std::move(*this); }
  experiment accepting(size_option o) && { return accepted_sizes = o, std::move(*this); }
  experiment with_arenas() && {
    return allocators = allocator_set::all_with_arenas, std::move(*this);
  }
  experiment for_only(std::vector<bench_subject> subjects) && {
    return allocators = allocator_set::none, listed = std::move(subjects), std::move(*this);
  }
  experiment with_baseline() && { return baseline = true, std::move(*this); }

  /// True if the workload of the measurement can run on a new heap in every pass.
  static bool can_be_cold(const bench_measurement& m);
};

/// Returns all experiments, in the order of the report.
const std::vector<experiment>& experiments();
/// Throws input_error with a suggestion if there is no such experiment.
const experiment& find_experiment(std::string_view id);
/// Returns the experiments that `typed` means: an id, a group, or "all".
std::vector<const experiment*> find_experiments(std::string_view typed);

/// Throws input_error if a value of --sizes is of use to none of the experiments.
void check_sizes(const std::vector<const experiment*>& chosen, const bench_scale& scale);
/// Returns the measurements of an experiment, in both heap states if `scale` asks for both.
std::vector<bench_measurement> measurements_of(const experiment& e, const bench_scale& scale);
/// Returns the subjects of the experiment that belong to `allocators`, in the order of
/// `allocators`.
std::vector<bench_subject> subjects_of(const experiment& e,
                                       const std::vector<std::string_view>& allocators);

/// Formats a size or a range of sizes: "16 B", "64 KiB", "16-1024 B".
std::string size_text(const size_range& sizes);

// The parts of experiments().
std::vector<experiment> paper_experiments();
std::vector<experiment> survey_experiments();  // and ours
std::vector<experiment> workload_experiments();

}  // namespace quarry::tool

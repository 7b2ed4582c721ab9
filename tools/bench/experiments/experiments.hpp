// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The experiments of `quarry bench`: figures of the papers and of the field, with the settings that they were
/// published with, as far as the machine has room for them; then workloads that allocators are compared by.
///
///   experiment   an axis, what is measured, whom it is measured for, and its cells
///   scale        how large cells are here: lanes and heap of this run, and whether it has to be quick
///   subject      who is measured: an allocator of the library, or a variant of one (bench_variants.hpp)
///
/// One table: experiments() puts together the lists of experiments_workloads.cpp, experiments_papers.cpp and
/// experiments_field.cpp.

#include "bench/bench.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quarry::tool {

/// How large the cells are.
struct bench_scale {
  std::uint64_t lanes = 0;  // of the largest grid; axes of threads end here
  std::uint64_t heap = 0;   // bytes
  bool gpu = false;
  bool quick = false;             // fewer and smaller cells
  std::vector<size_range> sizes;  // in place of the experiments' own; empty: keep those
  bool warm = true;               // which states of the heap
  bool cold = false;

  /// Of a paper's number of lanes, what this machine takes: all of it at 2^20 lanes.
  std::uint64_t lanes_of(std::uint64_t published) const {
    return std::max<std::uint64_t>(published * lanes >> 20, 1);
  }
  /// A heap of a paper, or ours if that is smaller.
  std::uint64_t heap_of(std::uint64_t published) const { return std::min(published, heap); }
};

struct experiment_axis {
  std::string_view name;
  std::string_view unit;
  std::string_view scale;  // "log", "linear", "category": then only the text of a cell counts
};

struct experiment_y {
  std::string_view field;  // of a record
  std::string_view name;
  std::string_view unit;
  std::string_view scale;
  std::string_view better = "";  // "none": curves are not to be ranked; empty: as its words say
};

struct bench_subject {
  std::string runner;     // the name by which its type is found
  std::string allocator;  // of the library, that it is or is a variant of
  std::string series;     // for a legend
};

/// What of --sizes an experiment uses.
enum class takes : std::uint8_t { nothing, sizes, ranges };

/// Who is measured, besides variants that are listed.
enum class everyone : std::uint8_t {
  no,
  yes,
  by_arenas  // FDGMalloc by its own calls: it frees, and is compared with what it stands on
};

struct experiment {
  std::string_view id;
  std::string_view group;  // "huang-2013", …, "survey", "ours", "workloads"
  std::string_view title;
  std::string_view source;  // author, year, figure; empty: our own
  std::string_view note;    // settings, for people
  experiment_axis x;
  std::vector<experiment_y> y;
  std::vector<bench_cell> (*cells)(const bench_scale&);
  std::string_view form = "lines";
  everyone who = everyone::yes;
  std::vector<bench_subject> listed = {};
  takes accepts = takes::nothing;
  bool baseline = false;  // a prefix sum beside the allocators

  /// Nothing is run: the figures are in the ledger of costs.
  bool from_ledger() const { return cells == nullptr; }

  // For the lists.
  experiment as(std::string_view f) && { return form = f, std::move(*this); }
  experiment taking(takes what) && { return accepts = what, std::move(*this); }
  experiment by_arenas() && { return who = everyone::by_arenas, std::move(*this); }
  experiment for_only(std::vector<bench_subject> those) && {
    return who = everyone::no, listed = std::move(those), std::move(*this);
  }
  experiment with_baseline() && { return baseline = true, std::move(*this); }

  /// Whether cells make sense for a heap that was just made.
  static bool can_be_cold(const bench_cell& cell);
};

/// In the order of the report.
const std::vector<experiment>& experiments();
/// Throws input_error.
const experiment& find_experiment(std::string_view id);
/// What was typed: an id, a group, or "all".
std::vector<const experiment*> find_experiments(std::string_view typed);

/// Throws input_error for a size that none of the experiments takes.
void check_sizes(const std::vector<const experiment*>& chosen, const bench_scale& scale);
std::vector<bench_cell> cells_of(const experiment& e, const bench_scale& scale);
/// Those of the experiment that belong to `allocators`, in their order.
std::vector<bench_subject> subjects_of(const experiment& e,
                                       const std::vector<std::string_view>& allocators);

/// "16 B", "64 KiB", "16-1024 B".
std::string size_text(const size_range& sizes);

// The lists, for experiments().
std::vector<experiment> paper_experiments();
std::vector<experiment> field_experiments();
std::vector<experiment> workload_experiments();

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The data of `quarry report`, from records to what the page shows.
///
///   read        files -> records           report/read.cpp
///   arrange     records -> document        report/arrange.cpp, report/figure.cpp
///   rank        document -> rankings       report/rank.cpp
///   write       page, Markdown, pictures   report/page.cpp, report/markdown.cpp
///
/// docs/report.md describes the records.

#include "chart/chart.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace quarry::tool::report {

using json = nlohmann::json;

struct record {
  json line;
  std::string origin;  // "file:line", for error messages
};

/// The records of all files, by kind.
struct records {
  std::vector<record> experiments, points, maps, claims;
};

/// What the data points were measured on.
struct backend {
  std::string kind, device;  // "cuda", "NVIDIA H200"
  std::string label;         // shown to readers
  std::string slug;          // the label in file names and anchors
};

/// The data points that one build of the program measured on one backend.
struct run {
  std::size_t backend = 0;
  std::string driver, cuda, compiler, commit;
  std::string first_date, last_date;
  std::size_t points = 0;
};

/// Which values of a measure are better.
enum class direction : std::uint8_t { less, more, none };

/// One measure of an experiment, as a chart.
struct view {
  std::string field;
  direction better = direction::none;
  chart picture;
  std::size_t not_shown = 0;  // zeros, which a logarithmic axis cannot show
};

/// A note about data points of a series: faults, and why points were not measured.
struct remark {
  point_state state = point_state::good;
  std::string series, what;
  std::vector<std::string> at;  // x values
};

struct series_commands {
  std::string series;
  std::vector<std::string> commands;
};

/// An experiment on one backend.
struct figure {
  std::size_t backend = 0;
  std::string anchor;
  std::vector<view> views;
  std::vector<remark> remarks;
  std::vector<series_commands> commands;
};

struct experiment {
  std::string id, title, source, note;
  std::string group;  // heading in the table of contents; may be empty
  chart_form form = chart_form::lines;
  std::vector<figure> figures;
};

/// A published number beside the measured one.
struct claim {
  std::string id, source, what, paper, ours, unit, how;
  double ratio = missing;             // measured / published, if both are numbers
  std::vector<std::size_t> backends;  // empty: unknown
};

struct heap_picture {
  std::string title, allocator, svg;
  std::vector<std::size_t> backends;
};

struct document {
  std::vector<backend> backends;
  std::vector<run> runs;
  std::vector<experiment> experiments;
  std::vector<claim> claims;
  std::vector<heap_picture> maps;
  std::size_t points = 0;
  std::size_t replaced = 0;  // data points that a newer record of the same x value replaces
};

/// Throws input_error if a file cannot be read, if a line is not a valid record, or if the files
/// hold neither data points nor maps nor claims.
records read(const std::vector<std::string>& files);
document arrange(const records& all);

}  // namespace quarry::tool::report

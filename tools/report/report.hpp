// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `quarry report` knows, from lines of JSON to what a page shows.
///
///   read        files -> records            report_read.cpp, older lines: report_older.cpp
///   arrange     records -> document         report_arrange.cpp
///   rank        document -> standings       report_rank.cpp
///   write       a page, a text, pictures    report_page.cpp, report_markdown.cpp
///
/// docs/report.md says what the lines hold.

#include "chart/chart.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace quarry::tool::report {

using json = nlohmann::json;

struct record {
  json line;
  std::string place;  // "file:line", for complaints
};

/// The lines of all files by kind, older ones turned into today's.
struct records {
  std::vector<record> experiments, points, maps, claims;
};

struct backend {
  std::string kind, device;  // "cuda", "NVIDIA H200"
  std::string label;         // what people see
  std::string slug;          // fit for a file name and an anchor
};

/// Points measured by one program on one machine.
struct run {
  std::size_t backend = 0;
  std::string driver, cuda, compiler, commit;
  std::string first_date, last_date;
  std::size_t points = 0;
};

enum class direction : std::uint8_t { less, more, none };

/// One y field of an experiment, as a chart.
struct view {
  std::string field;
  direction better = direction::none;
  chart picture;
  std::size_t not_shown = 0;  // points that a logarithmic axis has no place for
};

/// Something to tell about points of a series.
struct remark {
  dot_state state = dot_state::good;
  std::string series, what;
  std::vector<std::string> at;  // x values
};

struct series_commands {
  std::string series;
  std::vector<std::string> commands;
};

/// An experiment on one machine.
struct figure {
  std::size_t backend = 0;
  std::string anchor;
  std::vector<view> views;
  std::vector<remark> remarks;
  std::vector<series_commands> commands;
};

struct experiment {
  std::string id, title, source, note;
  std::string group;  // headings of the contents; may be empty
  chart_form form = chart_form::lines;
  std::vector<figure> figures;
};

struct claim {
  std::string id, source, what, paper, ours, unit, how;
  double ratio = nothing;             // ours / the paper's, where both are numbers
  std::vector<std::size_t> backends;  // empty: not known
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
  std::size_t replaced = 0;  // measured again later; the newest counts
};

records read(const std::vector<std::string>& files);
document arrange(const records& all);

/// Adds a line of the time before "kind" as today's points, and what describes their experiment.
void add_older(const record& line, records& all);

}  // namespace quarry::tool::report

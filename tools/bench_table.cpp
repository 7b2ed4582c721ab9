// SPDX-License-Identifier: Apache-2.0
#include "bench_table.hpp"

#include "bench_json.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace quarry::tool {
namespace {

using cell_text = std::function<std::string(const bench_figures&)>;

/// The distinct ones, in the order they came.
std::vector<std::string> distinct(const std::vector<bench_result>& results,
                                  const std::function<std::string(const bench_result&)>& of) {
  std::vector<std::string> all;
  for (const bench_result& r : results)
    if (std::find(all.begin(), all.end(), of(r)) == all.end()) all.push_back(of(r));
  return all;
}

std::string lost_text(const bench_figures& f) {
  if (f.outcome == bench_outcome::skipped) return "-";
  return std::string(outcome_text(f.outcome));
}

std::string ratio_text(double ratio) {
  return ratio < 1000 ? fmt::format("{:.3f}", ratio) : fmt::format("{:.2g}", ratio);
}

std::string time_text(const bench_figures& f) {
  if (f.outcome != bench_outcome::ok) return lost_text(f);
  std::string text = milliseconds_text(f.time.median);
  if (f.free_time.measured()) text += " / " + milliseconds_text(f.free_time.median);
  if (!f.values.empty()) text = fmt::format("{} ({} ms)", ratio_text(f.values.back()), text);
  return text;
}

std::string atomics_text(const bench_figures& f) {
  if (f.outcome != bench_outcome::ok || f.atomics < 0) return "-";
  std::string text = fmt::format("{:.3f}", f.atomics);
  if (f.free_atomics >= 0) text += fmt::format(" / {:.3f}", f.free_atomics);
  return text;
}

std::string tables(const std::vector<bench_result>& results, std::size_t width,
                   const cell_text& text) {
  const auto rows = distinct(results, [](const bench_result& r) { return r.cell.row; });
  const auto columns = distinct(results, [](const bench_result& r) { return r.allocator; });
  std::map<std::string, std::map<std::string, std::string>> cells;
  std::map<std::string, std::size_t> widths;
  for (const std::string& c : columns) widths[c] = c.size();
  for (const bench_result& r : results) {
    const std::string& cell = cells[r.cell.row][r.allocator] = text(r.figures);
    widths[r.allocator] = std::max(widths[r.allocator], cell.size());
  }
  std::size_t first_column = 0;
  for (const std::string& row : rows) first_column = std::max(first_column, row.size());

  std::string out;
  for (std::size_t begin = 0, end = 0; begin < columns.size(); begin = end) {
    std::size_t used = first_column;
    while (end < columns.size() && (end == begin || used + 2 + widths[columns[end]] <= width))
      used += 2 + widths[columns[end++]];
    std::vector<table::column> titles{{""}};
    for (std::size_t c = begin; c < end; ++c) titles.push_back({columns[c], right});
    table part(titles);
    for (const std::string& row : rows) {
      std::vector<std::string> line{row};
      for (std::size_t c = begin; c < end; ++c) line.push_back(cells[row][columns[c]]);
      part.add(line);
    }
    out += (begin == 0 ? "" : "\n") + part.text();
  }
  return out;
}

/// Of all timed cells, the one whose passes differ most.
std::string spread_text(const std::vector<bench_result>& results) {
  const bench_result* widest = nullptr;
  const auto spread = [](const bench_result& r) {
    return r.figures.time.most / r.figures.time.least;
  };
  for (const bench_result& r : results) {
    if (r.figures.outcome != bench_outcome::ok || r.figures.repeats < 2 ||
        r.figures.time.least <= 0)
      continue;
    if (widest == nullptr || spread(r) > spread(*widest)) widest = &r;
  }
  if (widest == nullptr) return {};
  const bench_figures& f = widest->figures;
  return fmt::format("widest spread: {}, {}: {} to {} ms, median {} of {}\n", widest->allocator,
                     widest->cell.row, milliseconds_text(f.time.least),
                     milliseconds_text(f.time.most), milliseconds_text(f.time.median), f.repeats);
}

/// What was lost or skipped, each reason once.
std::string notes_text(const std::vector<bench_result>& results) {
  const auto why = [](const bench_result& r) {
    return r.figures.note.empty()
               ? std::string()
               : fmt::format("{} ({})", outcome_text(r.figures.outcome), r.figures.note);
  };
  std::string out;
  for (const std::string& reason : distinct(results, why)) {
    if (reason.empty()) continue;
    std::vector<std::string> who;
    for (const bench_result& r : results)
      if (why(r) == reason) who.push_back(fmt::format("{} {}", r.allocator, r.cell.row));
    out += fmt::format("{}: {}\n", reason, joined(who));
  }
  return out;
}

}  // namespace

std::string workload_text(const bench_workload& workload, const std::vector<bench_result>& results,
                          std::size_t width) {
  const char* unit = workload.shape == bench_shape::blocks   ? "ms to allocate / to free"
                     : workload.shape == bench_shape::extent ? "ratio (ms of all kernels)"
                     : workload.shape == bench_shape::fill   ? "share (ms of all kernels)"
                                                             : "ms";
  std::string out = fmt::format("{}: {}; {}\n\n", workload.name, workload.summary, unit);
  out += tables(results, width, time_text) + "\n";
  const auto counted = [](const bench_result& r) { return r.figures.atomics >= 0; };
  if (std::any_of(results.begin(), results.end(), counted))
    out += "atomics a call:\n\n" + tables(results, width, atomics_text) + "\n";
  out += spread_text(results);
  out += notes_text(results);
  return out;
}

std::string verdict_text(const std::vector<bench_result>& results) {
  table wrong({{"workload"},
               {""},
               {"allocator"},
               {"failures", right},
               {"corrupt", right},
               {"misaligned", right}});
  std::size_t checked = 0;
  std::size_t listed = 0;
  for (const bench_result& r : results) {
    const bench_figures& f = r.figures;
    if (f.outcome == bench_outcome::ok) ++checked;
    if (f.failures + f.corrupt + f.misaligned == 0) continue;
    ++listed;
    wrong.add({r.cell.workload, r.cell.row, r.allocator, grouped(f.failures), grouped(f.corrupt),
               grouped(f.misaligned)});
  }
  const std::string all =
      fmt::format("{} cells were checked: every block was written and read back.\n", checked);
  if (listed == 0) return all + "None failed, was corrupt or misaligned.\n";
  return all +
         fmt::format("In {} of them blocks were missing or wrong:\n\n{}", listed, wrong.text());
}

std::string milliseconds_text(double ms) {
  if (ms < 0) return "-";
  return fmt::format("{:.{}f}", ms, ms < 9.9995 ? 3 : ms < 99.95 ? 1 : 0);
}

}  // namespace quarry::tool

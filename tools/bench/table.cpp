// SPDX-License-Identifier: Apache-2.0
#include "bench/table.hpp"

#include "bench/json.hpp"
#include "common/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

namespace quarry::tool {
namespace {

using point_function = std::function<std::string(const bench_point&)>;

/// Returns the distinct texts of the points, in order of first occurrence.
std::vector<std::string> distinct(const std::vector<bench_point>& points,
                                  const point_function& of) {
  std::vector<std::string> all;
  for (const bench_point& p : points)
    if (std::find(all.begin(), all.end(), of(p)) == all.end()) all.push_back(of(p));
  return all;
}
std::string x_text_of(const bench_point& p) { return p.x_label; }
std::string series_of(const bench_point& p) { return p.series; }

/// Returns the x values to show. Of a long curve the table shows the last point and evenly spaced
/// others.
std::vector<std::string> rows_of(const std::vector<bench_point>& points) {
  constexpr std::size_t max_rows = 17;
  std::vector<bench_point> measured;
  for (const bench_point& p : points)
    if (p.result.outcome == bench_outcome::ok ||
        p.measurement.workload < bench_workload::steady_state)
      measured.push_back(p);
  std::vector<std::string> rows = distinct(measured, x_text_of);
  if (rows.size() <= max_rows) return rows;
  std::vector<std::string> some;
  const std::size_t step = (rows.size() + max_rows - 1) / max_rows;
  for (std::size_t i = (rows.size() - 1) % step; i < rows.size(); i += step)
    some.push_back(rows[i]);
  return some;
}

/// Returns the series that were measured. The notes list the others.
std::vector<std::string> columns_of(const std::vector<bench_point>& points) {
  std::vector<bench_point> tried;
  for (const bench_point& p : points)
    if (p.result.outcome != bench_outcome::skipped) tried.push_back(p);
  return distinct(tried, series_of);
}

/// Returns the fields that a table shows: the first two of the experiment.
std::vector<experiment_y> main_fields(const experiment& e) {
  return {e.y.begin(), e.y.begin() + std::min<std::ptrdiff_t>(2, std::ssize(e.y))};
}

std::string cell_text(const bench_point& p, const std::vector<experiment_y>& shown) {
  if (p.result.outcome == bench_outcome::skipped) return "-";
  if (p.result.outcome != bench_outcome::ok) return std::string(outcome_text(p.result.outcome));
  std::vector<std::string> parts;
  for (const experiment_y& y : shown)
    if (const auto value = value_of(p, y.field)) parts.push_back(number_text(*value));
  return parts.empty() ? "-" : joined(parts, " / ");
}

std::string tables(const std::vector<bench_point>& points, std::size_t width,
                   const point_function& text) {
  const std::vector<std::string> rows = rows_of(points);
  const std::vector<std::string> columns = columns_of(points);
  std::map<std::string, std::map<std::string, std::string>> cells;
  std::map<std::string, std::size_t> widths;
  for (const std::string& c : columns) widths[c] = c.size();
  for (const bench_point& p : points) {
    const std::string& cell = cells[p.x_label][p.series] = text(p);
    widths[p.series] = std::max(widths[p.series], cell.size());
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

/// Describes the data point whose passes vary most.
std::string variation_text(const std::vector<bench_point>& points) {
  const bench_point* widest = nullptr;
  const auto variation = [](const bench_point& p) { return p.result.time.max / p.result.time.min; };
  for (const bench_point& p : points) {
    if (p.result.outcome != bench_outcome::ok || p.result.repeats < 2 || p.result.time.min <= 0)
      continue;
    if (widest == nullptr || variation(p) > variation(*widest)) widest = &p;
  }
  if (widest == nullptr) return {};
  const bench_result& f = widest->result;
  return fmt::format("largest variation: {}, {}: {} to {} ms, median {} ms of {} passes\n",
                     widest->series, widest->x_label, number_text(f.time.min),
                     number_text(f.time.max), number_text(f.time.median), f.repeats);
}

/// Lists lost and skipped data points, grouped by reason.
std::string notes_text(const std::vector<bench_point>& points) {
  const auto why = [](const bench_point& p) {
    return p.result.note.empty()
               ? std::string()
               : fmt::format("{} ({})", outcome_text(p.result.outcome), p.result.note);
  };
  std::string out;
  for (const std::string& reason : distinct(points, why)) {
    if (reason.empty()) continue;
    std::vector<std::string> affected;
    for (const bench_point& p : points) {
      const std::string name = fmt::format("{} {}", p.series, p.measurement.x_label);
      if (why(p) == reason && std::find(affected.begin(), affected.end(), name) == affected.end())
        affected.push_back(name);
    }
    out += fmt::format("{}: {}\n", reason, joined(affected));
  }
  return out;
}

std::string names_of(const std::vector<experiment_y>& shown) {
  std::vector<std::string> names;
  names.reserve(shown.size());
  for (const experiment_y& y : shown)
    names.push_back(y.unit.empty() ? std::string(y.name) : fmt::format("{}, {}", y.name, y.unit));
  return joined(names, " / ");
}

}  // namespace

std::string experiment_text(const experiment& e, const std::vector<bench_point>& points,
                            std::size_t width, bool gpu) {
  const std::vector<experiment_y> shown = main_fields(e);
  std::string out = fmt::format("{}: {}{}\n", e.id, e.title,
                                e.source.empty() ? "" : fmt::format(" ({})", e.source));
  out += fmt::format("{}{}{}\n\n", e.x.name, e.x.name.empty() ? "" : ": ", names_of(shown));
  out += tables(points, width, [&](const bench_point& p) { return cell_text(p, shown); }) + "\n";
  const auto counted = [](const bench_point& p) { return p.result.atomics >= 0; };
  if (!gpu && std::any_of(points.begin(), points.end(), counted)) {
    const std::vector<experiment_y> atomics = {{"atomics_per_call", "", "", ""},
                                               {"free_atomics_per_call", "", "", ""}};
    out += "atomics per call:\n\n" +
           tables(points, width, [&](const bench_point& p) { return cell_text(p, atomics); }) +
           "\n";
  }
  return out + variation_text(points) + notes_text(points);
}

std::string check_summary_text(const std::vector<bench_point>& points) {
  table wrong({{"experiment"},
               {"x"},
               {"allocator"},
               {"failed", right},
               {"corrupt", right},
               {"misaligned", right}});
  std::size_t checked = 0;
  std::size_t listed = 0;
  const bench_point* before = nullptr;
  for (const bench_point& p : points) {
    // The steps of one curve were checked together.
    const bool same = before != nullptr && before->of == p.of && before->series == p.series &&
                      before->measurement.x_label == p.measurement.x_label;
    before = &p;
    if (same || p.of->from_ledger()) continue;
    const bench_result& f = p.result;
    if (f.outcome == bench_outcome::ok) ++checked;
    if (f.failures + f.corrupt + f.misaligned == 0) continue;
    ++listed;
    wrong.add({std::string(p.of->id), p.measurement.x_label, p.series, grouped(f.failures),
               grouped(f.corrupt), grouped(f.misaligned)});
  }
  const std::string all =
      fmt::format("{} data points were checked: every block was written and read back.\n", checked);
  if (listed == 0) return all + "No allocation failed; no block was corrupt or misaligned.\n";
  return all + fmt::format("{} data points had failed allocations or damaged blocks:\n\n{}", listed,
                           wrong.text());
}

std::string number_text(double n) {
  if (n < 0) return "-";
  if (n >= 1e7) return fmt::format("{:.2g}", n);
  return fmt::format("{:.{}f}", n, n < 9.9995 ? 3 : n < 99.95 ? 1 : 0);
}

}  // namespace quarry::tool

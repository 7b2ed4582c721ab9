// SPDX-License-Identifier: Apache-2.0
#include "report/markdown.hpp"

#include "chart/svg_chart.hpp"
#include "chart/svg_marks.hpp"
#include "common/output.hpp"
#include "common/parse.hpp"
#include "common/text.hpp"
#include "report/grid.hpp"
#include "report/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <string_view>

namespace quarry::tool::report {
namespace {

constexpr std::size_t grid_columns = 10;

/// The text on one line, for a block of code.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

/// Text of a record, such that Markdown shows it as it is: no markup, no HTML, one line. An
/// underscore inside a word is no markup.
std::string escaped(const std::string& text) {
  std::string out;
  const auto is_word = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '\n' || c == '\r')
      out += ' ';
    else if (std::string_view("\\`*[]|").find(c) != std::string_view::npos ||
             (c == '_' && !(is_word(i - 1) && is_word(i + 1))))
      out += {'\\', c};
    else
      out += c;
  }
  return out;
}

std::string row_text(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& c : cells) out += " " + escaped(c) + " |";
  return out + "\n";
}

std::string head_text(const std::vector<std::string>& cells) {
  std::string out = row_text(cells) + "|";
  for (std::size_t i = 0; i < cells.size(); ++i) out += " --- |";
  return out + "\n";
}

std::string grid_text(const grid& g) {
  std::string out = head_text(g.head);
  for (const auto& row : g.rows) {
    std::vector<std::string> cells;
    cells.reserve(row.size());
    for (const grid_cell& c : row) cells.push_back(c.text);
    out += row_text(cells);
  }
  return out + "\n";
}

std::string day_of(const std::string& date) { return date.substr(0, date.find('T')); }

std::string runs_text(const document& d) {
  std::string out =
      head_text({"backend", "driver", "CUDA", "compiler", "commit", "measured", "data points"});
  for (const run& r : d.runs)
    out += row_text({d.backends[r.backend].label, r.driver, r.cuda, r.compiler, r.commit,
                     day_of(r.first_date) == day_of(r.last_date)
                         ? day_of(r.first_date)
                         : day_of(r.first_date) + " – " + day_of(r.last_date),
                     grouped(r.points)});
  if (d.replaced > 0)
    out += fmt::format("\n{} older data points are replaced by newer ones.\n", grouped(d.replaced));
  return out + "\n";
}

std::string standing_text(const std::vector<standing>& list, std::size_t rank) {
  if (list.size() <= rank) return "–";
  if (rank == 0) return list[0].series;
  return fmt::format("{} ({})", list[rank].series, slowdown_text(list[rank].slowdown));
}

std::string rankings_text(const document& d) {
  const std::vector<ranking> rankings = rank_all(d, compared_allocators::general);
  if (rankings.empty()) return "";
  std::string out =
      "## Best allocator per workload\n\n"
      "By the first measure of each experiment, among "
      "general-purpose allocators without faults. In\n"
      "parentheses: the geometric mean, over all x values, of a "
      "value divided by that of the "
      "first.\n\n" +
      head_text({"workload", "backend", "measure", "first", "second", "last", "faults"});
  for (const ranking& r : rankings) {
    if (!r.main) continue;
    const experiment& e = d.experiments[r.experiment];
    const figure& f = e.figures[r.figure];
    out += row_text({e.title, d.backends[f.backend].label, f.views[r.view].picture.y.title(),
                     standing_text(r.complete, 0), standing_text(r.complete, 1),
                     r.complete.size() > 2 ? standing_text(r.complete, r.complete.size() - 1) : "–",
                     joined(r.unsound)});
  }
  for (const summary& s : summarise(d, rankings)) {
    out += fmt::format("\nAll {} experiments on {}:\n\n", s.experiments,
                       escaped(d.backends[s.backend].label)) +
           head_text({"allocator", "mean slowdown", "experiments", "first in", "faults in"});
    for (const auto* list : {&s.in_most, &s.in_few})
      for (const overall& o : *list)
        out += row_text({o.allocator, mean_text(o), std::to_string(o.experiments),
                         std::to_string(o.best), std::to_string(o.unsound)});
  }
  return out + "\n";
}

std::string claims_text(const document& d) {
  if (d.claims.empty()) return "";
  std::string out = "## Claims of the papers\n\n" +
                    head_text({"paper", "claim", "published", "measured", "backend", "method"});
  for (const claim& c : d.claims) {
    std::vector<std::string> where;
    for (const std::size_t m : c.backends) where.push_back(d.backends[m].label);
    const auto with_unit = [&](const std::string& n) {
      return n.empty() ? "–" : c.unit.empty() ? n : n + " " + c.unit;
    };
    out +=
        row_text({c.source, c.what, with_unit(c.paper), with_unit(c.ours), joined(where), c.how});
  }
  return out + "\n";
}

std::string remarks_text(const figure& f) {
  std::string out;
  for (const remark& r : f.remarks)
    out += fmt::format(
        "- {}{}: {}{}\n",
        r.state < point_state::failed ? "" : "**" + std::string(state_text(r.state)) + "** ",
        escaped(r.series), escaped(r.what),
        joined(r.at).empty() ? "" : " (" + escaped(joined(r.at)) + ")");
  return out.empty() ? "" : out + "\n";
}

std::string figure_text(const experiment& e, const figure& f, const document& d,
                        const std::string& pictures) {
  std::string out = fmt::format("### {}\n\n", escaped(d.backends[f.backend].label));
  for (std::size_t i = 0; i < f.views.size(); ++i) {
    const view& v = f.views[i];
    if (e.form == chart_form::table) break;
    if (i == 1) out += "<details><summary>other measures</summary>\n\n";
    if (!pictures.empty())
      out += fmt::format("![{}, {}]({}/{})\n\n", escaped(e.title), escaped(v.picture.y.title()),
                         pictures, picture_name(f, v));
    out +=
        fmt::format("{}:\n\n", escaped(v.picture.y.title())) + grid_text(grid_of(v, grid_columns));
  }
  if (e.form == chart_form::table)
    out += grid_text(grid_of(f));
  else if (f.views.size() > 1)
    out += "</details>\n\n";
  out += remarks_text(f);
  for (const std::string& command : merged(f.commands)) out += "    " + one_line(command) + "\n";
  return out + "\n";
}

}  // namespace

std::string picture_name(const figure& f, const view& v) {
  return f.anchor + "--" + v.field + ".svg";
}

std::string picture_name(const heap_picture& m, std::size_t number) {
  std::string name = fmt::format("heap-{}-", number + 1);
  for (const char c : m.allocator) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  return name + ".svg";
}

std::size_t write_pictures(const document& d, const std::string& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  std::size_t count = 0;
  const auto write = [&](const std::string& name, const std::string& svg) {
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    write_file(file.string(), svg);
    ++count;
  };
  for (const experiment& e : d.experiments)
    for (const figure& f : e.figures)
      for (const view& v : f.views)
        if (e.form != chart_form::table) write(picture_name(f, v), chart_svg(v.picture));
  for (std::size_t i = 0; i < d.maps.size(); ++i) write(picture_name(d.maps[i], i), d.maps[i].svg);
  return count;
}

std::string summary_of(const document& d, const std::string& title) {
  return fmt::format("# {}\n\n", escaped(title)) + runs_text(d) + rankings_text(d) + claims_text(d);
}

std::string markdown_of(const document& d, const std::string& title, const std::string& pictures) {
  std::string out = summary_of(d, title);
  for (const experiment& e : d.experiments) {
    out += fmt::format("## {}\n\n", escaped(e.title));
    if (!e.source.empty()) out += escaped(e.source) + ".\n\n";
    if (!e.note.empty()) out += escaped(e.note) + "\n\n";
    for (const figure& f : e.figures) out += figure_text(e, f, d, pictures);
  }
  if (!d.maps.empty() && !pictures.empty()) {
    out += "## Heap maps\n\n";
    for (std::size_t i = 0; i < d.maps.size(); ++i)
      out += fmt::format("![{}]({}/{})\n\n", escaped(d.maps[i].title), pictures,
                         picture_name(d.maps[i], i));
  }
  return out;
}

}  // namespace quarry::tool::report

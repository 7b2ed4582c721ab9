// SPDX-License-Identifier: Apache-2.0
/// `quarry report`: shows records as a page, as Markdown or as pictures.

#include "common/text.hpp"
#include "report/report.hpp"

#include "common/command.hpp"
#include "common/output.hpp"
#include "report/markdown.hpp"
#include "report/page.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace quarry::tool {
namespace {

struct report_options {
  std::vector<std::string> files;
  std::string output, markdown, summary, figures;
  std::string title = "Quarry: measurements";
};

int run_report(const report_options& o) {
  const report::document d = report::arrange(report::read(o.files));
  const bool page =
      !o.output.empty() || (o.markdown.empty() && o.summary.empty() && o.figures.empty());
  const std::string output = o.output.empty() ? "report.html" : o.output;
  if (page) write_file(output, report::page_of(d, o.title));
  std::size_t pictures = 0;
  if (!o.figures.empty()) pictures = report::write_pictures(d, o.figures);
  if (!o.markdown.empty()) {
    namespace fs = std::filesystem;
    const std::string folder =
        o.figures.empty()
            ? ""
            : fs::proximate(o.figures, fs::absolute(o.markdown).parent_path()).generic_string();
    write_file(o.markdown, report::markdown_of(d, o.title, folder));
  }
  if (!o.summary.empty()) write_file(o.summary, report::summary_of(d, o.title));
  fmt::print("{} data points of {} experiments on {} backend{}\n", grouped(d.points),
             d.experiments.size(), d.backends.size(), d.backends.size() == 1 ? "" : "s");
  if (d.replaced > 0)
    fmt::print("{} older data points are replaced by newer ones\n", grouped(d.replaced));
  if (page) fmt::print("{}\n", output);
  if (!o.markdown.empty()) fmt::print("{}\n", o.markdown);
  if (!o.summary.empty()) fmt::print("{}\n", o.summary);
  if (!o.figures.empty()) fmt::print("{} pictures in {}\n", pictures, o.figures);
  return exit_success;
}

}  // namespace

void add_report(const command_line& app, action& chosen) {
  const auto o = std::make_shared<report_options>();
  const command_line command =
      app.add_subcommand("report", "Show measurements as one self-contained HTML page");
  command.add_required("FILES", o->files,
                       "Records of bench, kd-tree, graph, map, region and cluster "
                       "(--out), plain or gzip");
  command.add_option("-o,--output", o->output, "Write the page to FILE (default report.html)",
                     "FILE");
  command.add_option("--markdown", o->markdown,
                     "Write the report as Markdown; with --figures it shows the pictures", "FILE");
  command.add_option("--summary", o->summary,
                     "Write only runs, rankings and claims of papers as Markdown", "FILE");
  command.add_option("--figures", o->figures, "Draw every figure as SVG into DIR", "DIR");
  command.add_option("--title", o->title, "Title of the page and of the Markdown", "TEXT");
  command.footer(
      "The page contains its script, style and data: it works without a "
      "network. With --markdown,\n"
      "--summary or --figures and without -o, no page is written.\n\n"
      "Examples:\n"
      "  quarry report results.jsonl -o report.html\n"
      "  quarry report bench/results/*/*.jsonl.gz\n"
      "  quarry report results.jsonl --markdown results.md --figures figures");
  command.callback([o, &chosen] { chosen = [o] { return run_report(*o); }; });
}

}  // namespace quarry::tool

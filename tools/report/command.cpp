// SPDX-License-Identifier: Apache-2.0
/// quarry report: what was measured, as a page, a text or pictures.

#include "report/report.hpp"

#include "common/command.hpp"
#include "report/markdown.hpp"
#include "report/page.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

namespace quarry::tool {
namespace {

struct options {
  std::vector<std::string> files;
  std::string output, markdown, figures;
  std::string title = "Quarry: measured";
};

void write(const std::string& name, const std::string& text) {
  std::ofstream out(name, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw input_error("can not write " + name);
}

int run(const options& o) {
  const report::document d = report::arrange(report::read(o.files));
  const bool page = !o.output.empty() || (o.markdown.empty() && o.figures.empty());
  const std::string output = o.output.empty() ? "report.html" : o.output;
  if (page) write(output, report::page_of(d, o.title));
  std::size_t pictures = 0;
  if (!o.figures.empty()) pictures = report::write_pictures(d, o.figures);
  if (!o.markdown.empty()) {
    namespace fs = std::filesystem;
    const std::string folder =
        o.figures.empty()
            ? ""
            : fs::proximate(o.figures, fs::absolute(o.markdown).parent_path()).generic_string();
    write(o.markdown, report::markdown_of(d, o.title, folder));
  }
  fmt::print("{} points of {} experiments on {} machine{}\n", grouped(d.points),
             d.experiments.size(), d.backends.size(), d.backends.size() == 1 ? "" : "s");
  if (d.replaced > 0)
    fmt::print("{} points were measured again later; the newest counts\n", grouped(d.replaced));
  if (page) fmt::print("{}\n", output);
  if (!o.markdown.empty()) fmt::print("{}\n", o.markdown);
  if (!o.figures.empty()) fmt::print("{} pictures in {}\n", pictures, o.figures);
  return exit_success;
}

}  // namespace

void add_report(CLI::App& app, action& chosen) {
  const auto o = std::make_shared<options>();
  CLI::App& command = *app.add_subcommand(
      "report", "What quarry bench measured, as one page that needs nothing else");
  command
      .add_option("FILES", o->files,
                  "Lines of JSON: what bench --out wrote, and others of its kind")
      ->required()
      ->type_name("");
  command.add_option("-o,--output", o->output, "The page to write (default report.html)")
      ->type_name("FILE");
  command
      .add_option("--markdown", o->markdown,
                  "Write the report as Markdown; with --figures it shows the pictures")
      ->type_name("FILE");
  command.add_option("--figures", o->figures, "Draw every figure as SVG into this folder")
      ->type_name("DIR");
  command.add_option("--title", o->title, "Of the page and the text")->type_name("TEXT");
  command.footer(
      "The page holds its script, style, chart library and data: it works without a network, from "
      "a disk or\n"
      "in a mail. With --markdown or --figures alone no page is written.\n\n"
      "Examples:\n"
      "  quarry report results.jsonl -o report.html\n"
      "  quarry report bench/results/2026-11-15-h200/*.jsonl\n"
      "  quarry report results.jsonl --markdown results.md --figures figures");
  command.callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace quarry::tool

// SPDX-License-Identifier: Apache-2.0
/// Fuzz target: JSON, as the records that `quarry report` reads and draws, and as requests and
/// results between `quarry bench` and its children.
#include "bench/json.hpp"
#include "chart/svg_chart.hpp"
#include "common/parse.hpp"
#include "fuzz/fuzz.hpp"
#include "report/markdown.hpp"
#include "report/page.hpp"
#include "report/report.hpp"

namespace quarry::fuzz::json {
namespace {

void report_on(const std::string& text) {
  static const memory_file file;
  file.set(text);
  const tool::report::document d = tool::report::arrange(tool::report::read({file.path()}));
  (void)tool::report::markdown_of(d, "fuzz", "");
  (void)tool::report::page_of(d, "fuzz");
  for (const tool::report::experiment& e : d.experiments)
    for (const tool::report::figure& f : e.figures)
      for (const tool::report::view& v : f.views) (void)tool::chart_svg(v.picture);
}

template <class Read>
void try_to(Read read) {
  try {
    read();
  } catch (const tool::input_error&) {
  }
}

void run(input bytes) {
  const std::string text(text_of(bytes));
  try_to([&] { report_on(text); });
  try_to([&] { (void)tool::requests_of(text); });
  (void)tool::result_of(text);
}

std::vector<std::string> seeds() {
  tool::bench_measurement measurement;
  measurement.loads = {{16, 32}};
  tool::bench_request request;
  request.measurements = {measurement};
  tool::bench_result result;
  result.fields = {{"live", 0.5}};
  result.values = {1.5};
  result.curve = {{1, {}, {}, {}}};
  return {nlohmann::json(request).dump(), nlohmann::json(result).dump()};
}

}  // namespace
}  // namespace quarry::fuzz::json

QUARRY_FUZZ_TARGET(json, quarry::fuzz::json::run, quarry::fuzz::json::seeds, 500);

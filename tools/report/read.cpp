// SPDX-License-Identifier: Apache-2.0
/// Lines of JSON from files. Whatever is wrong is told with the file and the line.

#include "common/parse.hpp"
#include "report/report.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace quarry::tool::report {
namespace {

[[noreturn]] void refuse(const record& r, std::string_view why) {
  throw input_error(fmt::format("{}: {}", r.place, why));
}

/// Names and texts that the rest relies on are texts, or not there.
void check_texts(const record& r) {
  for (const char* key :
       {"id", "experiment", "title", "source", "form", "note", "allocator", "series", "backend",
        "device", "driver", "cuda", "compiler", "commit", "date", "outcome", "command", "svg"}) {
    const auto at = r.line.find(key);
    if (at != r.line.end() && !at->is_string() && !at->is_null())
      refuse(r, fmt::format("\"{}\" is not a text", key));
  }
}

void require(const record& r, const char* kind, const char* key) {
  const auto at = r.line.find(key);
  if (at == r.line.end() || !at->is_string() || at->get_ref<const std::string&>().empty())
    refuse(r, fmt::format("a line of kind \"{}\" needs \"{}\"", kind, key));
}

void sort_in(record&& r, records& all) {
  check_texts(r);
  if (!r.line.contains("kind")) return add_older(r, all);
  const std::string kind = r.line["kind"].is_string() ? r.line["kind"].get<std::string>() : "";
  if (kind == "experiment") {
    require(r, "experiment", "id");
    if (const auto y = r.line.find("y"); y != r.line.end()) {
      if (!y->is_array()) refuse(r, "\"y\" is a list of fields");
      for (const json& field : *y)
        if (!field.is_object() || !field.contains("field") || !field["field"].is_string())
          refuse(r, "each \"y\" has a \"field\"");
    }
    all.experiments.push_back(std::move(r));
  } else if (kind == "point") {
    require(r, "point", "experiment");
    all.points.push_back(std::move(r));
  } else if (kind == "map") {
    require(r, "map", "svg");
    all.maps.push_back(std::move(r));
  } else if (kind == "claim") {
    require(r, "claim", "claim");
    all.claims.push_back(std::move(r));
  }  // other kinds are of a later time
}

}  // namespace

records read(const std::vector<std::string>& files) {
  records all;
  for (const std::string& name : files) {
    std::ifstream in(name);
    if (!in || std::filesystem::is_directory(name)) throw input_error("can not read " + name);
    std::string text;
    for (std::size_t number = 1; std::getline(in, text); ++number) {
      if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
      record r{json::parse(text, nullptr, false), fmt::format("{}:{}", name, number)};
      if (!r.line.is_object()) refuse(r, "this is no JSON object");
      sort_in(std::move(r), all);
    }
  }
  if (all.points.empty() && all.maps.empty() && all.claims.empty())
    throw input_error(fmt::format("{}: no measured points", fmt::join(files, ", ")));
  return all;
}

}  // namespace quarry::tool::report
